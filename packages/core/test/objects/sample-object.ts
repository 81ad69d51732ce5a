import { concat, hashBlocks } from "../../src/format/hash-tree.ts";
import {
  blockBytesOf,
  LeafList,
  sealManifest,
  stripeCount,
  stripeShape,
  type Manifest,
  type StripeShape,
} from "../../src/format/manifest/index.ts";
import type { Sha256 } from "../../src/ports.ts";
import { referenceCodec } from "./reference-codec.ts";

/** An object with everything that storing it would produce. */
export interface SampleObject {
  readonly manifest: Manifest;
  readonly bytes: Uint8Array;
  /** The shard of chunk `chunk` in stripe `stripe`; functional rows too. */
  shard(stripe: number, chunk: number): Uint8Array;
  /** Its leaf list, all of it. */
  readonly leafList: Uint8Array;
}

export interface SampleOptions {
  readonly k: number;
  readonly m: number;
  readonly bytes: number;
  readonly stripeBytes: number;
  /** Chunk i is in region i modulo their number. Default: a region `r<i>` per chunk. */
  readonly regions?: readonly string[];
  readonly sha256?: Sha256;
  readonly key?: string;
  /** Whether every region has the leaf list. */
  readonly leaves?: boolean;
  /** Default: the manifest has all hashes. */
  readonly pageStripes?: number;
}

export async function sampleObject(options: SampleOptions): Promise<SampleObject> {
  const { k, m, stripeBytes, key = "photos/cat.jpg", sha256 = toyHash } = options;
  const bytes = pseudoRandomBytes(options.bytes);
  const shape = { bytes: bytes.length, stripeBytes, k };
  const blockBytes = blockBytesOf(shape);
  const stripes = Array.from({ length: stripeCount(shape) }, (_, index) =>
    encodeStripe(bytes, stripeShape(shape, index), k, m),
  );
  const regions = options.regions ?? Array.from({ length: k + m }, (_, chunk) => `r${chunk}`);
  const paged = options.pageStripes ? { pageStripes: options.pageStripes } : {};
  const list = new LeafList({ ...shape, m, blockBytes, ...paged }, sha256);
  const parts: Uint8Array[] = [];
  for (const shards of stripes) {
    const leaves = shards.slice(0, k + m).map((shard) => hashBlocks(shard, blockBytes, sha256));
    parts.push(await list.add(await Promise.all(leaves)));
  }
  const draft = {
    key,
    generation: 1,
    upload: "0123456789abcdef0123456789abcdef",
    bytes: bytes.length,
    contentType: "image/jpeg",
    headers: {},
    modified: "2026-01-02T03:04:05.678Z",
    k,
    m,
    stripeBytes,
    blockBytes,
    sha256: hex(await sha256(bytes)),
    placement: Array.from({ length: k + m }, (_, chunk) => regions[chunk % regions.length]!),
    ...((options.leaves || options.pageStripes) && { leaves: regions }),
    ...(options.pageStripes && { ...paged, requires: ["pages"] }),
    hashes: list.hashes,
  };
  const manifest = await sealManifest(draft, sha256);
  return { manifest, bytes, shard: (stripe, chunk) => stripes[stripe]![chunk]!, leafList: concat(parts) };
}

/** The k + m + k shards of a stripe. */
function encodeStripe(bytes: Uint8Array, stripe: StripeShape, k: number, m: number): Uint8Array[] {
  const data = Array.from({ length: k }, (_, chunk) => {
    const shard = new Uint8Array(stripe.shardBytes);
    const start = stripe.start + chunk * stripe.shardBytes;
    shard.set(bytes.subarray(start, Math.max(start, Math.min(start + shard.length, stripe.start + stripe.dataBytes))));
    return shard;
  });
  const rows = Array.from({ length: m + k }, (_, row) => k + row);
  return [...data, ...referenceCodec.encode(data, rows)];
}

/**
 * Replaces SHA-256: 32 bytes that change with any byte, computed without leaving the microtask queue, so that simulated
 * time is exact.
 */
export const toyHash: Sha256 = async (bytes) => {
  const hash = new Uint8Array(32);
  let state = 0x811c9dc5 ^ bytes.length;
  for (const byte of bytes) state = Math.imul(state ^ byte, 0x01000193);
  for (let i = 0; i < hash.length; i++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + i;
    hash[i] = state >>> 24;
  }
  return hash;
};

export function pseudoRandomBytes(count: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(count);
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
