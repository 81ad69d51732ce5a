/** Counters of one isolate for `/metrics`. Their labels are few, however many keys there are. */
import { readKind, type ReadReport } from "@agarose/core/read";
import { imbalancePercent } from "@agarose/solver/planner";
import { routeOf } from "./routes.ts";

/** A count for each combination of labels. */
export type Counts = ReadonlyMap<string, number>;

/** What one isolate has answered and asked for. */
export class Traffic {
  /** By route and status, as `route status`. */
  readonly requests = new Map<string, number>();
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

  /** Counts an answer, and its error code where it has one. */
  answered(pathname: string, status: number, error: string | null): void {
    add(this.requests, `${routeOf(pathname)} ${status}`);
    if (error) add(this.errors, error);
  }

  /** Counts a read that has begun. */
  opened(report: ReadReport): void {
    add(this.reads, readKind(report));
  }

  /** Counts a request to a bucket. */
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

  /** Counts a request to a peer. */
  peerRequest(peer: string, outcome: string): void {
    add(this.peerRequests, `${peer} ${outcome}`);
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
