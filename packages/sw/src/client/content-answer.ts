/** The response to a read of an object that may be encrypted or compressed. */
import { openContent } from "@agarose/core/content";
import type { Secrets } from "@agarose/core/encryption";
import { HAS_ENCRYPTION } from "@agarose/core/features";
import { fromBase64 } from "@agarose/core/format";
import { objectAnswer, type ObjectAnswer } from "@agarose/core/http";
import type { FullPlan } from "./plans/bundle-request.ts";
import type { ReadRequest } from "./read-request.ts";

/** A response whose `range` is of stored bytes. */
export interface PlannedAnswer extends ObjectAnswer {
  /** Makes the body of the response from those bytes. Set where they are not the content. */
  readonly content?: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>;
}

/**
 * `objectAnswer` of the content, of an encrypted object by the secret of the configuration or the data key of the plan.
 *
 * @throws RANGE_UNSATISFIABLE, SECRET_MISSING, SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER or MANIFEST_INVALID.
 */
export async function answerContent(
  { manifest, dataKey }: FullPlan,
  { headers }: ReadRequest,
  ports: { readonly secrets?: Secrets | undefined },
): Promise<PlannedAnswer> {
  const opened = await openContent(
    manifest,
    HAS_ENCRYPTION &&
      (() =>
        // A build that decrypts has secrets, be they none.
        ports.secrets!.dataKeyOf(manifest).catch((error: unknown) => {
          if (dataKey === undefined) throw error;
          return fromBase64(dataKey);
        })),
  );
  const answer = objectAnswer(opened?.shown ?? manifest, headers, true);
  const { range } = answer;
  return opened && range
    ? { ...answer, range: opened.stored(range), content: (body) => opened.content(range, body) }
    : answer;
}
