/**
 * An HTTP proxy in front of each region, which ends a process in the middle of one of its requests.
 */
import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";

/**
 * The moment in a request at which the process is killed.
 *
 * - `before`: the region never hears of the request.
 * - `half`: the region gets half of the body, and the connection breaks.
 * - `unanswered`: the region executes the request, and its answer is lost.
 * - `answered`: the process has the answer, and so many milliseconds for what follows.
 */
export type Moment = "before" | "half" | "unanswered" | "answered";

/** When a process is killed. */
export interface KillPoint {
  /** The number of the request, from 1. */
  readonly request: number;
  readonly moment: Moment;
  /** After the answer. */
  readonly delayMs: number;
}

/** Proxies of one process. */
export class KillProxies {
  /** How many requests have come. */
  requests = 0;
  /** Called at the kill point. */
  onKill: () => void = () => {};
  readonly #point: KillPoint | undefined;
  readonly #servers: Server[] = [];
  readonly #inFlight = new Set<Promise<void>>();

  /** Without a point nothing is killed, and requests are counted. */
  constructor(point?: KillPoint) {
    this.#point = point;
  }

  /** Opens a proxy to `target` and returns its URL. */
  async open(target: string): Promise<string> {
    // A request of a process that has just been killed ends in its middle.
    const server = createServer((request, response) => {
      this.#pass(request, response, new URL(target)).catch(() => response.destroy());
    });
    this.#servers.push(server);
    return listenLocally(server);
  }

  /** Closes the proxies. Resolves when the regions have executed what the process sent before its end. */
  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    await Promise.all(this.#inFlight);
  }

  async #pass(request: IncomingMessage, response: ServerResponse, { hostname, port }: URL): Promise<void> {
    const moment = ++this.requests === this.#point?.request ? this.#point.moment : undefined;
    const drop = (): void => {
      this.onKill();
      request.destroy();
    };
    if (moment === "before") return drop();
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const body = Buffer.concat(parts);
    const { method = "GET", url = "/", headers } = request;
    // The headers are signed, that of the host included.
    const upstream = send({ hostname, port, method, path: url, headers, agent: false });
    upstream.on("error", () => response.destroy());
    const ended = new Promise<void>((resolve) => upstream.once("close", resolve));
    this.#inFlight.add(ended);
    void ended.then(() => this.#inFlight.delete(ended));
    if (moment === "half") {
      upstream.write(body.subarray(0, body.length >> 1));
      await new Promise((resolve) => setTimeout(resolve, 5));
      upstream.destroy();
      return drop();
    }
    upstream.on("response", (answer) => {
      answer.on("error", () => response.destroy());
      if (moment === "unanswered") {
        answer.resume();
        return drop();
      }
      // Without a reader it would never end.
      if (response.closed) return answer.resume();
      response.once("close", () => answer.unpipe(response).resume());
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
      if (moment === "answered") answer.on("end", () => setTimeout(() => this.onKill(), this.#point!.delayMs));
    });
    upstream.end(body);
  }
}
