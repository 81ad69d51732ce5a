/**
 * What is done with the shards of one stripe once they are here: verify them, and get the data out of any k of them.
 */
import type { Decoder } from "../codec.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { chunkHash, type Manifest, type StripeShape } from "../format/manifest.ts";
import type { Sha256 } from "../ports.ts";

/** Throws CHUNK_CORRUPT unless `shard` has the SHA-256 that the manifest says of chunk `chunk` (< n). */
export async function checkHash(
  manifest: Manifest,
  stripe: StripeShape,
  chunk: number,
  shard: Uint8Array,
  sha256: Sha256,
): Promise<void> {
  if (chunkHash(manifest, stripe.index, chunk).join() === (await sha256(shard)).join()) return;
  throw new AgaroseError(
    "CHUNK_CORRUPT",
    HAS_MESSAGES && `chunk ${chunk} of stripe ${stripe.index} has another SHA-256 than its own`,
    {
      chunk,
      stripe: stripe.index,
    },
  );
}

/** The k data shards from any k shards of a stripe by chunk index. The codec is asked for only when one has to be decoded. */
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
