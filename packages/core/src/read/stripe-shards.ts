/**
 * Verifies the shards of one stripe, and gets its data from any k of them.
 */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { hashShard } from "../format/hash-tree.ts";
import { chunkHash, type Manifest, type StripeShape } from "../format/manifest.ts";
import type { Sha256 } from "../ports.ts";

/** Throws CHUNK_CORRUPT unless `shard` has the hash that the manifest has of chunk `chunk` (< n). */
export async function checkHash(
  manifest: Manifest,
  stripe: StripeShape,
  chunk: number,
  shard: Uint8Array,
  sha256: Sha256,
): Promise<void> {
  const expected = chunkHash(manifest, stripe.index, chunk);
  const actual = await hashShard(shard, manifest.blockBytes, sha256);
  if (expected.every((byte, i) => byte === actual[i]) && expected.length === actual.length) return;
  throw new AgaroseError(
    "CHUNK_CORRUPT",
    HAS_MESSAGES && `chunk ${chunk} of stripe ${stripe.index} has another hash than the manifest says`,
    {
      chunk,
      stripe: stripe.index,
    },
  );
}

/**
 * Returns the k data shards of a stripe from any k of its shards, by chunk index. It loads the codec only if a data
 * shard is missing, and rejects with the codec's own error.
 */
export async function dataShards(
  k: number,
  shards: ReadonlyMap<number, Uint8Array>,
  codec: () => Promise<Decoder>,
): Promise<Uint8Array[]> {
  const data = Array.from({ length: k }, (_, chunk) => shards.get(chunk));
  const missing = data.flatMap((shard, chunk) => (shard ? [] : [chunk]));
  if (missing.length === 0) return data as Uint8Array[];
  const received = [...shards].map(([index, bytes]) => ({ index, bytes }));
  const decoded = (await codec()).reconstruct(k, received, missing);
  return data.map((shard, chunk) => shard ?? decoded[missing.indexOf(chunk)]!);
}
