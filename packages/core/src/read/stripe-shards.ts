/** Verifies the shards of one stripe, and gets its data from any k of them. */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { concat, HASH_BYTES, hashBlocks, treeRoot } from "../format/hash-tree.ts";
import { LEAF_LIST, type Manifest, type StripePart, type StripeShape } from "../format/manifest/index.ts";
import type { Sha256 } from "../ports.ts";

/** A stripe, and what its shards are verified by. */
export interface HashedStripe {
  readonly manifest: Pick<Manifest, "blockBytes">;
  readonly stripe: StripeShape | StripePart;
  /** The hashes of its n shards, one after the other (`StripeHashes`). */
  readonly hashes: Uint8Array | Promise<Uint8Array>;
}

/**
 * Throws CHUNK_CORRUPT unless `shard` has the hash of chunk `chunk` (< n). The blocks of a part must have the hashes of
 * its leaves. Rejects as `hashes` does.
 */
export async function checkHash(
  { manifest: { blockBytes }, stripe, hashes }: HashedStripe,
  chunk: number,
  shard: Uint8Array,
  sha256: Sha256,
): Promise<void> {
  const { index, leaves, from } = stripe as StripePart;
  const list = await leaves;
  const expected = await hashes;
  const blocks = await hashBlocks(shard, blockBytes, sha256);
  const at = chunk * HASH_BYTES;
  if (list)
    expectEqual(list, (at * list.length) / expected.length + (from / blockBytes) * HASH_BYTES, blocks, chunk, index);
  else expectEqual(expected, at, await treeRoot(blocks, sha256), chunk, index);
}

/** Throws CHUNK_CORRUPT unless the trees of leaf list `list` have the hashes `roots` of the shards of the stripe. */
export async function checkLeaves(roots: Uint8Array, stripe: number, list: Uint8Array, sha256: Sha256): Promise<void> {
  const shards = roots.length / HASH_BYTES;
  const bytes = list.length / shards;
  const trees = Array.from({ length: shards }, (_, i) => treeRoot(list.subarray(i * bytes, (i + 1) * bytes), sha256));
  expectEqual(roots, 0, concat(await Promise.all(trees)), LEAF_LIST, stripe);
}

function expectEqual(hashes: Uint8Array, at: number, actual: Uint8Array, chunk: number, stripe: number): void {
  const expected = hashes.subarray(at, at + actual.length);
  if (expected.every((byte, i) => byte === actual[i]) && expected.length === actual.length) return;
  throw new AgaroseError(
    "CHUNK_CORRUPT",
    HAS_MESSAGES && `chunk ${chunk} of stripe ${stripe} does not have the hash that the manifest names`,
    { chunk, stripe },
  );
}

/**
 * Returns shards of a stripe from any k of its shards, by chunk index. It loads the codec only if one of them is
 * missing, and rejects with the codec's own error.
 *
 * @param wanted the chunks to return. Default: the k data chunks.
 */
export async function dataShards(
  k: number,
  shards: ReadonlyMap<number, Uint8Array>,
  codec: () => Promise<Decoder>,
  wanted: readonly number[] = Array.from({ length: k }, (_, chunk) => chunk),
): Promise<Uint8Array[]> {
  const missing = wanted.filter((chunk) => !shards.has(chunk));
  if (missing.length === 0) return wanted.map((chunk) => shards.get(chunk)!);
  const received = [...shards].map(([index, bytes]) => ({ index, bytes }));
  const decoded = (await codec()).reconstruct(k, received, missing);
  return wanted.map((chunk) => shards.get(chunk) ?? decoded[missing.indexOf(chunk)]!);
}
