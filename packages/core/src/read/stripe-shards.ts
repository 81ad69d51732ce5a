/**
 * Verifies the shards of one stripe, and gets its data from any k of them.
 */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { concat, HASH_BYTES, hashBlocks, treeRoot } from "../format/hash-tree.ts";
import { LEAF_LIST, type Manifest, type StripePart, type StripeShape } from "../format/manifest/index.ts";
import { fromBase64 } from "../format/text.ts";
import type { Sha256 } from "../ports.ts";

/**
 * Throws CHUNK_CORRUPT unless `shard` has the hash that the manifest has of chunk `chunk` (< n). The blocks of a part
 * must have the hashes of its leaves; a leaf list must have the hash of every shard as the roots of its trees.
 */
export async function checkHash(
  manifest: Manifest,
  stripe: StripeShape | StripePart,
  chunk: number,
  shard: Uint8Array,
  sha256: Sha256,
): Promise<void> {
  const { blockBytes, hashes } = manifest;
  const roots = fromBase64(hashes[stripe.index]!);
  const { leaves, from } = stripe as StripePart;
  const trees = chunk === LEAF_LIST ? shard : await leaves;
  // Of one shard.
  const leafBytes = trees && (trees.length / roots.length) * HASH_BYTES;
  let expected: Uint8Array;
  let actual: Uint8Array;
  if (chunk === LEAF_LIST) {
    expected = roots;
    const shards = Array.from({ length: roots.length / HASH_BYTES }, (_, i) => i * leafBytes!);
    actual = concat(await Promise.all(shards.map((at) => treeRoot(shard.subarray(at, at + leafBytes!), sha256))));
  } else {
    actual = await hashBlocks(shard, blockBytes, sha256);
    const at = trees ? chunk * leafBytes! + (from / blockBytes) * HASH_BYTES : chunk * HASH_BYTES;
    if (!trees) actual = await treeRoot(actual, sha256);
    expected = (trees ?? roots).subarray(at, at + actual.length);
  }
  if (expected.every((byte, i) => byte === actual[i]) && expected.length === actual.length) return;
  throw new AgaroseError(
    "CHUNK_CORRUPT",
    HAS_MESSAGES && `chunk ${chunk} of stripe ${stripe.index} does not have the hash that the manifest names`,
    {
      chunk,
      stripe: stripe.index,
    },
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
