/**
 * What the reader and the writer need of a Reed-Solomon codec. `@agarose/ec-wasm` has this shape; core does not import it.
 */

/** One coded piece of a stripe: `index < k` is a data shard, the rest are parity rows, functional chunks included (`index < 256`). */
export interface Shard {
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** A systematic code over GF(2^8) whose parity row i does not depend on m. */
export interface Codec {
  /**
   * The parity shards of chunk indices `rows` (k to 255: stored parities and functional chunks alike) for the k data
   * shards, written into `out` when given.
   */
  encode(data: readonly Uint8Array[], rows: readonly number[], out?: readonly Uint8Array[]): Uint8Array[];
  /**
   * The shards `wanted` (any indices) from any k or more distinct `shards` of equal length, written into
   * `out` (same order) when given. Throws NOT_ENOUGH_SHARDS or SHARDS_INVALID.
   */
  reconstruct(
    k: number,
    shards: readonly Shard[],
    wanted: readonly number[],
    out?: readonly Uint8Array[],
  ): Uint8Array[];
}

/** The half of a codec that a read needs. */
export type Decoder = Pick<Codec, "reconstruct">;
