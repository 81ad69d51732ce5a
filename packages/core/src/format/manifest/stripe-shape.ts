/** Where stripes, shards and leaf lists are: arithmetic over lengths alone, which all readers and writers share. */
import { HASH_BYTES } from "../hash-tree.ts";
import type { Code, Manifest } from "./manifest.ts";

/** The shape of one stripe of an object. */
export interface StripeShape {
  readonly index: number;
  /** Where its data is in the object: [start, start + dataBytes). */
  readonly start: number;
  readonly dataBytes: number;
  /** Length of each of its shards: ceil(dataBytes / k); the last data shard is padded with zeros. */
  readonly shardBytes: number;
  /** Where its shard begins in every chunk. */
  readonly chunkOffset: number;
}

/** The same blocks of each shard of a stripe: `chunkOffset` and `shardBytes` are of these blocks alone. */
export interface StripePart extends StripeShape {
  /** Where the blocks begin in their shard. */
  readonly from: number;
  /** The hashes of the blocks of all n shards of the stripe. None: the part is a whole shard. */
  readonly leaves?: Promise<Uint8Array>;
}

/** How many stripes an object has; an empty one has none. */
export function stripeCount(object: { readonly bytes: number; readonly stripeBytes: number }): number {
  return Math.ceil(object.bytes / object.stripeBytes);
}

/** The shape of stripe `index`, which must exist. */
export function stripeShape(
  object: { readonly bytes: number; readonly stripeBytes: number; readonly k: number },
  index: number,
): StripeShape {
  const start = index * object.stripeBytes;
  const dataBytes = Math.min(object.stripeBytes, object.bytes - start);
  const fullShardBytes = Math.ceil(object.stripeBytes / object.k);
  return {
    index,
    start,
    dataBytes,
    shardBytes: Math.ceil(dataBytes / object.k),
    chunkOffset: index * fullShardBytes,
  };
}

/** How many blocks each shard of a stripe has. */
export function blockCount({ blockBytes }: Pick<Manifest, "blockBytes">, { shardBytes }: StripeShape): number {
  return Math.ceil(shardBytes / blockBytes);
}

/** The part of the leaf list that stripe `index` has: of each of its n shards, the hash of each block. */
export function leafShape(
  object: Code & Pick<Manifest, "bytes" | "stripeBytes" | "blockBytes">,
  index: number,
): StripeShape {
  const stripe = stripeShape(object, index);
  const bytesOf = (shape: StripeShape): number => (object.k + object.m) * blockCount(object, shape) * HASH_BYTES;
  return { ...stripe, chunkOffset: index * bytesOf(stripeShape(object, 0)), shardBytes: bytesOf(stripe) };
}

/** Length of each chunk of an object: the sum of its shards. */
export function chunkBytes(object: {
  readonly bytes: number;
  readonly stripeBytes: number;
  readonly k: number;
}): number {
  const stripes = stripeCount(object);
  if (stripes === 0) return 0;
  const last = stripeShape(object, stripes - 1);
  return last.chunkOffset + last.shardBytes;
}
