/**
 * One emulated link of the WAN: an HTTP reverse proxy on a port of its own that delays, throttles, breaks and records
 * what passes through it. It stands in front of real servers (S3, workerd), which notice nothing.
 */
import { Agent, createServer, request, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

/** What is wrong with a link at the moment. All chances are of one request, in [0, 1]. */
export interface LinkFaults {
  /** Connections are cut at once. */
  readonly down: boolean;
  readonly latencyFactor: number;
  readonly stragglers: { readonly probability: number; readonly factor: number };
  /** Chance of a 503 in place of the answer. */
  readonly errorRate: number;
  /** Chance that a byte of the body is flipped. */
  readonly corrupt: number;
  /** Chance that the body is half as long as it should be, with a Content-Length that agrees. */
  readonly truncate: number;
}

export const NO_FAULTS: LinkFaults = {
  down: false,
  latencyFactor: 1,
  stragglers: { probability: 0, factor: 1 },
  errorRate: 0,
  corrupt: 0,
  truncate: 0,
};

/** One request that crossed a link. */
export interface LinkRecord {
  /** Milliseconds since the world started. */
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  /** Emulated delay before the request reached its target. */
  readonly delayMs: number;
  status: number | undefined;
  bytes: number;
  endMs: number | undefined;
  outcome: "pending" | "ok" | "aborted" | "down" | "error" | "corrupted" | "truncated";
}

export interface LinkOptions {
  readonly from: string;
  readonly to: string;
  /** Base URL of the server behind the link. */
  readonly target: string;
  /** Round trip and service time of a small request, in ms, before faults and jitter. */
  readonly latencyMs: () => number;
  /** Standard deviation of the logarithm of the latency; the mean stays as it is. */
  readonly jitterSigma: number;
  /** Bytes per second of one transfer; unlimited when undefined. */
  readonly bytesPerSecond: () => number | undefined;
  readonly faults: () => LinkFaults;
  readonly random: () => number;
  readonly now: () => number;
  readonly onRecord: (record: LinkRecord) => void;
}

export interface Link {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens a link on a free port of the loopback interface. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    void carry(options, agent, incoming, outgoing);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

async function carry(options: LinkOptions, agent: Agent, incoming: IncomingMessage, outgoing: ServerResponse) {
  const faults = options.faults();
  const record: LinkRecord = {
    atMs: options.now(),
    from: options.from,
    to: options.to,
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    range: incoming.headers.range,
    delayMs: faults.down ? 0 : sampleDelayMs(options, faults),
    status: undefined,
    bytes: 0,
    endMs: undefined,
    outcome: "pending",
  };
  options.onRecord(record);
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  try {
    if (faults.down) {
      record.outcome = "down";
      incoming.socket.destroy();
      return;
    }
    await sleep(record.delayMs, undefined, { signal: gone.signal });
    if (options.random() < faults.errorRate) refuse(record, outgoing);
    else await forward(options, agent, incoming, outgoing, record, faults, gone.signal);
  } catch (error) {
    record.outcome = gone.signal.aborted ? "aborted" : "error";
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
  signal: AbortSignal,
): Promise<void> {
  const target = new URL(options.target);
  const upstream = request({
    agent,
    host: target.hostname,
    port: target.port,
    method: incoming.method,
    path: incoming.url,
    // Host stays as the client wrote it, because S3 signatures cover it.
    headers: incoming.headers,
    signal,
  });
  const sent = pipeline(incoming, upstream).catch((error: unknown) => upstream.destroy(error as Error));
  const response = await answerOf(upstream);
  const damage = damageOf(options, faults, incoming, response);
  const length = Number(response.headers["content-length"]);
  const limit = damage === "truncate" ? Math.floor(length / 2) : undefined;
  record.status = response.statusCode;
  const headers = limit === undefined ? response.headers : { ...response.headers, "content-length": String(limit) };
  outgoing.writeHead(response.statusCode ?? 502, response.statusMessage, headers as Record<string, string>);
  outgoing.flushHeaders();
  await pipeline(response, wire(record, options.bytesPerSecond(), damage === "corrupt", limit), outgoing);
  await sent;
  record.outcome = damage === "corrupt" ? "corrupted" : damage === "truncate" ? "truncated" : "ok";
}

function answerOf(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.once("response", resolve);
    upstream.once("error", reject);
  });
}

/** Counts, damages, cuts and paces a body. */
function wire(record: LinkRecord, bytesPerSecond: number | undefined, corrupt: boolean, limit: number | undefined) {
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
      record.bytes += out.length;
      if (bytesPerSecond) {
        startMs ??= performance.now();
        // By the clock, and not part by part: what a busy machine is late with does not add up.
        const dueMs = startMs + (record.bytes / bytesPerSecond) * 1000 - performance.now();
        if (dueMs >= 1) await sleep(dueMs);
      }
      done(undefined, out);
    },
  });
}

/** Only answers that carry stored bytes are damaged: what a bucket with a bad disk would do. */
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

function sampleDelayMs(options: LinkOptions, faults: LinkFaults): number {
  const { random, jitterSigma } = options;
  // Box-Muller; 1 - random() keeps the logarithm finite.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const straggler = random() < faults.stragglers.probability ? faults.stragglers.factor : 1;
  return options.latencyMs() * faults.latencyFactor * straggler * Math.exp(jitterSigma * normal - jitterSigma ** 2 / 2);
}
