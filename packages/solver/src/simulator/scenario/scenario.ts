/** A scenario of the simulator. `parse-scenario.ts` makes one from unknown JSON. */

import { asObject, asString, fail } from "../../json-fields.ts";

/** A checked scenario with all defaults filled in. */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly seed: number;
  /** Number of repetitions with different random draws; the rows pool them. */
  readonly runs: number;
  /** At most 30 chunks in all. */
  readonly code: CodeShape;
  readonly objects: { readonly count: number; readonly bytes: ObjectBytes };
  readonly regions: readonly string[];
  /** Buckets of each region; `random-buckets` puts an object's chunks into different ones. */
  readonly bucketsPerRegion: number;
  readonly placement: "round-robin" | "random-buckets";
  readonly pops: readonly PopSpec[];
  readonly noise: NoiseSpec;
  readonly popularity: PopularitySpec;
  /** Requests per second and their total, both at a PoP of demand 1. */
  readonly requests: { readonly perSecond: number; readonly count: number };
  readonly periodSeconds: number;
  /**
   * When caches may change: at every request, or as in deployed PoPs at exchanges and at the end of each period, which
   * replay the requests since the last one to the policy in a random order.
   */
  readonly decide: "request" | "period";
  /** Interval between two exchanges, which come between the periods and write nothing into KV. */
  readonly exchangeSeconds: number;
  /** Interval between two measurements of latency. */
  readonly probeSeconds: number;
  /** Share of the time that a region is busy without extra requests, 0 to 0.9. */
  readonly load: { readonly utilization: number };
  readonly read: ReadSpec;
  readonly client: ClientSpec;
  readonly events: readonly EventSpec[];
  readonly systems: readonly SystemSpec[];
}

/** A code of k data and m parity chunks. */
export interface CodeShape {
  readonly k: number;
  readonly m: number;
}

/** Object sizes in bytes: one for all, a lognormal distribution, or one number per object. */
export type ObjectBytes = number | { readonly medianBytes: number; readonly sigma: number } | Float64Array;

/** A PoP: its latencies in milliseconds, by name of region or peer, and its cache. */
export interface PopSpec {
  readonly name: string;
  readonly regionLatencyMs: Readonly<Record<string, number>>;
  /** Transfer rate of chunks from regions. Without it latency does not depend on size. */
  readonly regionMbitPerSecond?: number;
  readonly cacheLatencyMs: number;
  /** Transfer rate of chunks from this PoP's cache, one after another, and from peers, side by side. */
  readonly cacheMbitPerSecond?: number;
  readonly peerLatencyMs: Readonly<Record<string, number>>;
  /** Exactly one of the two is set: chunks of an object of nominal size, or bytes. */
  readonly capacityChunks?: number;
  readonly capacityBytes?: number;
  /** Requests per second at this PoP as a multiple of `requests.perSecond`. */
  readonly demand: number;
}

/** The random part of latencies. */
export interface NoiseSpec {
  /** Sigma of the lognormal factor of mean 1 on every request's latency; 0 for none. */
  readonly lognormalSigma: number;
  readonly stragglerProbability: number;
  readonly stragglerFactor: number;
  /** Whether each chunk straggles independently, or all of a read's chunks from one region together. */
  readonly stragglersShared: "chunk" | "region";
}

/** The distribution of requests over ranks, and how the objects at the ranks change. */
export type PopularitySpec = (
  | { readonly type: "zipf"; readonly exponent: number }
  | { readonly type: "hot-set"; readonly fraction: number; readonly hotShare: number }
  | { readonly type: "uniform" }
) & { readonly shiftEverySeconds: number; readonly driftSwapsPerSecond: number };

/** How a system reads. */
export interface ReadSpec {
  /** Requests beyond k, an integer >= 0. */
  readonly delta: number;
  /**
   * What caches keep: copies of stored chunks, data chunks recovered from parity in their place, or new parity rows.
   */
  readonly cachedChunks: "exact" | "recovered" | "functional";
  /** Whether reads ask for parity only in place of unavailable data. */
  readonly dataChunksOnly: boolean;
  /** Milliseconds that decoding adds to a read that used other chunks than data chunks. */
  readonly decodeMs: number;
}

/** The readers of every system. */
export interface ClientSpec {
  /** Whether a late read, as 5 of 100 are, asks for one more chunk, and again when that chunk is late. */
  readonly hedge: boolean;
  /**
   * `asked`: a read of an object without reads at this PoP for a minute waits for its plan. That takes a round trip to
   * the PoP, and at the first read also one from the PoP to the nearest region.
   */
  readonly plans: "known" | "asked";
  /** Milliseconds that every read takes in addition. */
  readonly overheadMs: number;
  /** Rate of a reader's line, which the chunks of a read share. Infinity: each chunk is as fast as its source. */
  readonly mbitPerSecond: number;
}

/** A region that is slow or down for a while. */
export interface EventSpec {
  readonly atSeconds: number;
  readonly forSeconds: number;
  readonly region: string;
  readonly latencyFactor: number;
  readonly down: boolean;
}

/** One system to compare: a policy, and how objects are stored and read. */
export interface SystemSpec {
  readonly name: string;
  readonly policy: string;
  /** The policy's own settings, such as `chunks` or `alpha`. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly read: ReadSpec;
  /** Whether PoPs read from each other and place chunks together. */
  readonly joint: boolean;
  /** Whole copies in this many regions instead of coded chunks. */
  readonly replicas?: number;
}

/**
 * Resolves `extends`. `load` returns the parsed JSON of a name as written in the file. Each top-level field of the
 * extending file replaces that of the extended file as a whole. Throws SCENARIO_INVALID for a circle.
 */
export async function resolveExtends(json: unknown, load: (name: string) => Promise<unknown>): Promise<unknown> {
  const seen: string[] = [];
  let merged = asObject(json, "scenario");
  while (merged["extends"] !== undefined) {
    const name = asString(merged["extends"], "extends");
    if (seen.includes(name)) fail("extends", `goes in a circle: ${[...seen, name].join(" -> ")}`);
    seen.push(name);
    const { extends: _done, ...own } = merged;
    // `policies` and `systems` both list what to compare, so a file that has one of them replaces both.
    const { policies, systems, ...base } = asObject(await load(name), name);
    const listed = own["policies"] ?? own["systems"];
    merged = { ...base, ...(listed === undefined ? { policies, systems } : {}), ...own };
    for (const field of ["policies", "systems"] as const)
      if (merged[field] === undefined) delete (merged as Record<string, unknown>)[field];
  }
  return merged;
}

/** Returns the same scenario with the size of every cache multiplied by `factor`, >= 0. */
export function withCacheFactor(scenario: Scenario, factor: number): Scenario {
  return {
    ...scenario,
    pops: scenario.pops.map((pop) => ({
      ...pop,
      ...(pop.capacityChunks === undefined ? {} : { capacityChunks: Math.round(pop.capacityChunks * factor) }),
      ...(pop.capacityBytes === undefined ? {} : { capacityBytes: Math.round(pop.capacityBytes * factor) }),
    })),
  };
}
