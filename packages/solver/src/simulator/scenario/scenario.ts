/** What a scenario of the simulator says. `parse-scenario.ts` makes one of unknown JSON. */

import { asObject, asString, fail } from "../../json-fields.ts";

export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly seed: number;
  /** Repetitions with other random draws; the rows pool them. */
  readonly runs: number;
  readonly code: CodeShape;
  readonly objects: { readonly count: number; readonly bytes: ObjectBytes };
  readonly regions: readonly string[];
  readonly bucketsPerRegion: number;
  readonly placement: "round-robin" | "random-buckets";
  readonly pops: readonly PopSpec[];
  readonly noise: NoiseSpec;
  readonly popularity: PopularitySpec;
  readonly requests: { readonly perSecond: number; readonly count: number };
  readonly periodSeconds: number;
  /**
   * When caches change: whenever the policy wants, or only at the end of each period, as deployed PoPs do, which then tell
   * the policy of the period's requests in a random order.
   */
  readonly decide: "request" | "period";
  readonly probeSeconds: number;
  readonly load: { readonly utilization: number };
  readonly read: ReadSpec;
  readonly client: ClientSpec;
  readonly events: readonly EventSpec[];
  readonly systems: readonly SystemSpec[];
}

export interface CodeShape {
  readonly k: number;
  readonly m: number;
}

/** All of one size, lognormal, or one number per object. */
export type ObjectBytes = number | { readonly medianBytes: number; readonly sigma: number } | Float64Array;

export interface PopSpec {
  readonly name: string;
  readonly regionLatencyMs: Readonly<Record<string, number>>;
  /** Adds the time a chunk takes to transfer; without it latency does not depend on size. */
  readonly regionMbitPerSecond?: number;
  readonly cacheLatencyMs: number;
  /** Adds the time that chunks take to transfer from this PoP's cache, one after another, and from peers, each by itself. */
  readonly cacheMbitPerSecond?: number;
  readonly peerLatencyMs: Readonly<Record<string, number>>;
  /** One of both: chunks of an object of nominal size, or bytes. */
  readonly capacityChunks?: number;
  readonly capacityBytes?: number;
  /** Requests per second at this PoP as a multiple of `requests.perSecond`. */
  readonly demand: number;
}

export interface NoiseSpec {
  /** Every request's latency is multiplied by a lognormal factor of mean 1. */
  readonly lognormalSigma: number;
  readonly stragglerProbability: number;
  readonly stragglerFactor: number;
  /** Whether each chunk straggles by itself, or all of a read's chunks from one region together. */
  readonly stragglersShared: "chunk" | "region";
}

export type PopularitySpec = (
  | { readonly type: "zipf"; readonly exponent: number }
  | { readonly type: "hot-set"; readonly fraction: number; readonly hotShare: number }
  | { readonly type: "uniform" }
) & { readonly shiftEverySeconds: number; readonly driftSwapsPerSecond: number };

export interface ReadSpec {
  /** Requests beyond k. */
  readonly delta: number;
  /** Copies of stored chunks, data chunks that were recovered from parity in their place, or new parity rows. */
  readonly cachedChunks: "exact" | "recovered" | "functional";
  /** Parity is asked for only in place of data that cannot be had. */
  readonly dataChunksOnly: boolean;
  /** What decoding adds to a read that used anything else than data chunks. */
  readonly decodeMs: number;
}

/** What readers do in every system. */
export interface ClientSpec {
  /** Once a read is late, as 5 of 100 reads are, one more chunk is asked for, and again when that one is late. */
  readonly hedge: boolean;
  /**
   * Whether a read of an object that was not read for a minute at this PoP waits for its plan: a round trip to the PoP, and at the
   * first time the PoP's to the nearest region.
   */
  readonly plans: "known" | "asked";
  /** What every read takes on top. */
  readonly overheadMs: number;
}

export interface EventSpec {
  readonly atSeconds: number;
  readonly forSeconds: number;
  readonly region: string;
  readonly latencyFactor: number;
  readonly down: boolean;
}

/** One row of the result: a policy together with how objects are stored and read. */
export interface SystemSpec {
  readonly name: string;
  readonly policy: string;
  /** The policy's own settings, such as `chunks` or `alpha`. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly read: ReadSpec;
  readonly joint: boolean;
  /** Whole copies in so many regions instead of coded chunks. */
  readonly replicas?: number;
}

/**
 * Resolves `extends` by `load` (a name as written in the file -> parsed JSON): each top-level field of the extending file
 * replaces the other's as a whole. Throws SCENARIO_INVALID on a cycle.
 */
export async function resolveExtends(json: unknown, load: (name: string) => Promise<unknown>): Promise<unknown> {
  const seen: string[] = [];
  let merged = asObject(json, "scenario");
  while (merged["extends"] !== undefined) {
    const name = asString(merged["extends"], "extends");
    if (seen.includes(name)) fail("extends", `goes in a circle: ${[...seen, name].join(" -> ")}`);
    seen.push(name);
    const { extends: _done, ...own } = merged;
    // `policies` and `systems` say the same thing in two ways, so a file that gives one replaces both.
    const { policies, systems, ...base } = asObject(await load(name), name);
    const listed = own["policies"] ?? own["systems"];
    merged = { ...base, ...(listed === undefined ? { policies, systems } : {}), ...own };
    for (const field of ["policies", "systems"] as const)
      if (merged[field] === undefined) delete (merged as Record<string, unknown>)[field];
  }
  return merged;
}

/** The same scenario with every cache so many times as large. */
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
