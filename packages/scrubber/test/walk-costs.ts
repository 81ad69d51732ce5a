/** The cost of a walk over sound objects of one code, by arithmetic. A test counts the requests of one in workerd. */

/** A walk. */
export interface WalkShape {
  readonly objects: number;
  readonly objectsPerPart: number;
  readonly regions: number;
  readonly ranges: number;
}

/** Prices in US dollars, and what was measured. */
export const ASSUMED = {
  /** https://aws.amazon.com/s3/pricing/ for lists and data transfer out, without its tiers. */
  s3List: 5e-6,
  s3EgressGb: 0.09,
  /** https://developers.cloudflare.com/r2/pricing/ for class A. */
  r2List: 4.5e-6,
  /** https://developers.cloudflare.com/workers/platform/pricing/ for CPU, and requests and rows of Durable Objects. */
  cpuMs: 0.02e-6,
  durableRequest: 0.15e-6,
  durableRow: 1e-6,
  /** Of a name in a listing of S3. */
  nameBytes: 300,
  /** For an object in a region: Miniflare took 1.2 ms for three regions, and Node a tenth of that. */
  cpuMsPerRegion: 0.4,
  /** Until a bucket on another continent has sent a page, and how many requests of a Worker may wait. */
  listMs: 150,
  waiting: 6,
} as const;

/** Names of a page of a listing. */
const PAGE = 1_000;
/** Samples that a cut takes for a range, and regions that it takes them from. */
const [SAMPLES, REGIONS_SAMPLED] = [4, 3];

/** Parts, each a step of a Workflow, and requests to buckets, all of them lists. */
export function walkRequests({ objects, objectsPerPart, regions, ranges }: WalkShape) {
  // The last part of a range is not full, and neither is the last page of a part.
  const parts = Math.round(objects / objectsPerPart + ranges / 2);
  const pages = objects / PAGE + parts;
  // A manifest and a chunk of each object in each region, and the repair queue.
  return {
    parts,
    lists: Math.round(regions * (2 * pages + parts) + SAMPLES * ranges * Math.min(REGIONS_SAMPLED, regions)),
  };
}

/** Hours and dollars of a walk with so many ranges at a time. */
export function walkCosts(shape: WalkShape, concurrency: number) {
  const { objects, regions } = shape;
  const { parts, lists } = walkRequests(shape);
  const cpuMs = objects * regions * ASSUMED.cpuMsPerRegion;
  const egressGb = (2 * objects * regions * ASSUMED.nameBytes) / 1e9;
  return {
    parts,
    lists,
    hours: ((lists / ASSUMED.waiting) * ASSUMED.listMs + cpuMs) / concurrency / 3_600_000,
    workers: cpuMs * ASSUMED.cpuMs + 2 * parts * (ASSUMED.durableRequest + ASSUMED.durableRow),
    r2: lists * ASSUMED.r2List,
    s3: lists * ASSUMED.s3List + egressGb * ASSUMED.s3EgressGb,
  };
}
