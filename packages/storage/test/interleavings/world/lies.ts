/**
 * Answers of a hostile region: old signed manifests of any region, forged ones, none, wrong bytes and wrong times.
 * It does not keep all that is written, and it cannot sign.
 */
import type { ListedObject } from "../../../src/buckets/store.ts";
import type { Bucket, StoredObject } from "./bucket.ts";
import { EPOCH_MS } from "./process.ts";

/** Draws a number in [0, 1) for a purpose. */
type Draw = (purpose: number) => number;

const DAY_MS = 86_400_000;
const FAR_AHEAD = 999_900;
const OTHER_ETAG = '"00000000000000000000000000000000"';

/** The knowledge of a lying region. */
export interface Knowledge {
  /** Every manifest that any region ever had. */
  readonly history: readonly StoredObject[];
  /** Manifests that it has made up. */
  readonly forgeries: readonly StoredObject[];
}

/** The claimed object of a lying region under a name. */
export function liesOf(
  name: string,
  { history, forgeries }: Knowledge,
  bucket: Bucket,
  draw: Draw,
): StoredObject | undefined {
  const truth = bucket.objects.get(name);
  if (draw(20) < 0.3) return truth;
  if (draw(21) < 0.2) return undefined;
  if (name.startsWith("manifests/")) {
    const shown = draw(18) < 0.3 && forgeries.length > 0 ? forgeries : history;
    return shown[Math.floor(draw(22) * shown.length)];
  }
  if (!truth) return undefined;
  const bytes = truth.bytes.slice(0, truth.bytes.length - Math.floor(2 * draw(23)));
  if (bytes.length > 0) bytes[Math.floor(draw(24) * bytes.length)]! ^= 1;
  return { ...truth, bytes };
}

/**
 * A listing with times of other days and other ETags, without some of its names, and with a claim or mark that no
 * process made.
 */
export function falseListing(prefix: string, listed: readonly ListedObject[], draw: Draw): ListedObject[] {
  const kept = listed.filter((_, index) => draw(30 + index) < 0.7);
  const tags = draw(19) < 0.3 ? { etag: OTHER_ETAG } : {};
  const aged = kept.map((object) => ({
    ...object,
    ...tags,
    modifiedMs: object.modifiedMs - Math.floor(60 * draw(25)) * DAY_MS,
  }));
  const isPlanted = prefix.includes("!") && prefix.startsWith("claims/") && draw(26) < 0.5;
  // Far ahead is still below the limit at which writers take a claim for a lie.
  const generation = 1 + Math.floor(50 * draw(27)) + (draw(29) < 0.3 ? FAR_AHEAD : 0);
  const planted = { name: `${prefix}${generation}`, bytes: 2, modifiedMs: EPOCH_MS };
  return isPlanted && !aged.some(({ name }) => name === planted.name) ? [...aged, planted] : aged;
}

/** Whether it acknowledges a write or removal that it does not do. */
export function isForgotten(draw: Draw): boolean {
  return draw(28) < 0.3;
}
