/** The PoPs of the local world: several copies of the Worker of wrangler.toml in one workerd. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { CoreHeaders, Miniflare, type RequestInit, type WorkerOptions } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { bundleWorker, WRANGLER_CONFIG, type WorkerBundle } from "@agarose/worker/build";
import type { KvState } from "./kv-fault.ts";

/** One PoP. */
export interface PopOptions {
  readonly name: string;
  /** Environment of wrangler.toml that gives its bindings and variables. Default: the PoP's name. */
  readonly environment?: string;
  /** Variables that replace those of wrangler.toml. */
  readonly vars?: Readonly<Record<string, string>>;
  /** Address to listen on. Default: a free port of 127.0.0.1. */
  readonly port?: number;
  /** R2 bindings in addition to those of wrangler.toml; each PoP has buckets of its own. Default: none. */
  readonly r2Buckets?: readonly string[];
  /** Makes this a further isolate of that PoP: it shares its storage, and no memory. Default: a PoP of its own. */
  readonly isolateOf?: string;
}

/** Options of the PoPs. */
export interface PopsOptions {
  readonly pops: readonly PopOptions[];
  /** Receives the log output of the Workers. Default: dropped. */
  readonly onLog?: (line: string) => void;
  /** Module of the Worker. Default: the real Worker on a KV namespace that fails on demand. */
  readonly entry?: string;
  /** Compatibility flags in addition to those of wrangler.toml. Default: none. */
  readonly compatibilityFlags?: readonly string[];
  /** For tests: lets `miniflare` read the storage of Durable Objects. Default: false. */
  readonly inspectObjects?: boolean;
  /** For measurements: port of the DevTools inspector. Default: no inspector. */
  readonly inspectorPort?: number;
}

/** The fault of a PoP's KV. */
export interface KvFaultState {
  readonly kv: KvState;
  /** How many operations it has spoiled since it was set. */
  readonly fired: number;
}

/** Running PoPs. */
export type Pops = Awaited<ReturnType<typeof handleOf>>;

const ENTRY = fileURLToPath(new URL(`dev.worker${extname(import.meta.url)}`, import.meta.url));
/** A period of a busy machine takes seconds. */
const ANSWER_MAX_MS = 90_000;
/** A busy machine takes a minute or two to start many PoPs. Tests end after 300 s. */
const START_MAX_MS = 240_000;
/** Parts of the output that the error of a late answer repeats. */
const RECENT_MAX = 50;
const CRON_URL = `http://pop.invalid/cdn-cgi/handler/scheduled?${new URLSearchParams({ cron: "* * * * *" })}`;
const FAULT_URL = "http://pop.invalid/__dev/fault";

/** Starts all PoPs, whose storage is deleted when they stop. */
export async function startPops(options: PopsOptions): Promise<Pops> {
  const { pops, onLog = () => {}, entry = ENTRY, compatibilityFlags = [], inspectorPort, inspectObjects } = options;
  const modules = await modulesOf(entry);
  const recent: string[] = [];
  const miniflare = new Miniflare({
    unsafeTriggerHandlers: true,
    workers: pops.map((pop) => workerOptions(pop, modules, compatibilityFlags)),
    ...(inspectorPort === undefined ? {} : { inspectorPort }),
    ...(inspectObjects ? { unsafeInspectDurableObjects: true } : {}),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const stream of [stdout, stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          recent.push(text);
          if (recent.length > RECENT_MAX) recent.shift();
          onLog(text);
        });
      }
    },
  });
  await inTime(miniflare.ready, `the start of ${pops.length} PoPs`, recent, START_MAX_MS);
  return await handleOf(miniflare, pops, recent);
}

type Modules = NonNullable<Exclude<Extract<WorkerOptions, { modules: unknown }>["modules"], boolean>>;

/** Bundles that this process has made, by entry: half of the time that PoPs take to start. */
const bundles = new Map<string, Promise<Modules>>();

function modulesOf(entry: string): Promise<Modules> {
  const made = bundles.get(entry) ?? bundle(entry);
  bundles.set(entry, made);
  return made;
}

async function bundle(entry: string): Promise<Modules> {
  const outDir = await mkdtemp(join(tmpdir(), "agarose-worker-"));
  try {
    return await readModules(await bundleWorker(entry, outDir));
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
}

async function readModules({ script, wasm }: WorkerBundle): Promise<Modules> {
  const text = { type: "ESModule" as const, path: "worker.js", contents: await readFile(script, "utf8") };
  const binaries = wasm.map(async (path) => {
    return { type: "CompiledWasm" as const, path: basename(path), contents: new Uint8Array(await readFile(path)) };
  });
  return [text, ...(await Promise.all(binaries))];
}

function workerOptions(
  { name, isolateOf, environment = isolateOf ?? name, vars, r2Buckets = [], port = 0 }: PopOptions,
  modules: Modules,
  compatibilityFlags: readonly string[],
): WorkerOptions {
  const configured = unstable_getMiniflareWorkerOptions(WRANGLER_CONFIG, environment).workerOptions;
  return {
    ...configured,
    name,
    modules,
    compatibilityFlags: [...(configured.compatibilityFlags ?? []), ...compatibilityFlags],
    modulesRoot: "",
    // The local world has no data centers of Cloudflare to be in, and all of its clients have one address. Its caches
    // change when it is told to.
    bindings: {
      ...configured.bindings,
      POP: isolateOf ?? name,
      LOCATION: "",
      FILL_CLIENTS_MIN: "1",
      EXCHANGE_SECONDS: "0",
      ...vars,
    },
    ...(isolateOf && { durableObjects: elsewhere(configured.durableObjects ?? {}, isolateOf) }),
    // PoPs of one environment must not share a cache.
    kvNamespaces: Object.fromEntries(
      Object.keys(configured.kvNamespaces ?? {}).map((binding) => [binding, `${isolateOf ?? name}-${binding}`]),
    ),
    r2Buckets: Object.fromEntries(r2Buckets.map((binding) => [binding, `${name}-${binding}`])),
    unsafeDirectSockets: [{ host: "127.0.0.1", port }],
  } as WorkerOptions;
}

/** Returns bindings to the Durable Objects of the Worker `scriptName`. */
function elsewhere(
  objects: NonNullable<WorkerOptions["durableObjects"]>,
  scriptName: string,
): WorkerOptions["durableObjects"] {
  const designators = Object.entries(objects as Record<string, string | { readonly className: string }>);
  return Object.fromEntries(
    designators.map(([binding, object]) => [
      binding,
      { ...(typeof object === "string" ? { className: object } : object), scriptName },
    ]),
  );
}

/** Settles as `answer` does. Rejects after `ms`: a test that hangs says nothing of what it waits for. */
async function inTime<T>(answer: Promise<T>, what: string, recent: readonly string[], ms = ANSWER_MAX_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`${what} has not ended in ${ms / 1_000} s. The last output:\n${recent.join("")}`));
  }, ms);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function handleOf(miniflare: Miniflare, pops: readonly PopOptions[], recent: readonly string[]) {
  const urls = await Promise.all(
    pops.map(async ({ name }) => {
      const { origin } = await miniflare.unsafeGetDirectURL(name);
      return { name, url: origin };
    }),
  );
  // Not by `getWorker`, whose proxies take a thread of this process, and a tenth of a second of it to begin.
  const ask = async (name: string, url: string, what: string, init: RequestInit = {}): Promise<string> => {
    const asking = async (): Promise<string> => {
      const headers = { [CoreHeaders.ROUTE_OVERRIDE]: name };
      const response = await miniflare.dispatchFetch(url, { ...init, headers });
      const text = await response.text();
      if (!response.ok) throw new Error(`${what} of PoP ${name} failed: ${text}`);
      return text;
    };
    return inTime(asking(), `${what} of PoP ${name}`, recent);
  };
  const cron = async (name: string): Promise<void> => void (await ask(name, CRON_URL, "the Cron Trigger"));
  const askFault = async (name: string, init?: { method: string; body: string }): Promise<KvFaultState> =>
    JSON.parse(await ask(name, FAULT_URL, "the fault", init)) as KvFaultState;
  return {
    /** Name and URL of each, in the order of the options. */
    pops: urls,
    /** Fires the Cron Trigger of one PoP, or of all at once. Resolves when the handlers have ended. */
    async cron(name?: string) {
      await Promise.all((name === undefined ? pops.map((pop) => pop.name) : [name]).map(cron));
    },
    /** Sets the fault of a PoP's KV. */
    async setFault(name: string, fault: Pick<KvFaultState, "kv">) {
      await askFault(name, { method: "POST", body: JSON.stringify(fault) });
    },
    /** Returns the current fault of a PoP's KV. */
    fault: (name: string) => askFault(name),
    /** For tests: the runtime itself, to read KV. */
    miniflare,
    /** Ends workerd. */
    dispose: () => inTime(miniflare.dispose(), `the end of ${pops.length} PoPs`, recent),
  };
}
