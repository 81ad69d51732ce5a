/** Shards of the keys, by which several processes share a walk: each key is in exactly one of them. */

/** One of `count` shards. */
export interface Shard {
  /** 1 to `count`. */
  readonly index: number;
  readonly count: number;
}

/** Whether a name is in the shard: FNV-1a, which spreads names that differ in a digit. */
export function isInShard(name: string, { index, count }: Shard): boolean {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  // The low bits alone depend on the low bits of the characters only.
  return ((hash ^ (hash >>> 15)) >>> 0) % count === index - 1;
}
