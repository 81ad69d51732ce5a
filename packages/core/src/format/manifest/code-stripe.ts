/** Codes one stripe as every writer does. */
import type { Codec } from "../../codec.ts";
import type { Sha256 } from "../../ports.ts";
import { hashBlocks } from "../hash-tree.ts";
import type { Manifest } from "./manifest.ts";

/** One stripe of an object as its chunks have it. */
export interface CodedStripe {
  /** The n shards: those of the data are parts of what was coded. */
  readonly shards: readonly Uint8Array[];
  /** The hashes of the blocks of each shard. */
  readonly leaves: readonly Uint8Array[];
}

/** @param data the bytes of the stripe and zeros behind them: k shards of equal length, one after the other. */
export async function codeStripe(
  { k, m, blockBytes }: Pick<Manifest, "k" | "m" | "blockBytes">,
  data: Uint8Array,
  codec: Pick<Codec, "encode">,
  sha256: Sha256,
): Promise<CodedStripe> {
  const shardBytes = data.length / k;
  const own = Array.from({ length: k }, (_, chunk) => data.subarray(chunk * shardBytes, (chunk + 1) * shardBytes));
  const parity = Array.from({ length: m }, (_, row) => k + row);
  const shards = [...own, ...(m > 0 ? codec.encode(own, parity) : [])];
  return { shards, leaves: await Promise.all(shards.map((shard) => hashBlocks(shard, blockBytes, sha256))) };
}
