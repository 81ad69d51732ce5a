/** The stripes that a request touches: exact when the manifest is known, a guess from the headers before that. */
import { STRIPE_BYTES_DEFAULT, type Manifest } from "@agarose/core/format";
import { parseRange, type ByteRange } from "@agarose/core/http";

/** Stripes from..to, inclusive. `to` may lie beyond the last stripe. */
export interface StripeSpan {
  readonly from: number;
  readonly to: number;
}

/** A frame has 32 bits for its stripe's index. */
const STRIPE_MAX = 2 ** 32 - 1;

/** The stripes of `range`. The range is empty only for an empty object. */
export function spanOf({ stripeBytes }: Pick<Manifest, "stripeBytes">, range: ByteRange): StripeSpan {
  const from = Math.floor(range.start / stripeBytes);
  const last = Math.floor((range.end - 1) / stripeBytes);
  return { from, to: Math.max(from, Math.min(last, STRIPE_MAX)) };
}

/**
 * The stripes to ask for when the object is unknown: those of the range, if stripes have the default size. It is the
 * first stripe when the request needs only the plan, or when the range depends on the object's length.
 */
export function guessSpan(method: "GET" | "HEAD", rangeHeader: string | null): StripeSpan {
  try {
    const range = parseRange(rangeHeader, Number.POSITIVE_INFINITY) ?? { start: 0, end: Number.POSITIVE_INFINITY };
    if (method === "GET") return spanOf({ stripeBytes: STRIPE_BYTES_DEFAULT }, range);
  } catch {
    // The range counts from the end, or cannot be satisfied.
  }
  return { from: 0, to: 0 };
}
