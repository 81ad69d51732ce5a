/** A scenario of the simulator: what its JSON may hold, and what it is with all defaults filled in. */
import * as v from "valibot";
import { checked, integer, number, refuse, type Immutable } from "../../checked.ts";

const codeShape = v.pipe(
  v.object({ k: integer(1), m: integer(0) }),
  // The simulator holds cached chunks as the bits of a 32-bit mask.
  v.check(({ k, m }) => k + m <= 30, "the simulator takes at most 30 chunks"),
);

/** A code of k data and m parity chunks, at most 30 in all. */
export type CodeShape = Immutable<v.InferOutput<typeof codeShape>>;

/** Object sizes in bytes: one for all, a lognormal distribution, or one number per object. */
const objectBytes = v.union([
  integer(1),
  v.pipe(
    v.array(integer(1)),
    v.transform((sizes): Float64Array => Float64Array.from(sizes)),
  ),
  v.pipe(
    v.object({ distribution: v.literal("lognormal"), medianBytes: number(1), sigma: number(0, 10) }),
    v.transform(({ medianBytes, sigma }) => ({ medianBytes, sigma })),
  ),
]);

const objects = v.pipe(
  v.strictObject({ count: integer(1), bytes: objectBytes }),
  v.forward(
    v.check(
      ({ count, bytes }) => !(bytes instanceof Float64Array) || bytes.length === count,
      "lists another number of sizes than `objects.count`",
    ),
    ["bytes"],
  ),
);

const pop = v.pipe(
  v.strictObject({
    name: v.string(),
    regionLatencyMs: v.record(v.string(), number(0)),
    /** Transfer rate of chunks from regions, without which latency does not depend on size. */
    regionMbitPerSecond: v.optional(number(1e-6)),
    cacheLatencyMs: number(0),
    /** Transfer rate of chunks from this PoP's cache, one after another, and from peers, side by side. */
    cacheMbitPerSecond: v.optional(number(1e-6)),
    peerLatencyMs: v.optional(v.record(v.string(), number(0)), {}),
    /** Exactly one of the two is set: chunks of an object of nominal size, or bytes. */
    capacityChunks: v.optional(integer(0)),
    capacityBytes: v.optional(integer(0)),
    /** Requests per second at this PoP as a multiple of `requests.perSecond`. */
    demand: v.optional(number(1e-6), 1),
  }),
  v.check(
    ({ capacityChunks, capacityBytes }) => (capacityChunks === undefined) !== (capacityBytes === undefined),
    "needs either capacityChunks or capacityBytes",
  ),
);

/** A PoP: its latencies in milliseconds, by name of region or peer, and its cache. */
export type PopSpec = Immutable<v.InferOutput<typeof pop>>;

const noise = v.strictObject({
  /** Sigma of the lognormal factor of mean 1 on every request's latency; 0 for none. */
  lognormalSigma: v.optional(number(0, 5), 0),
  stragglerProbability: v.optional(number(0, 1), 0),
  stragglerFactor: v.optional(number(1), 1),
  /** Whether each chunk straggles independently, or all of a read's chunks from one region together. */
  stragglersShared: v.optional(v.picklist(["chunk", "region"]), "chunk"),
});

/** The random part of latencies. */
export type NoiseSpec = Immutable<v.InferOutput<typeof noise>>;

const change = {
  shiftEverySeconds: v.optional(number(0), 0),
  driftSwapsPerSecond: v.optional(number(0, 1e5), 0),
};
const popularity = v.variant("type", [
  v.strictObject({ type: v.literal("zipf"), exponent: number(0, 10), ...change }),
  v.strictObject({
    type: v.literal("hot-set"),
    fraction: number(1e-9, 1),
    hotShare: v.optional(number(0, 1), 1),
    ...change,
  }),
  v.strictObject({ type: v.literal("uniform"), ...change }),
]);

/** The distribution of requests over ranks, and how the objects at the ranks change. */
export type PopularitySpec = Immutable<v.InferOutput<typeof popularity>>;

const requests = v.pipe(
  v.strictObject({ perSecond: number(1e-6), count: v.optional(integer(1)), seconds: v.optional(number(0)) }),
  v.check(({ count, seconds }) => (count === undefined) !== (seconds === undefined), "needs either count or seconds"),
  v.transform(({ perSecond, count, seconds = 0 }) => {
    return { perSecond, count: count ?? Math.max(1, Math.round(perSecond * seconds)) };
  }),
);

const read = v.strictObject({
  /** Requests beyond k, an integer >= 0. */
  delta: v.optional(integer(0), 0),
  /**
   * The chunks that caches keep: copies of stored chunks, data chunks recovered from parity in their place, or new
   * parity rows.
   */
  cachedChunks: v.optional(v.picklist(["exact", "recovered", "functional"]), "exact"),
  /** Whether reads ask for parity only in place of unavailable data. */
  dataChunksOnly: v.optional(v.boolean(), false),
  /** Milliseconds that decoding adds to a read that used other chunks than data chunks. */
  decodeMs: v.optional(number(0), 0),
});

/** How a system reads. */
type ReadSpec = Immutable<v.InferOutput<typeof read>>;

const client = v.strictObject({
  /** Whether a late read, as 5 of 100 are, asks for one more chunk, and again when that chunk is late. */
  hedge: v.optional(v.boolean(), false),
  /**
   * `asked`: a read of an object without reads at this PoP for a minute waits for its plan. That takes a round trip to
   * the PoP, and at the first read also one from the PoP to the nearest region.
   */
  plans: v.optional(v.picklist(["known", "asked"]), "known"),
  /** Milliseconds that every read takes in addition. */
  overheadMs: v.optional(number(0), 0),
  /** Rate of a reader's line, which the chunks of a read share. Infinity: each chunk is as fast as its source. */
  mbitPerSecond: v.optional(number(1e-6, Infinity), Infinity),
});

/** The readers of every system. */
export type ClientSpec = Immutable<v.InferOutput<typeof client>>;

const event = v.strictObject({
  atSeconds: number(0),
  forSeconds: number(0),
  region: v.string(),
  latencyFactor: v.optional(number(0), 1),
  down: v.optional(v.boolean(), false),
});

/** A region that is slow or down for a while. */
export type EventSpec = Immutable<v.InferOutput<typeof event>>;

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

const scenario = v.strictObject({
  name: v.optional(v.string(), "unnamed"),
  about: v.optional(v.string(), ""),
  seed: v.optional(integer(0), 1),
  /** Number of repetitions with different random draws; the rows pool them. */
  runs: v.optional(integer(1), 1),
  code: codeShape,
  objects,
  regions: v.pipe(v.array(v.string()), v.minLength(1)),
  /** Buckets of each region; `random-buckets` puts an object's chunks into different ones. */
  bucketsPerRegion: v.optional(integer(1), 1),
  placement: v.optional(v.picklist(["round-robin", "random-buckets"]), "round-robin"),
  pops: v.pipe(v.array(pop), v.minLength(1)),
  noise: v.optional(noise, {}),
  popularity,
  /** Requests per second and their total, both at a PoP of demand 1. */
  requests,
  periodSeconds: v.optional(number(0.001), 60),
  /**
   * When caches may change: at every request, or as in deployed PoPs at exchanges and at the end of each period, which
   * replay the requests since the last one to the policy in a random order.
   */
  decide: v.optional(v.picklist(["request", "period"]), "period"),
  /** Interval between two exchanges, which come between the periods and write nothing into KV. */
  exchangeSeconds: v.optional(number(0.001), 5),
  /** Interval between two measurements of latency. */
  probeSeconds: v.optional(number(0.001), 10),
  /** Share of the time that a region is busy without extra requests, 0 to 0.9. */
  load: v.optional(v.object({ utilization: v.optional(number(0, 0.9), 0.3) }), {}),
  read: v.optional(read, {}),
  client: v.optional(client, {}),
  events: v.optional(v.array(event), []),
  policies: v.optional(v.array(v.looseObject({ name: v.string() })), []),
  systems: v.optional(
    v.array(
      v.looseObject({
        name: v.string(),
        policy: v.string(),
        read: v.optional(read),
        joint: v.optional(v.boolean(), false),
        replicas: v.optional(integer(1)),
      }),
    ),
    [],
  ),
});

type ScenarioFields = v.InferOutput<typeof scenario>;

/** A checked scenario with all defaults filled in. */
export type Scenario = Immutable<Omit<ScenarioFields, "policies" | "systems">> & {
  readonly systems: readonly SystemSpec[];
};

/**
 * Checks a scenario without `extends`, and fills in the defaults. Throws SCENARIO_INVALID with the field and what it
 * should be. Policies and their settings are checked when the simulator creates them.
 */
export function parseScenario(input: unknown): Scenario {
  const { policies, systems, ...rest } = checked(scenario, input);
  const { code, regions, bucketsPerRegion, placement, pops, events } = rest;
  const buckets = regions.length * bucketsPerRegion;
  if (placement === "random-buckets" && code.k + code.m > buckets) {
    refuse("placement", `${code.k}+${code.m} chunks do not fit in ${buckets} buckets`);
  }
  for (const [i, { regionLatencyMs, peerLatencyMs }] of pops.entries()) {
    const missing = regions.find((region) => regionLatencyMs[region] === undefined);
    if (missing !== undefined) refuse(`pops[${i}].regionLatencyMs.${missing}`, "is missing");
    const stranger = Object.keys(peerLatencyMs).find((peer) => !pops.some(({ name }) => name === peer));
    if (stranger !== undefined) refuse(`pops[${i}].peerLatencyMs`, `is not a PoP of this scenario: ${stranger}`);
  }
  for (const [i, { region }] of events.entries()) {
    if (!regions.includes(region)) refuse(`events[${i}].region`, `is not a region of this scenario: ${region}`);
  }
  return { ...rest, systems: systemsOf({ policies, systems, read: rest.read }) };
}

function systemsOf({ policies, systems, read: common }: Pick<ScenarioFields, "policies" | "systems" | "read">) {
  const all = [
    ...policies.map(({ name: policy, ...settings }): SystemSpec => {
      const own = { policy, settings, read: readFor(policy, common), joint: policy === "c2p" };
      return { name: nameOf(policy, settings), ...own };
    }),
    ...systems.map(
      ({ name, policy, read: own = readFor(policy, common), joint, replicas, ...settings }): SystemSpec => {
        // C2P needs peers.
        const system = { name, policy, settings, read: own, joint: joint || policy === "c2p" };
        return { ...system, ...(replicas !== undefined && { replicas }) };
      },
    ),
  ];
  if (all.length === 0) refuse("policies", "list at least one policy or system to compare");
  return withDistinctNames(all);
}

/** Sprout caches functional chunks, unless a system says how it reads. */
function readFor(policy: string, common: ReadSpec): ReadSpec {
  return policy === "sprout" ? { ...common, cachedChunks: "functional" } : common;
}

/** `lru` with chunks 3 is reported as `lru-3`. */
function nameOf(policy: string, { chunks }: { readonly chunks?: unknown }): string {
  return chunks === undefined ? policy : `${policy}-${String(chunks)}`;
}

/** Appends their settings to names that come twice. */
function withDistinctNames(systems: SystemSpec[]): SystemSpec[] {
  return systems.map((system) => {
    if (systems.filter((other) => other.name === system.name).length === 1) return system;
    const settings = Object.entries(system.settings).map(([key, value]) => `${key}=${String(value)}`);
    return { ...system, name: `${system.name} (${settings.join(", ")})` };
  });
}

const extending = v.looseObject({
  extends: v.optional(v.string()),
  policies: v.optional(v.unknown()),
  systems: v.optional(v.unknown()),
});

/**
 * Resolves `extends`. `load` returns the parsed JSON of a name as written in the file. Each top-level field of the
 * extending file replaces that of the extended file as a whole. Throws SCENARIO_INVALID for a circle.
 */
export async function resolveExtends(json: unknown, load: (name: string) => Promise<unknown>): Promise<unknown> {
  const seen: string[] = [];
  let merged = checked(extending, json);
  while (merged.extends !== undefined) {
    const { extends: name, ...own } = merged;
    if (seen.includes(name)) refuse("extends", `goes in a circle: ${[...seen, name].join(" -> ")}`);
    seen.push(name);
    // `policies` and `systems` both list what to compare, so a file that has one of them replaces both.
    const { policies, systems, ...base } = checked(extending, await load(name));
    merged = { ...base, ...own, ...((own.policies ?? own.systems) === undefined && { policies, systems }) };
  }
  return merged;
}

/** Returns the same scenario with the size of every cache multiplied by `factor`, >= 0. */
export function withCacheFactor(base: Scenario, factor: number): Scenario {
  return {
    ...base,
    pops: base.pops.map(({ capacityChunks, capacityBytes, ...own }) => ({
      ...own,
      ...(capacityChunks === undefined ? {} : { capacityChunks: Math.round(capacityChunks * factor) }),
      ...(capacityBytes === undefined ? {} : { capacityBytes: Math.round(capacityBytes * factor) }),
    })),
  };
}
