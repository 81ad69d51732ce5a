/** One PoP in this process: the Worker's application and objects, a server, and the timer of the periods. */
import "./platform/module-hooks.ts";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { setClientAddress } from "./client-address.ts";
import { useOwnConnections } from "./platform/connections.ts";
import { DiskValues } from "./platform/disk-values.ts";
import { lockFolder } from "./platform/folder-lock.ts";
import { LocalObjects, type ObjectClass } from "./platform/local-objects.ts";

/** Options of a PoP. */
export interface PopOptions {
  /** The variables and secrets of the Worker (docs/reference/worker-config.md). */
  readonly variables: Readonly<Record<string, string>>;
  /** The folder of chunk cache and state, which only one process at a time may use. */
  readonly folder: string;
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** Whether clients come through a proxy that appends to `X-Forwarded-For`. Default: false. */
  readonly behindProxy?: boolean;
  /** Milliseconds from the start of one period to the next; 0: only `runPeriod` runs them. Default: a minute. */
  readonly periodMs?: number;
}

/** A running PoP. */
export interface Pop {
  readonly url: string;
  /** Bytes of the chunk cache on disk. */
  readonly cacheBytes: number;
  /** Runs a period now, and rejects if the period does. */
  runPeriod(): Promise<void>;
  /** Ends answers and counts under way, for at most `graceMs` (default 10 s), and closes all files. */
  close(graceMs?: number): Promise<void>;
}

/** The Worker, in the part that is used here. Its types are those of Cloudflare's runtime. */
interface WorkerModule {
  readonly default: {
    fetch(request: Request, env: object, context: object): Response | Promise<Response>;
    scheduled(event: object, env: object, context: object): Promise<void>;
  };
  readonly RequestMonitor: ObjectClass;
  readonly PopState: ObjectClass;
  readonly PeerState: ObjectClass;
}

const PERIOD_MS = 60_000;
const GRACE_MS = 10_000;
const IDLE_CHECK_MS = 50;
/** The ledger bounds chunks by CACHE_BYTES; the rest is the configuration, and chunks of a fill that was cut off. */
const SLACK_BYTES = 64 * 2 ** 20;
const CACHE_BYTES_DEFAULT = 1e9;
/** A machine has more memory than an isolate at Cloudflare: what is read from the disk is verified each time. */
const MEMORY_BYTES_DEFAULT = String(256 * 2 ** 20);

/**
 * Starts a PoP. A wrong variable is answered on every route, as at Cloudflare. Rejects with STORE_FAILED
 * where another process uses the folder or a file of it is damaged, and where the port cannot be used. It replaces the
 * HTTP client behind `fetch` in this process.
 */
export async function startPop(options: PopOptions): Promise<Pop> {
  useOwnConnections();
  const worker = (await import("@agarose/worker" as string)) as WorkerModule;
  const unlock = lockFolder(options.folder);
  try {
    return await startLocked(options, worker, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

async function startLocked(options: PopOptions, worker: WorkerModule, unlock: () => void): Promise<Pop> {
  const { variables, folder, host = "127.0.0.1", port = 0, behindProxy = false, periodMs = PERIOD_MS } = options;
  const values = await DiskValues.open(
    join(folder, "chunks"),
    Number(variables["CACHE_BYTES"] || CACHE_BYTES_DEFAULT) + SLACK_BYTES,
  );
  const pending = new Set<Promise<unknown>>();
  const waitUntil = (promise: Promise<unknown>): void => {
    const settled = promise.catch(() => {}).finally(() => pending.delete(settled));
    pending.add(settled);
  };
  const context = { waitUntil, passThroughOnException() {} };
  const objects = (name: "RequestMonitor" | "PopState" | "PeerState"): LocalObjects =>
    new LocalObjects({
      folder: join(folder, "state", name),
      objectClass: worker[name],
      env: () => env,
      waitUntil,
      onError: (error) =>
        console.error(JSON.stringify({ level: "error", message: `alarm of ${name}: ${String(error)}` })),
    });
  const namespaces = [objects("RequestMonitor"), objects("PopState"), objects("PeerState")] as const;
  const env = {
    MEMORY_BYTES: MEMORY_BYTES_DEFAULT,
    ...variables,
    CHUNKS: values,
    REQUEST_MONITOR: namespaces[0],
    POP_STATE: namespaces[1],
    PEER_STATE: namespaces[2],
    PROCESS: { usage: processUsage },
  };
  const listener = getRequestListener(
    (request, { incoming }) => {
      setClientAddress(request.headers, incoming.socket.remoteAddress, behindProxy);
      return worker.default.fetch(request, env, context);
    },
    { overrideGlobalObjects: false },
  );
  const server = createServer((request, response) => void listener(request, response));
  const runPeriod = (): Promise<void> => worker.default.scheduled({}, env, context);
  try {
    for (const namespace of namespaces) namespace.wake();
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    for (const namespace of namespaces) namespace.close();
    throw error;
  }
  // A period that fails has logged why, and the next one retries.
  const timer = periodMs > 0 ? setInterval(() => void runPeriod().catch(() => {}), periodMs) : undefined;
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${actual}`,
    get cacheBytes() {
      return values.bytes;
    },
    runPeriod,
    async close(graceMs = GRACE_MS) {
      clearInterval(timer);
      await closeServer(server, graceMs);
      await Promise.race([Promise.all(pending), sleep(graceMs, undefined, { ref: false })]);
      for (const namespace of namespaces) namespace.close();
      unlock();
    },
  };
}

/** Bytes of resident memory, and seconds of CPU time since the start. */
function processUsage(): { residentBytes: number; cpuSeconds: number } {
  const { user, system } = process.cpuUsage();
  return { residentBytes: process.memoryUsage.rss(), cpuSeconds: (user + system) / 1e6 };
}

async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections that become idle meanwhile would stay for Node's five seconds.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
  await Promise.race([closed, sleep(graceMs, undefined, { ref: false })]);
  clearInterval(idle);
  server.closeAllConnections();
  await closed;
}
