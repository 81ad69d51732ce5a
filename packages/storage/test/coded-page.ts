/** A page's coding of a content: the bytes of each chunk, and the commit. */
import { createHash } from "node:crypto";
import { loadCodec } from "@agarose/ec-wasm/node";
import { codeStripe, concat, stripeCount, stripeShape } from "@agarose/core/format";
import { nodeSha256 } from "../src/objects/sha256.ts";
import type { UploadGrant } from "../src/page-uploads/handle-uploads.ts";

/** Codes it as a grant says. `query` goes behind the path of the commit, and `leaves` is its body. */
export async function coded({ coded: code }: UploadGrant, content: Uint8Array) {
  const { k, m } = code!;
  const chunks: Uint8Array[][] = Array.from({ length: k + m }, () => []);
  const leaves: Uint8Array[] = [];
  for (let index = 0; index < stripeCount(code!); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(code!, index);
    const data = new Uint8Array(k * shardBytes);
    data.set(content.subarray(start, start + dataBytes));
    const stripe = await codeStripe(code!, data, await loadCodec(), nodeSha256);
    leaves.push(...stripe.leaves);
    for (const [chunk, shard] of stripe.shards.entries()) chunks[chunk]!.push(shard);
  }
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { chunks: chunks.map(concat), leaves: concat(leaves) as Uint8Array<ArrayBuffer>, query: `?sha256=${sha256}` };
}
