/**
 * Where the parts of the local world stand, as milliseconds between them.
 *
 * The row of `fra` is Table I of Agar (ICDCS'17), measured from Frankfurt. The rows of `lhr` and `iad`, the cache latency
 * and the distances between PoPs are our estimates in the same manner: the paper has no other row.
 */
export const REGIONS = ["frankfurt", "dublin", "n-virginia", "sao-paulo", "tokyo", "sydney"] as const;
export const POPS = ["fra", "lhr", "iad"] as const;

export type RegionName = (typeof REGIONS)[number];
export type PopName = (typeof POPS)[number];

/** Time for one chunk from a region, as seen from a PoP or from a client beside it. */
export const REGION_LATENCY_MS: Record<PopName, Record<RegionName, number>> = {
  fra: { frankfurt: 80, dublin: 200, "n-virginia": 600, "sao-paulo": 1400, tokyo: 3400, sydney: 4600 },
  lhr: { frankfurt: 150, dublin: 90, "n-virginia": 560, "sao-paulo": 1500, tokyo: 3500, sydney: 4700 },
  iad: { frankfurt: 600, dublin: 550, "n-virginia": 80, "sao-paulo": 900, tokyo: 2600, sydney: 3600 },
};

/** Time for one answer from a client's own PoP. */
export const CACHE_LATENCY_MS = 39;

const POP_DISTANCE_MS: Record<PopName, Record<PopName, number>> = {
  fra: { fra: 0, lhr: 60, iad: 450 },
  lhr: { fra: 60, lhr: 0, iad: 420 },
  iad: { fra: 450, lhr: 420, iad: 0 },
};

/** Time for one answer from PoP `pop` to a client beside PoP `near`. */
export function popLatencyMs(near: PopName, pop: PopName): number {
  return CACHE_LATENCY_MS + POP_DISTANCE_MS[near][pop];
}

/** Three providers of two regions each, so that the world can show what losing a provider does. */
export const PROVIDER: Record<RegionName, string> = {
  frankfurt: "cloud-a",
  dublin: "cloud-b",
  "n-virginia": "cloud-a",
  "sao-paulo": "cloud-b",
  tokyo: "cloud-c",
  sydney: "cloud-c",
};
