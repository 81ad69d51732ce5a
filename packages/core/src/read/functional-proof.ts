/**
 * Proves functional chunks (Sprout, section III). No manifest has a hash of them, so they are proven together: the data
 * that they decode to must have the manifest's hashes.
 */
import type { Decoder } from "../codec.ts";
import { toAgaroseError } from "../errors.ts";
import type { Manifest } from "../format/manifest/index.ts";
import type { Sha256 } from "../ports.ts";
import { checkHash, dataShards, type HashedStripe } from "./stripe-shards.ts";

/** Inputs of a proof. */
export interface ProofOptions extends HashedStripe {
  readonly manifest: Manifest;
  readonly codec: () => Promise<Decoder>;
  readonly sha256: Sha256;
  /** Whether the result is not needed any more. */
  readonly isOver: () => boolean;
}

/** The data shards of a stripe that are proven, and the chunk that was omitted to get there. */
export interface Proof {
  readonly data: readonly Uint8Array[];
  readonly corrupt: number | undefined;
}

/**
 * Decodes `shards` with each of `leftOut` missing in turn (`undefined`: with none missing), and returns the first
 * result whose data shards have the manifest's hashes; undefined if none has. Rejects with the codec's own error.
 */
export async function proveShards(
  shards: ReadonlyMap<number, Uint8Array>,
  leftOut: readonly (number | undefined)[],
  { codec, sha256, isOver, ...hashed }: ProofOptions,
): Promise<Proof | undefined> {
  for (const corrupt of leftOut) {
    const rest = new Map(shards);
    if (corrupt !== undefined) rest.delete(corrupt);
    try {
      const data = await dataShards(hashed.manifest.k, rest, codec);
      await Promise.all(
        // Stored chunks among them have been verified on arrival.
        data.map((shard, chunk) => rest.has(chunk) || checkHash(hashed, chunk, shard, sha256)),
      );
      return { data, corrupt };
    } catch (cause) {
      const error = toAgaroseError(cause);
      if (error.code !== "CHUNK_CORRUPT") throw error;
      if (isOver()) return undefined;
    }
  }
  return undefined;
}
