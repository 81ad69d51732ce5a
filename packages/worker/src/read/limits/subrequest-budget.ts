/**
 * How much of an object one invocation can decode within the subrequests that the platform allows. One GET of a bucket
 * brings a chunk of many stripes; the cache and the peers take a subrequest per stripe.
 */
import { AgaroseError } from "@agarose/core";
import type { Manifest } from "@agarose/core/format";
import { contentRange, type ObjectAnswer } from "@agarose/core/http";
import { SPAN_BYTES_MAX } from "@agarose/core/sources";

/** The subrequests of a read of one object. */
export interface ReadCost {
  /** Subrequests for each stripe. */
  readonly stripe: number;
  /** Subrequests for each run of stripes that one GET of a bucket brings, and for the hashes of these. */
  readonly span: number;
  /** Stripes in such a run. */
  readonly spanStripes: number;
}

/** The planned share of an invocation's subrequests; the rest is for failed and late requests. */
const PLANNED_SHARE = 0.8;
/** Operations for the cached chunks of a stripe: Cache API, KV, and a put into the Cache API. */
const CACHE_OPERATIONS = 3;

/**
 * Returns the subrequests of a read.
 *
 * @param cached number of chunks in this PoP's cache.
 * @param atPeers number of chunks that only peers' caches have.
 */
export function readCost(
  { k, stripeBytes, pageStripes, hashes = [] }: Pick<Manifest, "k" | "stripeBytes"> & Partial<Manifest>,
  { delta, cached, atPeers }: { readonly delta: number; readonly cached: number; readonly atPeers: number },
): ReadCost {
  // A request that is overtaken or late at one stripe may be repeated at a later one.
  const repeated = Math.max(1, delta);
  const spanStripes = Math.max(1, Math.floor(SPAN_BYTES_MAX / stripeBytes));
  const pages = pageStripes ? Math.min(hashes.length, Math.ceil(spanStripes / pageStripes)) : 0;
  return {
    stripe: (cached > 0 ? CACHE_OPERATIONS : 0) + Math.min(k, atPeers) + repeated,
    span: k + delta + pages,
    spanStripes,
  };
}

/** Returns the subrequests of `stripes` stripes in a row. */
export function costOf({ stripe, span, spanStripes }: ReadCost, stripes: number): number {
  return stripes * stripe + Math.ceil(stripes / spanStripes) * span;
}

/** Returns the most stripes in a row that `subrequests` pay for: at least 1. */
function stripesWithin(cost: ReadCost, subrequests: number): number {
  const { stripe, span, spanStripes } = cost;
  const spans = Math.floor(subrequests / costOf(cost, spanStripes));
  const left = subrequests - spans * costOf(cost, spanStripes);
  return Math.max(1, spans * spanStripes + Math.max(0, Math.floor((left - span) / stripe)));
}

/**
 * Returns the answer, shortened to what one invocation can give. A range may be answered in part (RFC 9110, 15.3.7:
 * Content-Range says which part). Throws OBJECT_TOO_LARGE for a whole object that takes more subrequests.
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
