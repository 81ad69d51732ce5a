/** Hashes over the shards of an object: of one shard by blocks, and of all stripes as a tree. */
import type { Sha256 } from "../ports.ts";

/** Bytes of a shard that one leaf covers. A range inside a shard can be verified in units of it. */
export const BLOCK_BYTES = 64 * 1024;

/**
 * The hash of a shard (32 bytes). A shard of one block has the SHA-256 of its bytes. A longer one has the SHA-256 of
 * the concatenated SHA-256 of its blocks, of which the last may be shorter.
 *
 * @param blockBytes length of a block; 0 hashes the shard as one block of any length.
 */
export async function hashShard(shard: Uint8Array, blockBytes: number, sha256: Sha256): Promise<Uint8Array> {
  if (blockBytes === 0 || shard.length <= blockBytes) return sha256(shard);
  const blocks = Array.from({ length: Math.ceil(shard.length / blockBytes) }, (_, block) =>
    sha256(shard.subarray(block * blockBytes, (block + 1) * blockBytes)),
  );
  return sha256(concat(await Promise.all(blocks)));
}

/**
 * The root of the Merkle tree over `leaves` (RFC 6962, section 2.1, "Merkle Tree Hash"). A verifier that knows the root
 * can check one leaf with the hashes beside its path.
 */
export async function merkleRoot(leaves: readonly Uint8Array[], sha256: Sha256): Promise<Uint8Array> {
  if (leaves.length === 0) return sha256(new Uint8Array());
  if (leaves.length === 1) return sha256(concat([LEAF, leaves[0]!]));
  const split = 2 ** Math.floor(Math.log2(leaves.length - 1));
  const [left, right] = await Promise.all([
    merkleRoot(leaves.slice(0, split), sha256),
    merkleRoot(leaves.slice(split), sha256),
  ]);
  return sha256(concat([NODE, left, right]));
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
