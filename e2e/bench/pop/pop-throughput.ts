/**
 * Requests per second of one PoP's bundle route, against a bare Worker in the same workerd that reads the same value
 * from KV, or the same bytes from the Cache API, and returns them.
 */
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { kvNamespaceOf, startPops, type Pops } from "@agarose/dev-world/pops";
import type { Bench, BenchOptions } from "../bench.ts";
import { COUNTS_FLUSHED_MS, startBuckets, withClosers } from "./buckets.ts";
import { runJob, startGenerator } from "./run-job.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { cpuMs, descendants } from "@agarose/dev-world/process-memory";
import { spread, summarize, table, type Summary } from "@agarose/dev-world/statistics";

interface Load {
  readonly name: string;
  /** Length of each object. */
  readonly bytes: number;
  /** Objects asked for in turn. */
  readonly count: number;
}

/** Forty megabytes are more than an isolate keeps in its own memory, so that all of them come from the Cache API. */
const LOADS: readonly Load[] = [
  { name: "one of 1 MB", bytes: 1_000_000, count: 1 },
  { name: "40 of 1 MB", bytes: 1_000_000, count: 40 },
  { name: "one of 100 kB", bytes: 100_000, count: 1 },
];
const POP = "fra";
const CONNECTIONS = 8;
/** A PoP whose cache does not answer in time sends a plan without chunks, which is less work: that must stay rare. */
const COMPLETE_MIN = 0.98;
/** The rest is handed on later, or was dropped: then monitoring would not be what is measured. */
const COUNTED_MIN = 0.98;
/** Durable Objects of the request monitor, as in `request-counter.ts` of the Worker. */
const MONITOR_SHARDS = 4;
const ROUNDS = 7;
const SECONDS = 2;

interface Rate {
  /** Requests per second. */
  readonly rate: Summary;
  /** CPU time of workerd per request, in ms: unlike the rate, it does not depend on the load of the machine. */
  readonly cpu: Summary;
}

const ROUTES = ["bundle", "bare KV", "bare Cache API"] as const;
type Route = (typeof ROUTES)[number];

interface Result {
  readonly load: Load;
  /** Bundles sent, and those that the request monitor knows of. */
  readonly bundles: { readonly sent: number; readonly counted: number };
  readonly rates: Record<Route, Rate>;
}

export const popThroughput: Bench = {
  name: "pop-throughput",
  title: "Requests per second of one PoP",
  async run(options) {
    const pop = await startPop();
    const generator = startGenerator();
    try {
      const results: Result[] = [];
      for (const each of LOADS) results.push(await measure(pop, each, generator, options));
      return describe(results);
    } finally {
      generator.kill();
      await pop.close();
    }
  },
};

interface Pop {
  readonly pops: Pops;
  readonly url: string;
  readonly bareUrl: string;
  close(): Promise<void>;
}

async function measure(
  pop: Pop,
  load: Load,
  generator: ChildProcess,
  { quick, progress }: BenchOptions,
): Promise<Result> {
  const values = await cachedValues(pop, load);
  const urls: Record<Route, string[]> = {
    bundle: values.map(({ key, version }) => `${pop.url}/v1/read/${key}?version=${version}&from=0&to=0`),
    "bare KV": values.map(({ name }) => `${pop.bareUrl}/kv/${encodeURIComponent(name)}`),
    "bare Cache API": values.map(({ name }) => `${pop.bareUrl}/cache/${encodeURIComponent(name)}`),
  };
  const slices: Record<Route, Slice[]> = { bundle: [], "bare KV": [], "bare Cache API": [] };
  await requestsCounted(pop);
  let sent = 0;
  // One round more, which warms up the compilers and does not count.
  for (let round = 0; round <= (quick ? 1 : ROUNDS); round++) {
    for (const route of ROUTES) {
      const slice = await loadSlice(generator, urls[route], load.bytes);
      if (route === "bundle") sent += slice.requests;
      if (round > 0) slices[route].push(slice);
    }
  }
  const rates = Object.fromEntries(ROUTES.map((route) => [route, rateOf(slices[route])])) as Result["rates"];
  for (const route of ROUTES) {
    const { rate, cpu } = rates[route];
    progress(`${load.name}, ${route}: ${spread(rate, 0)} requests/s, CPU ${spread(cpu, 2)} ms`);
  }
  const bundles = { sent, counted: await requestsCounted(pop) };
  progress(`${load.name}: ${sent} bundles, of which the request monitor counted ${bundles.counted}`);
  if (bundles.counted < COUNTED_MIN * sent) throw new Error("the request monitor did not count what was sent");
  return { load, bundles, rates };
}

/** Requests that the Durable Objects of the request monitor have counted since this was last asked. */
async function requestsCounted({ pops }: Pop): Promise<number> {
  await sleep(COUNTS_FLUSHED_MS);
  const monitors = await pops.miniflare.getDurableObjectNamespace("REQUEST_MONITOR", POP);
  const ended = Array.from({ length: MONITOR_SHARDS }, (_, shard) => {
    const monitor = monitors.get(monitors.idFromName(`shard-${shard}`)) as unknown as {
      closePeriod(limit: number): Promise<{ requests: number }[]>;
    };
    return monitor.closePeriod(Number.MAX_SAFE_INTEGER);
  });
  return (await Promise.all(ended)).flat().reduce((sum, { requests }) => sum + requests, 0);
}

interface Slice {
  readonly requests: number;
  readonly rate: number;
  readonly cpu: number;
}

async function loadSlice(generator: ChildProcess, urls: readonly string[], bytesExpected: number): Promise<Slice> {
  const [workerd] = descendants(process.pid, "workerd");
  if (workerd === undefined) throw new Error("workerd is not among the processes of this one");
  const cpuBeforeMs = cpuMs(workerd);
  const { requests, bytes, seconds } = await runJob(generator, { urls, connections: CONNECTIONS, seconds: SECONDS });
  if (bytes >= requests * bytesExpected * COMPLETE_MIN) {
    return { requests, rate: requests / seconds, cpu: (cpuMs(workerd) - cpuBeforeMs) / requests };
  }
  throw new Error(`${urls[0]}: ${requests} answers of ${Math.round(bytes / requests)} bytes for ${bytesExpected}`);
}

function rateOf(slices: readonly Slice[]): Rate {
  return { rate: summarize(slices.map(({ rate }) => rate)), cpu: summarize(slices.map(({ cpu }) => cpu)) };
}

/** One PoP with its buckets and objects, and beside it the bare Worker on the same namespace. */
function startPop(): Promise<Pop> {
  return withClosers(async (closers) => {
    const buckets = await startBuckets({ code: { k: 9, m: 3 } });
    closers.push(() => buckets.close());
    await buckets.put([...new Set(LOADS.flatMap(namesOf))]);
    const vars = { ...buckets.variables, CACHE_BYTES: "100000000" };
    const pops = await startPops({ pops: [{ name: POP, vars }], beside: [await bareWorker()] });
    closers.push(() => pops.dispose());
    const { origin } = await pops.miniflare.unsafeGetDirectURL("bare");
    return { pops, url: pops.pops[0]!.url, bareUrl: origin };
  });
}

async function bareWorker() {
  return {
    name: "bare",
    modules: true as const,
    script: await readFile(new URL("bare.worker.js", import.meta.url), "utf8"),
    kvNamespaces: { CHUNKS: kvNamespaceOf(POP, "CHUNKS") },
    unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
  };
}

function namesOf({ bytes, count }: Load): string[] {
  return Array.from({ length: count }, (_, i) => `${bytes}-${i}`);
}

interface CachedValue {
  readonly key: string;
  readonly version: string;
  /** Of the value in KV: one, because the object has one stripe. */
  readonly name: string;
}

/** Makes the objects of a load popular and waits until the PoP has them cached whole. */
async function cachedValues({ pops, url }: Pop, load: Load): Promise<CachedValue[]> {
  const { bytes, count } = load;
  const kv = await pops.miniflare.getKVNamespace("CHUNKS", POP);
  const keys = namesOf(load).map((name) => `bench/${name}`);
  for (let period = 0; period < 4; period++) {
    const values: CachedValue[] = [];
    for (const key of keys) {
      const response = await fetch(`${url}/o/${key}`);
      await response.arrayBuffer();
      const version = (response.headers.get("etag") ?? "").replaceAll('"', "");
      values.push({ key, version, name: `chunks:${version}:0` });
    }
    await sleep(COUNTS_FLUSHED_MS);
    await pops.cron();
    const lengths = await Promise.all(
      values.map(({ name }) => kv.get(name, "arrayBuffer").then((v) => v?.byteLength ?? 0)),
    );
    if (lengths.some((length) => length < bytes)) continue;
    for (const key of keys) await untilBundled(`${url}/v1/read/${key}`, bytes);
    return values;
  }
  throw new Error(`the cache manager did not cache ${count} objects of ${bytes} bytes`);
}

/** Isolates look for a new configuration every 5 s. */
async function untilBundled(url: string, bytes: number): Promise<void> {
  for (let i = 0; i < 10; i++) {
    const bundle = await (await fetch(url)).arrayBuffer();
    if (bundle.byteLength >= bytes) return;
    await sleep(1_000);
  }
  throw new Error(`${url} does not send what is cached`);
}

function describe(results: readonly Result[]): string {
  const rows = results.flatMap(({ load, rates }) =>
    ROUTES.map((route) => [
      `${load.name}: ${route}`,
      spread(rates[route].rate, 0),
      (rates.bundle.rate.median / rates[route].rate.median).toFixed(2),
      spread(rates[route].cpu, 2),
      (rates.bundle.cpu.median / rates[route].cpu.median).toFixed(2),
    ]),
  );
  const sum = (what: "sent" | "counted"): string =>
    results.reduce((total, { bundles }) => total + bundles[what], 0).toLocaleString("en");
  return [
    "`GET /v1/read/<key>?version=` of a wholly cached object (9+3, one stripe) against a bare Worker in the same workerd: " +
      `${CONNECTIONS} keep-alive connections from a process of its own, ${SECONDS} s each, alternating, median (quartiles) of ` +
      `${ROUNDS} rounds. *Bare KV* reads the same KV value and returns it; *bare Cache API* reads the same bytes from the Cache ` +
      "API, which is where the bundle route finds what it has read before. CPU is user and system time of workerd per request. " +
      `Monitoring is on: of ${sum("sent")} bundles the request monitor counted ${sum("counted")}.`,
    table(["objects: route", "requests/s", "bundle / this", "CPU, ms", "bundle / this"], rows),
    describeMachine(),
  ].join("\n\n");
}
