/**
 * One emulated link of the WAN: an HTTP reverse proxy on its own port. It delays, throttles, breaks and records
 * the requests to a real server (S3, workerd), which needs no change for it.
 */
import { Agent, createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Transform } from "node:stream";
import { closeServer, listenLocally } from "../listen-locally.ts";
import { passOn } from "../proxy/pass-on.ts";
import type { AccessLine } from "./access-line.ts";
import { Places } from "./places.ts";

/** The faults of a link. Every probability is that of one request, in [0, 1]. */
export interface LinkFaults {
  /** The link cuts every connection at once. */
  readonly down: boolean;
  /** Multiplies every latency. At least 0. */
  readonly latencyFactor: number;
  /** Multiplies the latency of a random share of the requests. */
  readonly stragglers: { readonly probability: number; readonly factor: number };
  /** Probability of a 503 instead of the answer. */
  readonly errorRate: number;
  /** Probability that one byte of the body is wrong. */
  readonly corrupt: number;
  /** Probability that the body has half its length, with a Content-Length that agrees. */
  readonly truncate: number;
  /**
   * The target serves so many requests at once, over all links to it, and others wait for their turn. A request holds
   * its place for its latency and its answer. 0 is no limit.
   */
  readonly concurrency: number;
  /** The server does not see the Range of a GET, and answers with 200 and everything. */
  readonly ignoreRange: boolean;
}

/** The faults of a link that works. */
export const NO_FAULTS: LinkFaults = {
  down: false,
  latencyFactor: 1,
  stragglers: { probability: 0, factor: 1 },
  errorRate: 0,
  corrupt: 0,
  truncate: 0,
  concurrency: 0,
  ignoreRange: false,
};

/**
 * A paced body comes in quanta of so many bytes. The sockets behind it bring 64 KiB at a time, which would keep the
 * first bytes from a reader for 26 ms at 20 Mbit/s.
 */
const QUANTUM_BYTES = 8 * 1024;

/** One request that crossed a link. */
export interface LinkRecord {
  /** Milliseconds since the world started. */
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  /** Emulated delay before the request reached its target, without the wait for a place. */
  readonly delayMs: number;
  /** How long the request waited for one of the target's places. 0 when one was free. */
  waitMs: number;
  /** By how much `latencyFactor` and a straggler multiplied the delay; 1 without either. */
  readonly slowdown: number;
  /** HTTP status of the answer. Undefined without one. */
  status: number | undefined;
  /** Body bytes that went to the client so far. */
  bytes: number;
  /** Milliseconds since the world started. Undefined while the request is pending. */
  endMs: number | undefined;
  outcome: "pending" | "ok" | "aborted" | "down" | "error" | "corrupted" | "truncated" | "unranged";
}

/** The ends of a link, and its behaviour. */
export interface LinkOptions {
  readonly from: string;
  readonly to: string;
  /** Base URL of the server behind the link. */
  readonly target: string;
  /** Round trip and service time of a small request, before faults and jitter. */
  readonly latencyMs: () => number;
  /** Standard deviation of the logarithm of the latency. It does not change the mean. */
  readonly jitterSigma: number;
  /** Bytes per second of one transfer. Undefined is unlimited. */
  readonly bytesPerSecond: () => number | undefined;
  /** The line that the answers share with those of other links, and its rate. Default: none is shared. */
  readonly access?: { readonly line: AccessLine; readonly bytesPerSecond: () => number };
  readonly faults: () => LinkFaults;
  /** The places of the target, which all links to it share. Default: places of its own. */
  readonly places?: Places;
  readonly random: () => number;
  readonly now: () => number;
  readonly onRecord: (record: LinkRecord) => void;
}

/** An open link. */
export interface Link {
  /** Where the client sends its requests, without a trailing slash. */
  readonly url: string;
  close(): Promise<void>;
}

/** Opens a link on a free port of the loopback interface. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const { places = new Places() } = options;
  // A connection for each request: workerd, busy a moment ago, may close a kept one just as the next request is sent.
  const agent = new Agent();
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    void carry(options, places, agent, incoming, outgoing);
  });
  return {
    url: await listenLocally(server),
    close() {
      agent.destroy();
      return closeServer(server);
    },
  };
}

async function carry(
  options: LinkOptions,
  places: Places,
  agent: Agent,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
) {
  const faults = options.faults();
  const slowdown = slowdownOf(options, faults);
  const record: LinkRecord = {
    atMs: options.now(),
    from: options.from,
    to: options.to,
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    range: incoming.headers.range,
    delayMs: faults.down ? 0 : sampleDelayMs(options) * slowdown,
    slowdown,
    waitMs: 0,
    status: undefined,
    bytes: 0,
    endMs: undefined,
    outcome: "pending",
  };
  options.onRecord(record);
  const gone = new AbortController();
  outgoing.once("close", () => outgoing.writableFinished || gone.abort());
  try {
    if (faults.down) {
      record.outcome = "down";
      incoming.socket.destroy();
      return;
    }
    const mustWait = places.isFull(faults.concurrency);
    const leave = await places.enter(() => options.faults().concurrency, gone.signal);
    if (mustWait) record.waitMs = options.now() - record.atMs;
    try {
      await sleep(record.delayMs, undefined, { signal: gone.signal });
      if (options.random() < faults.errorRate) refuse(record, outgoing);
      else await forward(options, agent, incoming, outgoing, record, faults);
    } finally {
      leave();
    }
  } catch (error) {
    if (record.outcome !== "unranged") record.outcome = gone.signal.aborted ? "aborted" : "error";
    if (!gone.signal.aborted && !outgoing.headersSent) {
      outgoing.writeHead(502, { "content-type": "text/plain" }).end(`${options.to}: ${String(error)}\n`);
    } else {
      outgoing.destroy();
    }
  } finally {
    record.endMs = options.now();
  }
}

async function forward(
  options: LinkOptions,
  agent: Agent,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  record: LinkRecord,
  faults: LinkFaults,
): Promise<void> {
  const { range, ...unranged } = incoming.headers;
  const isUnranged = faults.ignoreRange && range !== undefined && incoming.method === "GET";
  let damage: ReturnType<typeof damageOf>;
  await passOn(options.target, incoming, outgoing, {
    agent,
    // The Host header does not change, because S3 signatures cover it.
    headers: isUnranged ? unranged : incoming.headers,
    onAnswer(answer) {
      damage = damageOf(options, faults, incoming, answer);
      const length = Number(answer.headers["content-length"]);
      const limit = damage === "truncate" ? Math.floor(length / 2) : undefined;
      record.status = answer.statusCode;
      // Now: a client that does not want all of it leaves.
      if (isUnranged) record.outcome = "unranged";
      const { headers } = answer;
      return {
        headers: limit === undefined ? headers : { ...headers, "content-length": String(limit) },
        through: wire(record, options, damage === "corrupt", limit),
      };
    },
  });
  if (!isUnranged) record.outcome = damage === "corrupt" ? "corrupted" : damage === "truncate" ? "truncated" : "ok";
}

/** Counts, damages, cuts and paces a body. */
function wire(record: LinkRecord, options: LinkOptions, corrupt: boolean, limit: number | undefined) {
  const { access } = options;
  const bytesPerSecond = options.bytesPerSecond();
  let first = corrupt;
  let startMs: number | undefined;
  return new Transform({
    async transform(part: Buffer, _encoding, done) {
      let out = part;
      if (limit !== undefined) out = part.subarray(0, Math.max(0, limit - record.bytes));
      if (first && out.length > 0) {
        first = false;
        out = Buffer.from(out);
        out[out.length >> 1]! ^= 0xff;
      }
      const shared = access?.bytesPerSecond();
      const quantum = bytesPerSecond || shared ? QUANTUM_BYTES : Math.max(1, out.length);
      for (let at = 0; at < out.length; at += quantum) {
        const sent = out.subarray(at, at + quantum);
        record.bytes += sent.length;
        if (bytesPerSecond) {
          startMs ??= performance.now();
          // Each quantum is due at an absolute time, so delays of a busy machine do not add up.
          const dueMs = startMs + (record.bytes / bytesPerSecond) * 1000 - performance.now();
          if (dueMs >= 1) await sleep(dueMs);
        }
        await access?.line.carry(sent.length, access.bytesPerSecond());
        this.push(sent);
      }
      done();
    },
  });
}

/** Damages only answers with stored bytes, as a bucket with a bad disk does. */
function damageOf(
  options: LinkOptions,
  faults: LinkFaults,
  incoming: IncomingMessage,
  response: IncomingMessage,
): "corrupt" | "truncate" | undefined {
  const stored = incoming.method === "GET" && (response.statusCode === 200 || response.statusCode === 206);
  if (!stored || !(Number(response.headers["content-length"]) > 1)) return undefined;
  if (options.random() < faults.corrupt) return "corrupt";
  if (options.random() < faults.truncate) return "truncate";
  return undefined;
}

function refuse(record: LinkRecord, outgoing: ServerResponse): void {
  record.status = 503;
  record.outcome = "error";
  outgoing.writeHead(503, { "content-type": "application/xml", "access-control-allow-origin": "*" });
  outgoing.end("<Error><Code>SlowDown</Code><Message>injected by the emulated link</Message></Error>");
}

function sampleDelayMs({ random, jitterSigma, latencyMs }: LinkOptions): number {
  // Box-Muller. 1 - random() keeps the logarithm finite.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return latencyMs() * Math.exp(jitterSigma * normal - jitterSigma ** 2 / 2);
}

function slowdownOf({ random }: LinkOptions, { latencyFactor, stragglers }: LinkFaults): number {
  return latencyFactor * (random() < stragglers.probability ? stragglers.factor : 1);
}
