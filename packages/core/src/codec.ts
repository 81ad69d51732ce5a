/**
 * The Reed-Solomon codec that the reader and the writer need. `@agarose/ec-wasm` implements it; core does not import
 * it.
 */

/**
 * One coded piece of a stripe. An `index` below k is a data shard; k to 255 are parity rows, functional chunks
 * included.
 */
export interface Shard {
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** A systematic code over GF(2^8) whose parity row i does not depend on m. */
export interface Codec {
  /**
   * Returns the parity shards `rows` (chunk indices k to 255) of the k data shards of equal length. With `out`, one
   * array for each row, it writes into them. Throws SHARDS_INVALID or CODE_INVALID.
   */
  encode(data: readonly Uint8Array[], rows: readonly number[], out?: readonly Uint8Array[]): Uint8Array[];
  /**
   * Returns the shards `wanted` (any indices) from any k or more distinct `shards` of equal length. With `out`, one
   * array for each wanted shard, it writes into them. Throws NOT_ENOUGH_SHARDS or SHARDS_INVALID.
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
