/** A PoP in real workerd with its buckets, and objects in them. For tests. */
import { createHash } from "node:crypto";
import {
  chunkName,
  encodeHashes,
  encodeManifest,
  FrameReader,
  manifestName,
  parsePlan,
  stripeCount,
  stripeShape,
  versionText,
  type Frame,
  type Manifest,
  type Plan,
} from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm/node";
import { startPops, type Pops } from "../dev/index.ts";
import { startBuckets, type BucketServer } from "./bucket-server.ts";

export const REGIONS = ["r0", "r1", "r2", "r3", "r4", "r5"];
export const POP = "fra";
export const ADMIN_TOKEN = "letmein";

export interface TestWorld {
  readonly buckets: BucketServer;
  readonly pops: Pops;
  readonly url: string;
  readonly logs: string[];
  put(key: string, content: Uint8Array, options?: PutOptions): Promise<Manifest>;
  kv(): ReturnType<Pops["miniflare"]["getKVNamespace"]>;
  status(): Promise<Status>;
  close(): Promise<void>;
}

export interface PutOptions {
  readonly k?: number;
  readonly m?: number;
  readonly stripeBytes?: number;
  /** Changes the manifest before it is stored. */
  readonly edit?: (manifest: Manifest) => unknown;
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
  readonly regions: { name: string; down: boolean; meanMs: number }[];
  readonly lastPeriod: {
    written: number;
    evicted: number;
    reconstructed: number;
    left: number;
    operations: number;
    errors: string[];
  };
  readonly isolate: { chunkCache: { hits: number; misses: number; malformed: number; kvFailures: number } };
}

export async function startWorld(vars: Record<string, string> = {}): Promise<TestWorld> {
  const buckets = await startBuckets();
  const logs: string[] = [];
  const regions = REGIONS.map((name) => ({
    name,
    url: `http://public.invalid/${name}`,
    popUrl: `${buckets.url}/${name}`,
  }));
  const pops = await startPops({
    pops: [{ name: POP, vars: { REGIONS: JSON.stringify(regions), ADMIN_TOKEN, MANIFEST_TTL_SECONDS: "0", ...vars } }],
    onLog: (line) => logs.push(line),
  });
  const { url } = pops.pops[0]!;
  return {
    buckets,
    pops,
    url,
    logs,
    put: (key, content, options) => put(buckets, key, content, options),
    kv: () => pops.miniflare.getKVNamespace("CHUNKS", POP),
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

async function put(
  { objects }: BucketServer,
  key: string,
  content: Uint8Array,
  { k = 4, m = 2, stripeBytes = 64 * 1024, edit = (manifest) => manifest }: PutOptions = {},
): Promise<Manifest> {
  const codec = await loadCodec();
  const shape = { k, m, stripeBytes, bytes: content.length, sha256: sha256(content).toString("hex") };
  const n = k + m;
  const chunks: Uint8Array[][] = Array.from({ length: n }, () => []);
  const hashes: string[] = [];
  for (let index = 0; index < stripeCount(shape); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(shape, index);
    const padded = new Uint8Array(shardBytes * k);
    padded.set(content.subarray(start, start + dataBytes));
    const data = Array.from({ length: k }, (_, i) => padded.subarray(i * shardBytes, (i + 1) * shardBytes));
    const parity = codec.encode(
      data,
      Array.from({ length: m }, (_, i) => k + i),
    );
    const shards = [...data, ...parity];
    for (const [i, shard] of shards.entries()) chunks[i]!.push(shard);
    hashes.push(encodeHashes(shards.map((shard) => new Uint8Array(sha256(shard)))));
  }
  const manifest: Manifest = {
    agarose: 1,
    key,
    version: sha256(new TextEncoder().encode(versionText(shape)))
      .toString("hex")
      .slice(0, 32),
    contentType: "application/octet-stream",
    headers: {},
    modified: "2026-01-02T03:04:05.000Z",
    placement: Array.from({ length: n }, (_, i) => REGIONS[i % REGIONS.length]!),
    hashes,
    ...shape,
  };
  for (const [i, shards] of chunks.entries()) {
    objects.set(
      `${manifest.placement[i]}/${chunkName(key, manifest.version, i)}`,
      new Uint8Array(Buffer.concat(shards)),
    );
  }
  const stored = edit(manifest);
  const bytes = stored instanceof Uint8Array ? stored : encodeManifest(stored as Manifest);
  for (const region of REGIONS) objects.set(`${region}/${manifestName(key)}`, bytes);
  return manifest;
}

/** Reads an object as a client without a service worker does; `kind` is its `x-agarose-read`. */
export async function readObject(world: TestWorld, key: string): Promise<{ kind: string | null; bytes: Uint8Array }> {
  const response = await fetch(`${world.url}/o/${key}`);
  return { kind: response.headers.get("x-agarose-read"), bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Puts an object and has it cached in whole, k = 4 chunks of every stripe; returns its version. */
export async function putCached(world: TestWorld, key: string, content: Uint8Array): Promise<string> {
  const { version } = await world.put(key, content);
  await readObject(world, key);
  await world.pops.cron(POP);
  const { cache, lastPeriod } = await world.status();
  const entry = cache.objects.find((object) => object.version === version);
  if (lastPeriod.errors.length > 0 || entry?.chunks.length !== 4 || entry.done !== entry.stripes) {
    throw new Error(`${key} was not cached in whole: ${JSON.stringify({ entry, lastPeriod })}`);
  }
  return version;
}

/** Bytes that no codec and no cache could produce by accident. */
export function randomBytes(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed >>> 0;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

export function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

export interface ReadBundle {
  readonly plan: Plan;
  /** Without the plan. */
  readonly frames: Frame[];
}

/** Reads a whole bundle, which must end with its end frame. */
export async function readBundle(url: string, key: string): Promise<ReadBundle> {
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const reader = new FrameReader(response.body!);
  const plan = parsePlan((await reader.next()).payload, key);
  const frames: Frame[] = [];
  for (;;) {
    const frame = await reader.next();
    frames.push(frame);
    if (frame.type === "end") return { plan, frames };
  }
}
