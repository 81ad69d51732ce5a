/** Objects as `agarose put` stores them, made in memory. For tests. */
import { systemSha256, type FetchedResponse } from "@agarose/core";
import {
  blockBytesOf,
  chunkName,
  encodeManifest,
  hashBlocks,
  LEAF_LIST,
  LeafList,
  manifestName,
  pageStripesOf,
  sealManifest,
  stripeCount,
  stripeShape,
  type Gzip,
  type Manifest,
} from "@agarose/core/format";
import { javascriptCodec } from "@agarose/ec-wasm";

export const REGIONS = ["r0", "r1", "r2", "r3", "r4", "r5"];

/** S3 objects of all regions, as `<region>/<name>`. */
export interface Buckets {
  readonly objects: Map<string, Uint8Array>;
}

export interface PutOptions {
  readonly k?: number;
  readonly m?: number;
  readonly stripeBytes?: number;
  /** Default: 1. */
  readonly generation?: number;
  /** Segments that `content` has (docs/reference/format.md, "Compression"). Default: it is not compressed. */
  readonly gzip?: Gzip;
  /** Changes the manifest before it is stored. */
  readonly edit?: (manifest: Manifest) => unknown;
}

/** Stores chunk i in region i mod 6 and the manifest in all regions. Default: a (4, 2) code. */
export async function putObject(
  { objects }: Buckets,
  key: string,
  content: Uint8Array,
  { k = 4, m = 2, stripeBytes = 64 * 1024, generation = 1, gzip, edit = (manifest) => manifest }: PutOptions = {},
): Promise<Manifest> {
  const codec = javascriptCodec();
  const shape = { k, m, stripeBytes, bytes: content.length, sha256: await hexSha256(content) };
  const n = k + m;
  const blockBytes = blockBytesOf(shape);
  const chunks: Uint8Array[][] = Array.from({ length: n }, () => []);
  const pageStripes = pageStripesOf({ ...shape, bytes: content.length });
  const paged = pageStripes ? { pageStripes } : {};
  const list = new LeafList({ ...shape, blockBytes, ...paged }, systemSha256);
  const leaves: Uint8Array[] = [];
  for (let index = 0; index < stripeCount(shape); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(shape, index);
    const padded = new Uint8Array(shardBytes * k);
    padded.set(content.subarray(start, start + dataBytes));
    const data = Array.from({ length: k }, (_, i) => padded.subarray(i * shardBytes, (i + 1) * shardBytes));
    const parityRows = Array.from({ length: m }, (_, i) => k + i);
    const shards = [...data, ...codec.encode(data, parityRows)];
    for (const [i, shard] of shards.entries()) chunks[i]!.push(shard);
    leaves.push(await list.add(await Promise.all(shards.map((shard) => hashBlocks(shard, blockBytes, systemSha256)))));
  }
  const draft = {
    key,
    generation,
    upload: shape.sha256.slice(0, 32),
    blockBytes,
    contentType: "application/octet-stream",
    headers: {},
    modified: "2026-01-02T03:04:05.000Z",
    placement: Array.from({ length: n }, (_, i) => REGIONS[i % REGIONS.length]!),
    ...((pageStripes || stripeBytes / k > blockBytes) && { leaves: REGIONS }),
    ...paged,
    ...(gzip && { gzip }),
    ...((pageStripes || gzip) && { requires: [...(pageStripes ? ["pages"] : []), ...(gzip ? ["gzip"] : [])] }),
    hashes: list.hashes,
    ...shape,
  };
  const manifest = await sealManifest(draft, systemSha256);
  for (const [i, shards] of chunks.entries()) {
    const name = `${manifest.placement[i]}/${chunkName(key, manifest.upload, i)}`;
    objects.set(name, concat(shards));
  }
  for (const region of manifest.leaves ?? []) {
    objects.set(`${region}/${chunkName(key, manifest.upload, LEAF_LIST)}`, concat(leaves));
  }
  const stored = edit(manifest);
  const bytes = stored instanceof Uint8Array ? stored : encodeManifest(stored as Manifest);
  for (const region of REGIONS) objects.set(`${region}/${manifestName(key)}`, bytes);
  return manifest;
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

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

async function hexSha256(bytes: Uint8Array): Promise<string> {
  return [...(await systemSha256(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The answer of buckets with `objects` to a GET of `/<region>/<name>`, percent-encoded, with an optional Range. */
export function lookUp(
  { objects }: Buckets,
  path: string,
  range: string | undefined,
): { status: number; body: Uint8Array } {
  const [, region = "", ...rest] = path.split("/");
  const object = objects.get(`${region}/${rest.map(decodeURIComponent).join("/")}`);
  if (!object) return { status: 404, body: new Uint8Array(0) };
  const asked = /^bytes=(\d+)-(\d+)$/.exec(range ?? "");
  return asked
    ? { status: 206, body: object.subarray(Number(asked[1]), Number(asked[2]) + 1) }
    : { status: 200, body: object };
}

/** Buckets without a network. */
export function memoryBuckets(): Buckets & {
  respond(url: string, headers?: Record<string, string>): FetchedResponse;
} {
  const objects = new Map<string, Uint8Array>();
  return {
    objects,
    respond(url, headers = {}) {
      const { status, body } = lookUp({ objects }, new URL(url).pathname, headers["range"]);
      return new Response(body as Uint8Array<ArrayBuffer>, { status });
    },
  };
}
