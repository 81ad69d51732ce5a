/** Codes a whole file into its chunks. */
import { systemSha256, type Codec } from "@agarose/core";
import { codeStripe, concat, stripeCount, stripeShape, type Manifest } from "@agarose/core/format";
import { Sha256Parts } from "./sha256.ts";

/** How an object is coded. */
export type BlobCode = Pick<Manifest, "k" | "m" | "bytes" | "stripeBytes" | "blockBytes">;

/** A coded file. */
export interface CodedBlob {
  /** Of the file, in lower-case hex. */
  readonly sha256: string;
  /** The n chunks. Those of data are parts of the file itself, and the browser may keep the others on disk. */
  readonly chunks: readonly Blob[];
  /** Of each stripe, for each of its n shards, the SHA-256 of each block. */
  readonly leaves: Uint8Array;
}

/**
 * Holds one stripe in memory at a time, and the hashes.
 *
 * @param onCoded gets the number of bytes that are done so far, and ends the work by throwing.
 */
export async function codeBlob(
  blob: Blob,
  code: BlobCode,
  codec: Pick<Codec, "encode">,
  onCoded: (bytes: number) => void,
): Promise<CodedBlob> {
  const { k, m } = code;
  const chunks: Blob[][] = Array.from({ length: k + m }, () => []);
  const leaves: Uint8Array[] = [];
  const hash = new Sha256Parts();
  for (let index = 0; index < stripeCount(code); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(code, index);
    const end = start + dataBytes;
    const data = new Uint8Array(k * shardBytes);
    data.set(new Uint8Array(await blob.slice(start, end).arrayBuffer()));
    hash.update(data.subarray(0, dataBytes));
    const stripe = await codeStripe(code, data, codec, systemSha256);
    leaves.push(...stripe.leaves);
    for (const [chunk, shard] of stripe.shards.entries()) {
      const from = start + chunk * shardBytes;
      const isInFile = chunk < k && from + shardBytes <= end;
      chunks[chunk]!.push(
        isInFile ? blob.slice(from, from + shardBytes) : new Blob([shard as Uint8Array<ArrayBuffer>]),
      );
    }
    onCoded(end);
  }
  return { sha256: hash.hex(), chunks: chunks.map((parts) => new Blob(parts)), leaves: concat(leaves) };
}
