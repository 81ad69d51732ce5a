/** The response to a read of an object that may be encrypted. */
import { openEncrypted, type Secrets } from "@agarose/core/encryption";
import { fromBase64 } from "@agarose/core/format";
import { objectAnswer, type ObjectAnswer } from "@agarose/core/http";
import type { FullPlan } from "./plans/bundle-request.ts";
import type { ReadRequest } from "./read-request.ts";

/** A response whose `range` is of stored bytes. */
export interface PlannedAnswer extends ObjectAnswer {
  /** Makes the body of the response from those bytes. Set for an encrypted object. */
  readonly decrypt?: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>;
}

/**
 * `objectAnswer` of the content, by the secret of the configuration or the data key of the plan.
 *
 * @throws RANGE_UNSATISFIABLE, SECRET_MISSING, SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER or MANIFEST_INVALID.
 */
export async function answerDecrypted(
  { manifest, dataKey }: FullPlan,
  { headers }: ReadRequest,
  secrets: Secrets | undefined,
): Promise<PlannedAnswer> {
  if (!manifest.encryption || !secrets) return objectAnswer(manifest, headers, true);
  const key = await secrets.dataKeyOf(manifest).catch((error: unknown) => {
    if (dataKey === undefined) throw error;
    return fromBase64(dataKey);
  });
  const { shown, stored, decrypt } = await openEncrypted(manifest, key);
  const answer = objectAnswer(shown, headers, true);
  const { range } = answer;
  return range ? { ...answer, range: stored(range), decrypt: (body) => decrypt(range, body) } : answer;
}
