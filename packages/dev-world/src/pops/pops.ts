/** The PoPs of the local world: the Worker of wrangler.toml, several times in one workerd. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Miniflare, type WorkerOptions } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { bundleWorker, WRANGLER_CONFIG, type WorkerBundle } from "@agarose/worker/build";
import type { KvFault } from "./kv-fault.ts";

export type { KvFault } from "./kv-fault.ts";

export interface PopOptions {
  readonly name: string;
  /** Environment of wrangler.toml whose bindings and variables it has. Default: that of its name. */
  readonly environment?: string;
  /** Variables in place of those in wrangler.toml. */
  readonly vars?: Readonly<Record<string, string>>;
  /** Address to listen on. Default: a free port of 127.0.0.1. */
  readonly port?: number;
  /** The PoP that this is a further isolate of: it shares all that is stored, and no memory. Default: it is a PoP of its own. */
  readonly isolateOf?: string;
}

export interface PopsOptions {
  readonly pops: readonly PopOptions[];
  /** Told what the Workers log, line by line. Default: nobody. */
  readonly onLog?: (line: string) => void;
  /** Module of the Worker. Default: the real one behind a KV namespace that fails on demand. */
  readonly entry?: string;
  /** Beyond those of wrangler.toml. Default: none. */
  readonly compatibilityFlags?: readonly string[];
  /** For tests: what Durable Objects have stored can be looked at, through `miniflare`. Default: false. */
  readonly inspectObjects?: boolean;
  /** For measurements: where the DevTools inspector listens. Default: nowhere. */
  readonly inspectorPort?: number;
  /** Workers to run beside the PoPs in the same workerd: what a benchmark compares them with. Default: none. */
  readonly beside?: readonly WorkerOptions[];
}

export interface KvFaultState {
  readonly kv: KvFault;
  /** Operations that the fault has spoiled since it was set. */
  readonly fired: number;
}

export interface Pops {
  readonly pops: readonly { readonly name: string; readonly url: string }[];
  /** Fires the Cron Trigger of one PoP, or of all of them at once, and resolves when the period is over. */
  cron(name?: string): Promise<void>;
  setFault(name: string, fault: { readonly kv: KvFault }): Promise<void>;
  /** The fault in force, and whether it did anything. */
  fault(name: string): Promise<KvFaultState>;
  /** For tests: the runtime itself, to look into KV. */
  readonly miniflare: Miniflare;
  dispose(): Promise<void>;
}

const ENTRY = fileURLToPath(new URL("./dev.worker.ts", import.meta.url));
const FAULT_URL = "http://pop.invalid/__dev/fault";

/** The namespace behind a binding of a PoP, for another Worker to look at. */
export function kvNamespaceOf(pop: string, binding: string): string {
  return `${pop}-${binding}`;
}

/** Starts all PoPs. Nothing they store outlives them. */
export async function startPops(options: PopsOptions): Promise<Pops> {
  const {
    pops,
    onLog = () => {},
    entry = ENTRY,
    compatibilityFlags = [],
    beside = [],
    inspectorPort,
    inspectObjects,
  } = options;
  const outDir = await mkdtemp(join(tmpdir(), "agarose-worker-"));
  try {
    const modules = await modulesOf(await bundleWorker(entry, outDir));
    const miniflare = new Miniflare({
      workers: [...pops.map((pop) => workerOptions(pop, modules, compatibilityFlags)), ...beside],
      ...(inspectorPort === undefined ? {} : { inspectorPort }),
      ...(inspectObjects ? { unsafeInspectDurableObjects: true } : {}),
      handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
        for (const stream of [stdout, stderr]) stream.setEncoding("utf8").on("data", (text: string) => onLog(text));
      },
    });
    await miniflare.ready;
    return await face(miniflare, pops);
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
}

type Modules = NonNullable<Exclude<Extract<WorkerOptions, { modules: unknown }>["modules"], boolean>>;

async function modulesOf({ script, wasm }: WorkerBundle): Promise<Modules> {
  const text = { type: "ESModule" as const, path: "worker.js", contents: await readFile(script, "utf8") };
  const binaries = wasm.map(async (path) => {
    return { type: "CompiledWasm" as const, path: basename(path), contents: new Uint8Array(await readFile(path)) };
  });
  return [text, ...(await Promise.all(binaries))];
}

function workerOptions(
  { name, isolateOf, environment = isolateOf ?? name, vars, port = 0 }: PopOptions,
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
    bindings: { ...configured.bindings, POP: isolateOf ?? name, ...vars },
    ...(isolateOf && { durableObjects: elsewhere(configured.durableObjects ?? {}, isolateOf) }),
    // PoPs of one environment must not share a cache.
    kvNamespaces: Object.fromEntries(
      Object.keys(configured.kvNamespaces ?? {}).map((binding) => [binding, kvNamespaceOf(isolateOf ?? name, binding)]),
    ),
    unsafeDirectSockets: [{ host: "127.0.0.1", port }],
  } as WorkerOptions;
}

/** The Durable Objects of another Worker in place of own ones. */
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

async function face(miniflare: Miniflare, pops: readonly PopOptions[]): Promise<Pops> {
  const urls = await Promise.all(
    pops.map(async ({ name }) => {
      const { origin } = await miniflare.unsafeGetDirectURL(name);
      return { name, url: origin };
    }),
  );
  const cron = async (name: string): Promise<void> => {
    const worker = await miniflare.getWorker(name);
    const { outcome } = await worker.scheduled({ cron: "* * * * *", scheduledTime: new Date() });
    if (outcome !== "ok") throw new Error(`the Cron Trigger of PoP ${name} ended with ${outcome}`);
  };
  const askFault = async (name: string, init?: { method: string; body: string }): Promise<KvFaultState> => {
    const worker = await miniflare.getWorker(name);
    const response = await worker.fetch(FAULT_URL, init);
    if (!response.ok) throw new Error(`PoP ${name} refused a fault: ${await response.text()}`);
    return (await response.json()) as KvFaultState;
  };
  return {
    pops: urls,
    async cron(name) {
      await Promise.all((name === undefined ? pops.map((pop) => pop.name) : [name]).map(cron));
    },
    async setFault(name, fault) {
      await askFault(name, { method: "POST", body: JSON.stringify(fault) });
    },
    fault: (name) => askFault(name),
    miniflare,
    dispose: () => miniflare.dispose(),
  };
}
