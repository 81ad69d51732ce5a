/** Hashes over the shards of an object: of one shard by blocks, and of all stripes as a tree. */
import type { Sha256 } from "../ports.ts";

/** Length of a hash: SHA-256. */
export const HASH_BYTES = 32;
/** Bytes of a long shard that one leaf covers. A range inside a shard can be verified in units of it. */
export const BLOCK_BYTES = 32 * 1024;

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

/**
 * The root of a Merkle tree (RFC 6962, section 2.1, "Merkle Tree Hash") from the hashes of its leaves, or of subtrees
 * that have the same power of two of leaves, the last one perhaps fewer. Of none, it is the SHA-256 of nothing.
 */
export async function merkleRoot(nodes: readonly Uint8Array[], sha256: Sha256): Promise<Uint8Array> {
  if (nodes.length < 2) return nodes[0] ?? sha256(new Uint8Array());
  const split = 2 ** Math.floor(Math.log2(nodes.length - 1));
  const children = [nodes.slice(0, split), nodes.slice(split)].map((part) => merkleRoot(part, sha256));
  return sha256(concat([NODE, ...(await Promise.all(children))]));
}

/** The hash of a leaf of that tree. */
export function hashLeaf(leaf: Uint8Array, sha256: Sha256): Promise<Uint8Array> {
  return sha256(concat([LEAF, leaf]));
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
