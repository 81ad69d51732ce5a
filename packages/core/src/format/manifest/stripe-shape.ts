/** Where stripes, shards and leaf lists are: arithmetic over lengths alone, which all readers and writers share. */
import { BLOCK_BYTES, HASH_BYTES } from "../hash-tree.ts";
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

/** Objects with longer shards are those in which readers seek. */
const SHORT_SHARD_BYTES_MAX = 256 * 1024;

/**
 * The bytes of a block that a writer takes for an object. Those of short shards are longer, because every region has
 * the leaf list, which would add a hundredth to what is stored.
 */
export function blockBytesOf(object: Pick<Manifest, "bytes" | "stripeBytes" | "k">): number {
  return stripeShape(object, 0).shardBytes > SHORT_SHARD_BYTES_MAX ? BLOCK_BYTES : 2 * BLOCK_BYTES;
}

/** How many blocks each shard of a stripe has. */
export function blockCount({ blockBytes }: Pick<Manifest, "blockBytes">, { shardBytes }: StripeShape): number {
  return Math.ceil(shardBytes / blockBytes);
}

/** Whether the blocks of an object have hashes of their own: where a shard has one block, that is the shard's hash. */
export function hasLeaves(object: Code & Pick<Manifest, "bytes" | "stripeBytes" | "blockBytes">): boolean {
  return object.bytes > 0 && blockCount(object, stripeShape(object, 0)) > 1;
}

/** The fields on which the shape of a leaf list depends. */
export type HashedObject = Code & Pick<Manifest, "bytes" | "stripeBytes" | "blockBytes" | "pageStripes">;

/** The part of the leaf list that stripe `index` has: of each of its n shards, the hash of each block. */
export function leafShape(object: HashedObject, index: number): StripeShape {
  const stripe = stripeShape(object, index);
  const first = stripeShape(object, 0);
  const hashBytes = (object.k + object.m) * HASH_BYTES;
  const bytesOf = (shape: StripeShape): number => (hasLeaves(object) ? hashBytes * blockCount(object, shape) : 0);
  const { pageStripes } = object;
  const pagesBytes = pageStripes ? (index - (index % pageStripes)) * hashBytes : 0;
  return { ...stripe, chunkOffset: index * bytesOf(first) + pagesBytes, shardBytes: bytesOf(stripe) };
}

/** The part of the leaf list that page `page` has, behind the leaves of its stripes: the hashes of their shards. */
export function pageShape(object: HashedObject & { readonly pageStripes: number }, page: number): StripeShape {
  const from = page * object.pageStripes;
  const to = Math.min(from + object.pageStripes, stripeCount(object));
  const last = leafShape(object, to - 1);
  const shardBytes = (to - from) * (object.k + object.m) * HASH_BYTES;
  return { ...last, index: from, chunkOffset: last.chunkOffset + last.shardBytes, shardBytes };
}

/** Length of a leaf list in bytes; 0 where an object has none. */
export function leafListBytes(object: HashedObject): number {
  const stripes = stripeCount(object);
  if (stripes === 0) return 0;
  const { pageStripes } = object;
  const last = pageStripes
    ? pageShape({ ...object, pageStripes }, Math.floor((stripes - 1) / pageStripes))
    : leafShape(object, stripes - 1);
  return last.chunkOffset + last.shardBytes;
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
