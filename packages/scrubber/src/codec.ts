/** The codec of a Worker, which has no threads. */
import { loadCodec } from "@agarose/ec-wasm";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";

/** Encodes in place. */
export async function encoderOf(): Promise<Pick<EncoderPool, "encode">> {
  const codec = await loadCodec();
  return {
    async encode(stripe, k, rows) {
      const shardBytes = stripe.length / k;
      const data = Array.from({ length: k }, (_, i) => stripe.subarray(i * shardBytes, (i + 1) * shardBytes));
      return { data, parity: codec.encode(data, rows) as Uint8Array<ArrayBuffer>[] };
    },
  };
}
