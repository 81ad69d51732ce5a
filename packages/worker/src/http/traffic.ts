/** Counters of one isolate for `/metrics`. Their labels are few, however many keys there are. */
import { readKind, type ReadReport } from "@agarose/core/read";
import { imbalancePercent } from "@agarose/solver/planner";
import { routeOf } from "./routes.ts";

/** A count for each combination of labels. */
export type Counts = ReadonlyMap<string, number>;

/** The upper ends of the classes of a histogram, in seconds, as Prometheus' own libraries have them. */
export const SECONDS_CLASSES: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A histogram: its sum, its count, and how many were at most each of `SECONDS_CLASSES`. */
export interface Durations {
  seconds: number;
  count: number;
  readonly atMost: number[];
}

/** Answers and requests of one isolate. */
export class Traffic {
  /** By route and status, as `route status`. */
  readonly requests = new Map<string, number>();
  /** Times to the head of the answers, by route. */
  readonly durations = new Map<string, Durations>();
  /** Refusals by error code. */
  readonly errors = new Map<string, number>();
  /** Reads through `/o/` by `x-agarose-read`. */
  readonly reads = new Map<string, number>();
  /** Requests of `/o/` to buckets, as `region outcome`. */
  readonly bucketRequests = new Map<string, number>();
  /** Copies of manifests that were not used because of what they say, as `region code`. */
  readonly unusableManifests = new Map<string, number>();
  /** How often each region lacked a version that a majority has. */
  readonly regionsBehind = new Map<string, number>();
  /** Look-ups for which no majority of the regions could be had, so that the first sound manifest was used. */
  unconfirmed = 0;
  /** Requests of `/o/` to other PoPs, as `peer outcome`. */
  readonly peerRequests = new Map<string, number>();

  /** Recovered chunks that took part in reads and bundles: each spared its reader a decode of that chunk. */
  recoveredChunks = 0;
  /** Data shards that reads through `/o/` decoded. */
  decodedShards = 0;

  /** Counts an answer, its error code where it has one, and the time to its head. */
  answered(pathname: string, status: number, error: string | null, seconds: number): void {
    const route = routeOf(pathname);
    add(this.requests, `${route} ${status}`);
    const none: Durations = { seconds: 0, count: 0, atMost: SECONDS_CLASSES.map(() => 0) };
    const durations = this.durations.get(route) ?? none;
    this.durations.set(route, durations);
    durations.seconds += seconds;
    durations.count++;
    for (const [i, end] of SECONDS_CLASSES.entries()) if (seconds <= end) durations.atMost[i]!++;
    if (error) add(this.errors, error);
  }

  opened(report: ReadReport): void {
    add(this.reads, readKind(report));
  }

  bucketRequest(region: string, outcome: string): void {
    add(this.bucketRequests, `${region} ${outcome}`);
  }

  /** Counts a manifest that is not used. Returns whether it is the first of its region with this error. */
  unusableManifest(region: string, code: string): boolean {
    const name = `${region} ${code}`;
    add(this.unusableManifests, name);
    return this.unusableManifests.get(name) === 1;
  }

  /** Counts a region that lacks a version. */
  foundBehind(region: string): void {
    add(this.regionsBehind, region);
  }

  /**
   * Returns how far the requests to the busiest of `regions` are above their mean, in percent (EC-Cache, equation (1)).
   * Requests that were cancelled or failed count: they are load, too.
   */
  regionImbalancePercent(regions: readonly string[]): number {
    const loads = new Map(regions.map((name) => [name, 0]));
    for (const [name, count] of this.bucketRequests) {
      const region = name.slice(0, name.lastIndexOf(" "));
      if (loads.has(region)) loads.set(region, loads.get(region)! + count);
    }
    return imbalancePercent([...loads.values()]);
  }

  peerRequest(peer: string, outcome: string): void {
    add(this.peerRequests, `${peer} ${outcome}`);
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
