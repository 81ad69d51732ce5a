/**
 * How much of an object one invocation can decode within the subrequests that the platform allows it. Buckets are asked once
 * for a chunk of many stripes; the cache and the peers, for each stripe.
 */
import { AgaroseError, contentRange, SPAN_BYTES_MAX, type Manifest, type ObjectAnswer } from "@agarose/core";

/** What a read of one object takes. */
export interface ReadCost {
  /** Subrequests for each stripe. */
  readonly stripe: number;
  /** For each run of stripes that one GET of a bucket brings. */
  readonly span: number;
  readonly spanStripes: number;
}

/** Of the subrequests of an invocation; the rest is for what fails or is late. */
const PLANNED_SHARE = 0.8;
/** For what is cached of a stripe: a look in front, into KV, and a put in front. */
const CACHE_OPERATIONS = 3;

/**
 * @param cached chunks in this PoP's cache.
 * @param atPeers chunks in theirs, and not here.
 */
export function readCost(
  { k, stripeBytes }: Pick<Manifest, "k" | "stripeBytes">,
  { delta, cached, atPeers }: { readonly delta: number; readonly cached: number; readonly atPeers: number },
): ReadCost {
  // What is overtaken or late at one stripe may have to be asked for anew at a later one.
  const anew = Math.max(1, delta);
  return {
    stripe: (cached > 0 ? CACHE_OPERATIONS : 0) + Math.min(k, atPeers) + anew,
    span: k + delta,
    spanStripes: Math.max(1, Math.floor(SPAN_BYTES_MAX / stripeBytes)),
  };
}

/** Subrequests of `stripes` stripes in a row. */
export function costOf({ stripe, span, spanStripes }: ReadCost, stripes: number): number {
  return stripes * stripe + Math.ceil(stripes / spanStripes) * span;
}

/** The most stripes in a row that cost no more than `subrequests`, 1 at least. */
function stripesWithin(cost: ReadCost, subrequests: number): number {
  const { stripe, span, spanStripes } = cost;
  const spans = Math.floor(subrequests / costOf(cost, spanStripes));
  const left = subrequests - spans * costOf(cost, spanStripes);
  return Math.max(1, spans * spanStripes + Math.max(0, Math.floor((left - span) / stripe)));
}

/**
 * The answer as far as one invocation can give it. A range may be answered in part (RFC 9110, 15.3.7: the client sees in
 * Content-Range what it got); a whole object may not.
 *
 * @throws OBJECT_TOO_LARGE for a whole object.
 */
export function withinReach(
  answer: ObjectAnswer,
  { key, bytes, stripeBytes }: Manifest,
  cost: ReadCost,
  subrequestsMax: number,
): ObjectAnswer {
  const { range } = answer;
  if (!range) return answer;
  const stripesMax = stripesWithin(cost, PLANNED_SHARE * subrequestsMax);
  const endMax = (Math.floor(range.start / stripeBytes) + stripesMax) * stripeBytes;
  if (range.end <= endMax) return answer;
  if (answer.status !== 206) {
    throw new AgaroseError(
      "OBJECT_TOO_LARGE",
      `${JSON.stringify(key)} has ${bytes} bytes, and this PoP decodes up to ${endMax} in one answer: ` +
        `ask for ranges, or read it through the service worker or \`agarose get\``,
      { bytes, max: endMax, subrequestsMax },
    );
  }
  const shortened = { start: range.start, end: endMax };
  const headers = {
    ...answer.headers,
    "content-length": String(shortened.end - shortened.start),
    "content-range": contentRange(shortened, bytes),
  };
  return { ...answer, headers, range: shortened };
}
