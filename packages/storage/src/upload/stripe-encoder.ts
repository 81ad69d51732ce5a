/** Reads a file stripe by stripe and encodes the n shards of each. */
import type { Hash } from "node:crypto";
import { stripeShape, type Code } from "@agarose/core/format";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import type { SourceReader } from "./file-source.ts";

/** The code of an object and its length. */
export interface StripeLayout extends Code {
  readonly bytes: number;
  readonly stripeBytes: number;
}

/** Encodes in threads, so that the event loop continues to upload. */
export type Encoder = Pick<EncoderPool, "encode">;

/** Encodes the shards `wanted` of stripe `index`, and adds the bytes read to `hash` in the order of the file. */
export async function encodeStripe(
  file: SourceReader,
  layout: StripeLayout,
  index: number,
  wanted: readonly number[],
  encoder: Encoder,
  hash: Hash,
): Promise<Map<number, Uint8Array>> {
  const { k } = layout;
  const { start, dataBytes, shardBytes } = stripeShape(layout, index);
  // Zeroed, because the padding after the data is part of the code.
  const data = new Uint8Array(k * shardBytes);
  const bytesRead = await file.read(data.subarray(0, dataBytes), start);
  hash.update(data.subarray(0, bytesRead));
  const rows = wanted.filter((chunk) => chunk >= k);
  const encoded = await encoder.encode(data, k, rows);
  return new Map(
    wanted.map((chunk) => [chunk, chunk < k ? encoded.data[chunk]! : encoded.parity[rows.indexOf(chunk)]!]),
  );
}
