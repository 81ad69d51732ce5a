/**
 * Which stripes of an object a request touches: exactly once the manifest is known, by its headers alone before.
 */
import { parseRange, STRIPE_BYTES_DEFAULT, type ByteRange, type Manifest } from "@agarose/core";

/** Stripes from..to, inclusive; `to` may lie behind the last one. */
export interface StripeSpan {
  readonly from: number;
  readonly to: number;
}

/** A frame has 32 bits for the index of its stripe. */
const STRIPE_MAX = 2 ** 32 - 1;

/** The stripes of `range`, which is not empty unless the object is. */
export function spanOf({ stripeBytes }: Pick<Manifest, "stripeBytes">, range: ByteRange): StripeSpan {
  const from = Math.floor(range.start / stripeBytes);
  const last = Math.floor((range.end - 1) / stripeBytes);
  return { from, to: Math.max(from, Math.min(last, STRIPE_MAX)) };
}

/**
 * The stripes to ask for while nothing is known of the object: those of its range if its stripes are of the usual size, and the
 * first one where only the plan is of use, or where it takes the object's length to tell.
 */
export function guessSpan(method: "GET" | "HEAD", rangeHeader: string | null): StripeSpan {
  try {
    const range = parseRange(rangeHeader, Number.POSITIVE_INFINITY) ?? { start: 0, end: Number.POSITIVE_INFINITY };
    if (method === "GET") return spanOf({ stripeBytes: STRIPE_BYTES_DEFAULT }, range);
  } catch {
    // The last bytes of it are wanted, or none.
  }
  return { from: 0, to: 0 };
}

/** Whether a bundle asked for with `asked` has the stripes `wanted`, and none before them. */
export function serves(asked: StripeSpan, wanted: StripeSpan): boolean {
  return asked.from === wanted.from && asked.to >= wanted.to;
}
