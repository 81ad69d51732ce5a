/** The kinds of abuse that a PoP must bear, each with the rate of its clients. */
import { Agent, request as httpRequest } from "node:http";
import { openRequest } from "../tcp-client.ts";
import { clientHeaders } from "../world.ts";

/** Where the abuse goes. */
export interface Target {
  readonly url: string;
  /** A key whose object has several stripes. */
  readonly large: string;
  /** Keys of small objects. */
  readonly small: readonly string[];
}

/** How an event ended: a status, or what happened to its connection. */
export type Outcome = string;

/** One kind of abuse. */
export interface AbuseKind {
  readonly name: string;
  readonly clients: number;
  /** Events per second of each client. */
  readonly perSecond: number;
  /** Plays event `n` of one client. */
  act(target: Target, address: string, n: number): Promise<Outcome>;
}

/** A client that reads nothing leaves after so long; until then the PoP has to end its reads. */
const SLOW_CLIENT_MS = 12_000;
const KEYS_PER_BATCH = 100;

const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const slow = new Set<() => void>();
/** By address. */

/** Ends the connections of all clients. */
export function leaveAll(): void {
  for (const leave of slow) leave();
  agent.destroy();
}

/** Sends a request and drops the answer's body; resolves to its status. */
function send(
  target: Target,
  path: string,
  { method = "GET", address, headers = {}, body }: SendOptions,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const options = { agent, method, headers: { ...clientHeaders(address), ...headers } };
    const call = httpRequest(`${target.url}${path}`, options, (response) => {
      response.resume();
      response.on("end", () => resolve(String(response.statusCode))).on("error", reject);
    });
    call.on("error", (error) => {
      // workerd ends an idle connection in the moment in which it is used again.
      if (call.reusedSocket) resolve(send(target, path, { method, address, headers, body }));
      else reject(error);
    });
    call.end(body);
  });
}

interface SendOptions {
  readonly method?: string;
  readonly address: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

const plansOf = (keys: readonly string[]): string =>
  `/v1/plans?bodies=1&${new URLSearchParams(keys.map((key) => ["key", key]))}`;

/** Every kind: 40,080 events in an hour. */
export const ABUSES: readonly AbuseKind[] = [
  {
    name: "clients that leave in the middle",
    clients: 8,
    perSecond: 0.05,
    async act({ url, large, small }, address, n) {
      const path = [`/v1/read/${large}`, `/o/${large}`, plansOf(small)][n % 3]!;
      const socket = await openRequest(url, { path, headers: clientHeaders(address) });
      socket.resetAndDestroy();
      return "left";
    },
  },
  {
    name: "HEAD",
    clients: 4,
    perSecond: 0.25,
    act(target, address, n) {
      const path = [`/v1/read/${target.large}`, `/o/${target.large}`, plansOf(target.small)][n % 3]!;
      return send(target, path, { method: "HEAD", address });
    },
  },
  {
    name: "clients that read nothing",
    clients: 8,
    perSecond: 1 / 60,
    async act({ url, large, small }, address, n) {
      const path = [`/v1/read/${large}`, `/o/${large}`, plansOf(small)][n % 3]!;
      const socket = await openRequest(url, { path, headers: clientHeaders(address), times: 3 });
      const leave = (): void => {
        clearTimeout(timer);
        slow.delete(leave);
        socket.resetAndDestroy();
      };
      const timer = setTimeout(leave, SLOW_CLIENT_MS);
      slow.add(leave);
      return "stalled";
    },
  },
  {
    name: "keys that do not exist",
    clients: 8,
    perSecond: 1,
    act(target, address, n) {
      const path = `${n % 2 === 0 ? "/o/" : "/v1/read/"}nowhere/${address}/${n}/${"x".repeat(700)}`;
      return send(target, path, { address });
    },
  },
  {
    name: "floods of /v1/plans",
    clients: 4,
    perSecond: 0.05,
    act(target, address, n) {
      const unknown = Array.from({ length: KEYS_PER_BATCH }, (_, i) => `flood/${address}/${n}/${i}`);
      return send(target, plansOf(n % 2 === 0 ? unknown : target.small), { address });
    },
  },
  {
    name: "guesses of the token",
    clients: 4,
    perSecond: 0.25,
    act(target, address, n) {
      const headers = { authorization: `Bearer guess-of-the-token-${n}` };
      return send(target, ["/v1/status", "/metrics"][n % 2]!, { address, headers });
    },
  },
];
