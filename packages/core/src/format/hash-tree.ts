/** Hashes over the shards of an object: of one shard by blocks, and of all stripes as a tree. */
import type { Sha256 } from "../ports.ts";

/** Length of a hash: SHA-256. */
export const HASH_BYTES = 32;
/** Bytes of a shard that one leaf covers. A range inside a shard can be verified in units of it. */
export const BLOCK_BYTES = 64 * 1024;

/**
 * The hash of a shard (32 bytes). A shard of one block has the SHA-256 of its bytes. A longer one has the SHA-256 of
 * the concatenated SHA-256 of its blocks, of which the last may be shorter.
 */
export async function hashShard(shard: Uint8Array, blockBytes: number, sha256: Sha256): Promise<Uint8Array> {
  return treeRoot(await hashBlocks(shard, blockBytes, sha256), sha256);
}

/** The SHA-256 of each block of `bytes`, one after the other. */
export async function hashBlocks(bytes: Uint8Array, blockBytes: number, sha256: Sha256): Promise<Uint8Array> {
  const blocks: Promise<Uint8Array>[] = [];
  for (let at = 0; at < bytes.length || at === 0; at += blockBytes) {
    blocks.push(sha256(bytes.subarray(at, at + blockBytes)));
  }
  return concat(await Promise.all(blocks));
}

/** The hash of a shard from the hashes of its blocks. */
export async function treeRoot(leaves: Uint8Array, sha256: Sha256): Promise<Uint8Array> {
  return leaves.length > HASH_BYTES ? sha256(leaves) : leaves;
}

/** A part of a list of leaves: from..to - 1. */
export interface Part {
  readonly from: number;
  readonly to: number;
}

/** What a verifier has of a tree beside some of its leaves. */
export interface Proof {
  /** The place of the first of the leaves. */
  readonly from: number;
  /** How many leaves the tree has. */
  readonly count: number;
  /** The roots of `subtreesBeside` the leaves. Those that are used are taken out. */
  readonly beside: Uint8Array[];
}

/**
 * The root of the Merkle tree over `leaves`, at least one (RFC 6962, section 2.1, "Merkle Tree Hash").
 *
 * @param proof what completes `leaves`, where they are a part of the leaves of the tree.
 */
export function merkleRoot(
  leaves: readonly Uint8Array[],
  sha256: Sha256,
  { from, count, beside }: Proof,
): Promise<Uint8Array> {
  const rootOf = async (start: number, end: number): Promise<Uint8Array> => {
    if (end <= from || from + leaves.length <= start) return beside.shift() ?? LEAF;
    if (end - start < 2) return sha256(concat([LEAF, leaves[start - from]!]));
    const split = splitOf(start, end);
    // Both begin before either is awaited, so the roots are taken in their order.
    return sha256(concat([NODE, ...(await Promise.all([rootOf(start, split), rootOf(split, end)]))]));
  };
  return rootOf(0, count);
}

/**
 * The largest subtrees without any of the leaves `part` (at least one) in a tree of `count`, from left to right: with
 * their roots and the leaves of the part, a verifier computes the root of the tree.
 */
export function subtreesBeside(part: Part, count: number): Part[] {
  const beside = (from: number, to: number): Part[] => {
    if (to <= part.from || part.to <= from) return [{ from, to }];
    if (part.from <= from && to <= part.to) return [];
    const split = splitOf(from, to);
    return [...beside(from, split), ...beside(split, to)];
  };
  return beside(0, count);
}

/** Where the right child of a node of at least two leaves begins: the left one has the largest power of two below. */
export function splitOf(from: number, to: number): number {
  return from + 2 ** Math.floor(Math.log2(to - from - 1));
}

/** The hash of a leaf. */
export function hashLeaf(leaf: Uint8Array, sha256: Sha256): Promise<Uint8Array> {
  return sha256(concat([LEAF, leaf]));
}

/** The hash of a node over those of its children. */
export function hashNode(children: readonly Uint8Array[], sha256: Sha256): Promise<Uint8Array> {
  return sha256(concat([NODE, ...children]));
}

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** The bytes of `parts`, one after the other, in an array of their own. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
