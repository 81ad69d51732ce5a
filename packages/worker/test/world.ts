/** A PoP in real workerd with its buckets, and objects in them. For tests. */
import { fileURLToPath } from "node:url";
import { systemSha256 } from "@agarose/core";
import { acceptUnsigned, parsePlan, type Frame, type Manifest, type Plan } from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import { startPops } from "@agarose/dev-world/pops";
import { startBuckets, type BucketServer } from "./bucket-server.ts";
import type { ValueStore } from "../src/runtime/storage-ports.ts";
import { inWorkerd, isOnNode, startNodePops, type ContractPops } from "./node-pops.ts";
import { putObject, REGIONS, type PutOptions } from "./objects.ts";

export { randomBytes, REGIONS } from "./objects.ts";

const LIMITED = fileURLToPath(new URL("platform/limits.worker.ts", import.meta.url));

export const POP = "fra";
export const ADMIN_TOKEN = "admin-token-of-16+";

export interface TestWorld {
  readonly buckets: BucketServer;
  readonly pops: ContractPops;
  readonly url: string;
  readonly logs: string[];
  put(key: string, content: Uint8Array, options?: PutOptions): Promise<Manifest>;
  /** The PoP's values by name. */
  kv(): Promise<ValueStore>;
  status(): Promise<Status>;
  close(): Promise<void>;
}

export interface Status {
  readonly epoch: number;
  readonly cache: {
    readonly cachedBytes: number;
    readonly objects: {
      version: string;
      key: string;
      chunks: number[];
      target: number[];
      done: number;
      stripes: number;
    }[];
  };
  readonly regions: { name: string; down: boolean; slow: boolean; meanMs: number; msPerByte: number; p99Ms: number }[];
  readonly cacheLatency: { readonly firstMs: number | null; readonly againMs: number | null };
  readonly lastPeriod: {
    popular: { key: string; popularity: number }[];
    written: number;
    evicted: number;
    reconstructed: number;
    left: number;
    waiting: number;
    operations: number;
    errors: string[];
  };
  readonly behind: { readonly key: string; readonly regions: string[] }[];
  readonly fillEgress: { readonly bytes: number; readonly bytesPerDayMax: number; readonly refusedStripes: number };
  readonly spending: { readonly usd: number; readonly writes: number; readonly reads: number };
  readonly isolate: {
    chunkCache: { hits: number; misses: number; malformed: number; kvFailures: number };
    regionImbalancePercent: number;
    stripes: { led: number; followed: number };
    openBreakers: string[];
    readsWithMemory: number;
    expiredReads: number;
    unconfirmedLookups: number;
  };
}

export interface WorldOptions {
  /** Run the Worker behind `limits.worker.ts`, which enforces what workerd does not. */
  readonly limited?: boolean;
  readonly inspectObjects?: boolean;
  /** R2 bindings by region; `withoutBindings`: the variables name them, and the Worker lacks them. */
  readonly bound?: Readonly<Record<string, string>>;
  readonly withoutBindings?: boolean;
  /** Further names by region: one more entry of REGIONS for the same bucket, as while a region gets another name. */
  readonly formerNames?: Readonly<Record<string, string>>;
  /** Port of the DevTools inspector. Default: no inspector. */
  readonly inspectorPort?: number;
}

export async function startWorld(
  vars: Record<string, string> = {},
  {
    limited,
    inspectObjects = false,
    inspectorPort,
    bound = {},
    withoutBindings = false,
    formerNames = {},
  }: WorldOptions = {},
): Promise<TestWorld> {
  const buckets = await startBuckets();
  const logs: string[] = [];
  const regions = REGIONS.flatMap((name) =>
    [name, ...(formerNames[name] === undefined ? [] : [formerNames[name]])].map((own) => ({
      name: own,
      url: `http://public.invalid/${name}`,
      popUrl: `${buckets.url}/${name}`,
      ...(bound[name] && { binding: bound[name] }),
    })),
  );
  const variables = {
    REGIONS: JSON.stringify(regions),
    ADMIN_TOKEN,
    MANIFEST_TTL_SECONDS: "0",
    UNSIGNED: String(vars["PUBLISHER_KEYS"] === undefined),
    ...vars,
  };
  const pops = isOnNode()
    ? await startNodePops([{ name: POP, vars: variables }], (line) => logs.push(`${line}\n`))
    : inWorkerd(
        await startPops({
          pops: [{ name: POP, vars: variables, r2Buckets: withoutBindings ? [] : Object.values(bound) }],
          onLog: (line) => logs.push(line),
          inspectObjects,
          ...(inspectorPort === undefined ? {} : { inspectorPort }),
          ...(limited ? { entry: LIMITED, compatibilityFlags: ["nodejs_als"] } : {}),
        }),
      );
  const { url } = pops.pops[0]!;
  return {
    buckets,
    pops,
    url,
    logs,
    put: (key, content, options) => putObject(buckets, key, content, options),
    kv: () => pops.values(POP),
    async status() {
      const response = await fetch(`${url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      return (await response.json()) as Status;
    },
    async close() {
      await pops.dispose();
      await buckets.close();
    },
  };
}

/** The address of a client, as Cloudflare says it to a Worker, and as a proxy says it to a PoP on Node. */
export function clientHeaders(address: string): Record<string, string> {
  return { [isOnNode() ? "x-forwarded-for" : "cf-connecting-ip"]: address };
}

/** Reads an object as a client without a service worker does; `kind` is its `x-agarose-read`. */
export async function readObject(world: TestWorld, key: string): Promise<{ kind: string | null; bytes: Uint8Array }> {
  const response = await fetch(`${world.url}/o/${key}`);
  return { kind: response.headers.get("x-agarose-read"), bytes: new Uint8Array(await response.arrayBuffer()) };
}

const PATIENCE_MS = 60_000;

/**
 * Reads an object that is cached in whole until the cache alone delivers it. On a busy machine the cache can be late,
 * which brings spare requests to regions: such a read is `mixed`. No read may have other bytes or leave the cache out.
 */
export async function readFromCache(world: TestWorld, key: string, content: Uint8Array): Promise<void> {
  const untilMs = Date.now() + PATIENCE_MS;
  for (;;) {
    world.buckets.requests.length = 0;
    const { kind, bytes } = await readObject(world, key);
    if (Buffer.compare(bytes, content) !== 0) throw new Error(`${key} has wrong bytes: a read of ${kind}`);
    if (kind !== "edge" && kind !== "mixed") throw new Error(`${key} does not come from the cache: ${kind}`);
    if (kind === "edge" && !world.buckets.requests.some(({ name }) => name.startsWith("chunks/"))) return;
    if (Date.now() > untilMs) throw new Error(`${key} never comes from the cache alone`);
  }
}

/** Puts an object and has it cached in whole, k = 4 chunks of every stripe; returns its version. */
export async function putCached(
  world: TestWorld,
  key: string,
  content: Uint8Array,
  options?: PutOptions,
): Promise<string> {
  const { version } = await world.put(key, content, options);
  await readObject(world, key);
  await world.pops.cron(POP);
  const { cache, lastPeriod } = await world.status();
  const entry = cache.objects.find((object) => object.version === version);
  if (lastPeriod.errors.length > 0 || entry?.chunks.length !== 4 || entry.done !== entry.stripes) {
    throw new Error(`${key} was not cached in whole: ${JSON.stringify({ entry, lastPeriod })}`);
  }
  return version;
}

export interface ReadBundle {
  readonly plan: Plan;
  /** Without the plan. */
  readonly frames: Frame[];
}

/** Reads a whole bundle, which must end with its end frame. */
export async function readBundle(url: string, key: string, headers: Record<string, string> = {}): Promise<ReadBundle> {
  const response = await fetch(url, { headers });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const reader = new FrameReader(response.body!);
  const plan = await parsePlan((await reader.next()).payload, { key, trust: acceptUnsigned, sha256: systemSha256 });
  const frames: Frame[] = [];
  for (;;) {
    const frame = await reader.next();
    frames.push(frame);
    if (frame.type === "end") return { plan, frames };
  }
}
