/**
 * Requests per second of a PoP on Node, beside nginx with one process that serves the same bytes from disk; and the
 * PoP's memory while a thousand slow clients read from it.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@agarose/dev-world/free-port";
import { cpuMs, residentBytes } from "@agarose/dev-world/process-memory";
import type { PopProcess } from "@agarose/pop/test";
import type { Bench, BenchOptions } from "../bench.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table } from "@agarose/dev-world/statistics";
import { startNodePop } from "./node-pop.ts";
import { runJob, startGenerator } from "./run-job.ts";

interface Load {
  readonly name: string;
  readonly bytes: number;
  /** Objects that are asked for in turn. */
  readonly count: number;
}

/** The last load is more than the PoP keeps in memory here: each request reads the disk. */
const LOADS: readonly Load[] = [
  { name: "128 KiB", bytes: 131_072, count: 1 },
  { name: "1 MB", bytes: 1_000_000, count: 1 },
  { name: "40 of 1 MB", bytes: 1_000_000, count: 40 },
];
/** The files on the disk: those of a larger load are those of a smaller one too. */
const FILES: readonly string[] = [...new Set(LOADS.flatMap(namesOf))];
const ROUTES = ["nginx", "bundle", "/o/"] as const;
type Route = (typeof ROUTES)[number];

/** An isolate hands its counts on 2 s after the first. */
const COUNTS_FLUSHED_MS = 2_500;
/** The configuration is looked at every 5 s. */
const CONFIGURATION_MS = 5_500;
const CONNECTIONS = 8;
const ROUNDS = 5;
const SECONDS = 2;
const PERIODS_MAX = 6;
const SLOW_CLIENTS = 1_000;
/** How long slow clients take nothing, so that answers wait for them. */
const SLOW_SECONDS = 10;
/** Bytes that their answers may hold in all: a quarter of their bodies. */
const SLOW_BYTES_MAX = (SLOW_CLIENTS * 1_000_000) / 4;

interface Slice {
  readonly rate: number;
  readonly p99Ms: number;
  /** CPU time of the server per request. */
  readonly cpu: number;
}

interface Servers {
  readonly pop: PopProcess;
  /** Undefined where nginx is not installed. */
  readonly nginx: { readonly url: string; readonly process: ChildProcess } | undefined;
  close(): Promise<void>;
}

export const nodeThroughput: Bench = {
  name: "pop-node",
  title: "Requests per second of a PoP on Node",
  async run(options) {
    const servers = await start(options);
    const generator = startGenerator();
    try {
      const rows: string[][] = [];
      for (const load of LOADS) {
        const slices = Object.fromEntries(ROUTES.map((route) => [route, [] as Slice[]])) as Record<Route, Slice[]>;
        for (let round = 0; round <= (options.quick ? 1 : ROUNDS); round++) {
          for (const route of ROUTES) {
            const slice = await measure(servers, route, load, generator);
            // The first round warms up the compilers.
            if (slice && round > 0) slices[route].push(slice);
          }
        }
        rows.push(
          ...ROUTES.filter((route) => slices[route].length > 0).map((route) => rowOf(load.name, route, slices)),
        );
        for (const row of rows.slice(-ROUTES.length)) options.progress(row.join("  "));
      }
      const memory = await slowClients(servers.pop, options);
      return describe(rows, memory, servers.nginx !== undefined);
    } finally {
      generator.kill();
      await servers.close();
    }
  },
};

async function measure(
  { pop, nginx }: Servers,
  route: Route,
  load: Load,
  generator: ChildProcess,
): Promise<Slice | undefined> {
  if (route === "nginx" && !nginx) return undefined;
  const [base, pid] =
    route === "nginx"
      ? [`${nginx!.url}/`, nginx!.process.pid!]
      : [`${pop.url}${route === "/o/" ? "/o/" : "/v1/read/"}bench/`, pop.process.pid!];
  const before = cpuMs(pid);
  const job = { urls: namesOf(load).map((name) => base + name), connections: CONNECTIONS, seconds: SECONDS };
  const result = await runJob(generator, job);
  if (result.bytes < result.requests * load.bytes) throw new Error(`${base}: answers are shorter than ${load.bytes}`);
  return {
    rate: result.requests / result.seconds,
    p99Ms: result.p99Ms,
    cpu: (cpuMs(pid) - before) / result.requests,
  };
}

function namesOf({ bytes, count }: Load): string[] {
  return Array.from({ length: count }, (_, i) => `${bytes}-${i}`);
}

function rowOf(load: string, route: Route, slices: Record<Route, Slice[]>): string[] {
  const rateOf = (one: Route): number => summarize(slices[one].map(({ rate }) => rate)).median;
  const own = slices[route];
  return [
    `${load}: ${route}`,
    spread(summarize(own.map(({ rate }) => rate)), 0),
    slices.nginx.length > 0 ? (rateOf(route) / rateOf("nginx")).toFixed(2) : "-",
    spread(summarize(own.map(({ p99Ms }) => p99Ms)), 1),
    spread(summarize(own.map(({ cpu }) => cpu)), 2),
  ];
}

interface Memory {
  readonly idle: number;
  readonly peak: number;
  readonly answered: number;
}

/** A thousand clients ask for 1 MB each, and take nothing for ten seconds. Memory is what the kernel counts. */
async function slowClients({ url, process }: PopProcess, { progress }: BenchOptions): Promise<Memory> {
  const { hostname, port } = new URL(url);
  const idle = residentBytes(process.pid!) ?? 0;
  const sockets: Socket[] = [];
  let answered = 0;
  for (let i = 0; i < SLOW_CLIENTS; i++) {
    const socket = createConnection({ host: hostname, port: Number(port) });
    socket.on("error", () => {});
    socket.once("connect", () => socket.write(`GET /o/bench/1000000-0 HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`));
    socket.once("readable", () => {
      const head = (socket.read(12) as Buffer | null)?.toString();
      if (head === "HTTP/1.1 200") answered++;
    });
    sockets.push(socket);
  }
  let peak = idle;
  for (let i = 0; i < SLOW_SECONDS * 10; i++) {
    await sleep(100);
    peak = Math.max(peak, residentBytes(process.pid!) ?? 0);
  }
  for (const socket of sockets) socket.destroy();
  if (peak - idle > SLOW_BYTES_MAX) throw new Error(`slow clients cost ${((peak - idle) / 1e6).toFixed(0)} MB`);
  progress(`slow clients: ${(idle / 1e6).toFixed(0)} MB idle, ${(peak / 1e6).toFixed(0)} MB, ${answered} answers`);
  return { idle, peak, answered };
}

async function start({ progress }: BenchOptions): Promise<Servers> {
  const memoryBytes = 16 * 2 ** 20;
  const node = await startNodePop({ names: FILES, memoryBytes });
  try {
    await fillCache(node.pop, progress);
    const nginx = await startNginx(node.folder, node.files, progress);
    const close = async (): Promise<void> => {
      nginx?.process.kill();
      await node.close();
    };
    return { pop: node.pop, nginx, close };
  } catch (error) {
    await node.close();
    throw error;
  }
}

/** Lets the cache manager cache all objects whole. */
async function fillCache(pop: PopProcess, progress: BenchOptions["progress"]): Promise<void> {
  for (let period = 1; period <= PERIODS_MAX; period++) {
    for (const name of FILES) await (await fetch(`${pop.url}/o/bench/${name}`)).arrayBuffer();
    await sleep(COUNTS_FLUSHED_MS);
    await pop.runPeriod();
    await sleep(CONFIGURATION_MS);
    let whole = 0;
    for (const name of FILES) {
      const { byteLength } = await (await fetch(`${pop.url}/v1/read/bench/${name}`)).arrayBuffer();
      if (byteLength >= Number.parseInt(name, 10)) whole++;
    }
    progress(`period ${period}: ${whole} of ${FILES.length} objects are cached whole`);
    if (whole === FILES.length) return;
  }
  throw new Error(`the objects are not cached after ${PERIODS_MAX} periods`);
}

async function startNginx(
  folder: string,
  files: string,
  progress: BenchOptions["progress"],
): Promise<Servers["nginx"]> {
  if (spawnSync("nginx", ["-v"]).error) {
    progress("nginx is not installed: apt-get install nginx. There is nothing to compare with.");
    return undefined;
  }
  const port = await freePort();
  const path = join(folder, "nginx.conf");
  // One process, which is the master too: a PoP is one process.
  await writeFile(
    path,
    `daemon off; master_process off; pid ${join(folder, "nginx.pid")}; error_log ${join(folder, "nginx.log")};
events { worker_connections 2048; }
http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  keepalive_requests 1000000000; server { listen 127.0.0.1:${port}; root ${files}; } }
`,
  );
  const child = spawn("nginx", ["-c", path, "-p", folder], { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 50; i++) {
    const isUp = await fetch(`${url}/${FILES[0]}`).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) return { url, process: child };
    await sleep(100);
  }
  throw new Error(`nginx does not answer: ${await readFile(join(folder, "nginx.log"), "utf8").catch(() => "no log")}`);
}

function describe(rows: string[][], { idle, peak, answered }: Memory, hasNginx: boolean): string {
  return [
    `${CONNECTIONS} keep-alive connections from a process of their own ask for a cached object (4+2, one stripe), ${SECONDS} s ` +
      `each, alternating, median (quartiles) of ${ROUNDS} rounds. *bundle* is \`/v1/read/\`, which the client decodes; \`/o/\` is ` +
      `decoded by the PoP. ` +
      (hasNginx
        ? "nginx serves the same bytes from disk by `sendfile`, with one process."
        : "nginx was not installed."),
    table(["route", "requests/s", "share of nginx", "p99, ms", "CPU of the server, ms"], rows),
    "The PoP has 16 MiB of memory for values (`MEMORY_BYTES`; the default is 256 MiB), and serves one object from there. Of 40 it reads and verifies each from disk.",
    `${SLOW_CLIENTS.toLocaleString("en")} clients ask for 1 MB through \`/o/\` and take almost nothing for ${SLOW_SECONDS} s: the process grows ` +
      `from ${(idle / 1e6).toFixed(0)} MB to at most ${(peak / 1e6).toFixed(0)} MB (resident), and ${answered.toLocaleString("en")} of them have the beginning of an answer.`,
    describeMachine(),
  ].join("\n\n");
}
