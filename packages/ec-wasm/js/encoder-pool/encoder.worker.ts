/** A thread of the encoder pool. */
import { parentPort } from "node:worker_threads";

import { split, type EncodeAnswer, type EncodeRequest } from "./encoder-pool.ts";
import type { CodecErrorCode } from "../error.ts";
import { loadCodec } from "../node.ts";

const codec = await loadCodec();

parentPort!.on("message", (request: EncodeRequest) => {
  try {
    const answer = encode(request);
    parentPort!.postMessage(answer, [answer.stripe.buffer, answer.parity.buffer]);
  } catch (error) {
    const { code, message, details } = error as Error & { code: CodecErrorCode; details: Record<string, unknown> };
    parentPort!.postMessage({ id: request.id, error: { code, message, details } } satisfies EncodeAnswer);
  }
});

function encode({ id, stripe, k, rows }: EncodeRequest) {
  const parity = new Uint8Array((stripe.length / k) * rows.length);
  codec.encode(split(stripe, k), rows, split(parity, rows.length));
  return { id, stripe, parity };
}
