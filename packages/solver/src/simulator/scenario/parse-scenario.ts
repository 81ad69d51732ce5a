/** Turns unknown JSON into a checked scenario. */

import {
  asBoolean,
  asInteger,
  asList,
  asNumber,
  asObject,
  asOneOf,
  asString,
  fail,
  refuseUnknown,
} from "../../json-fields.ts";
import type { Json } from "../../json-fields.ts";
import type {
  ClientSpec,
  CodeShape,
  EventSpec,
  NoiseSpec,
  ObjectBytes,
  PopSpec,
  PopularitySpec,
  ReadSpec,
  Scenario,
  SystemSpec,
} from "./scenario.ts";

const FIELDS = [
  "name",
  "about",
  "seed",
  "runs",
  "code",
  "objects",
  "regions",
  "bucketsPerRegion",
  "placement",
  "pops",
  "noise",
  "popularity",
  "requests",
  "periodSeconds",
  "decide",
  "exchangeSeconds",
  "probeSeconds",
  "load",
  "read",
  "client",
  "events",
  "policies",
  "systems",
];
const POP_FIELDS = [
  "name",
  "regionLatencyMs",
  "regionMbitPerSecond",
  "cacheLatencyMs",
  "cacheMbitPerSecond",
  "peerLatencyMs",
  "capacityChunks",
  "capacityBytes",
  "demand",
];

/**
 * Checks a scenario without `extends`, and fills in the defaults. Throws SCENARIO_INVALID with the field and what it
 * should be. Policies and their settings are checked when the simulator creates them.
 */
export function parseScenario(input: unknown): Scenario {
  const json = asObject(input, "scenario");
  refuseUnknown(json, FIELDS, "");
  const code = parseCode(json["code"]);
  const regions = asList(json["regions"], "regions").map((region, i) => asString(region, `regions[${i}]`));
  if (regions.length === 0) fail("regions", "must name at least one region");
  const bucketsPerRegion = asInteger(json["bucketsPerRegion"] ?? 1, "bucketsPerRegion", 1);
  const placement = asOneOf(json["placement"] ?? "round-robin", "placement", ["round-robin", "random-buckets"]);
  if (placement === "random-buckets" && code.k + code.m > regions.length * bucketsPerRegion) {
    fail("placement", `${code.k}+${code.m} chunks do not fit in ${regions.length * bucketsPerRegion} buckets`);
  }
  const read = parseRead(json["read"] ?? {}, "read");
  return {
    name: asString(json["name"] ?? "unnamed", "name"),
    about: asString(json["about"] ?? "", "about"),
    seed: asInteger(json["seed"] ?? 1, "seed", 0),
    runs: asInteger(json["runs"] ?? 1, "runs", 1),
    code,
    objects: parseObjects(json["objects"]),
    regions,
    bucketsPerRegion,
    placement,
    pops: parsePops(json["pops"], regions),
    noise: parseNoise(json["noise"] ?? {}),
    popularity: parsePopularity(json["popularity"]),
    requests: parseRequests(json["requests"]),
    periodSeconds: asNumber(json["periodSeconds"] ?? 60, "periodSeconds", 0.001),
    decide: asOneOf(json["decide"] ?? "period", "decide", ["request", "period"]),
    exchangeSeconds: asNumber(json["exchangeSeconds"] ?? 5, "exchangeSeconds", 0.001),
    probeSeconds: asNumber(json["probeSeconds"] ?? 10, "probeSeconds", 0.001),
    load: {
      utilization: asNumber(asObject(json["load"] ?? {}, "load")["utilization"] ?? 0.3, "load.utilization", 0, 0.9),
    },
    read,
    client: parseClient(json["client"] ?? {}),
    events: asList(json["events"] ?? [], "events").map((event, i) => parseEvent(event, `events[${i}]`, regions)),
    systems: parseSystems(json, read),
  };
}

function parseCode(input: unknown): CodeShape {
  const json = asObject(input, "code");
  const k = asInteger(json["k"], "code.k", 1);
  const m = asInteger(json["m"], "code.m", 0);
  // The simulator holds cached chunks as the bits of a 32-bit mask.
  if (k + m > 30) fail("code", `the simulator takes at most 30 chunks, got ${k}+${m}`);
  return { k, m };
}

function parseObjects(input: unknown): Scenario["objects"] {
  const json = asObject(input, "objects");
  refuseUnknown(json, ["count", "bytes"], "objects.");
  const count = asInteger(json["count"], "objects.count", 1);
  const bytes = parseBytes(json["bytes"]);
  if (bytes instanceof Float64Array && bytes.length !== count) {
    fail("objects.bytes", `lists ${bytes.length} sizes for ${count} objects`);
  }
  return { count, bytes };
}

function parseBytes(input: unknown): ObjectBytes {
  if (Array.isArray(input)) return Float64Array.from(input, (bytes, i) => asInteger(bytes, `objects.bytes[${i}]`, 1));
  if (typeof input === "number") return asInteger(input, "objects.bytes", 1);
  const json = asObject(input, "objects.bytes");
  asOneOf(json["distribution"], "objects.bytes.distribution", ["lognormal"]);
  return {
    medianBytes: asNumber(json["medianBytes"], "objects.bytes.medianBytes", 1),
    sigma: asNumber(json["sigma"], "objects.bytes.sigma", 0, 10),
  };
}

function parsePops(input: unknown, regions: readonly string[]): PopSpec[] {
  const list = asList(input, "pops");
  if (list.length === 0) fail("pops", "must name at least one PoP");
  const names = list.map((pop, i) => asString(asObject(pop, `pops[${i}]`)["name"], `pops[${i}].name`));
  return list.map((entry, i) => {
    const at = `pops[${i}]`;
    const json = asObject(entry, at);
    refuseUnknown(json, POP_FIELDS, `${at}.`);
    const latency = asObject(json["regionLatencyMs"], `${at}.regionLatencyMs`);
    for (const region of regions) asNumber(latency[region], `${at}.regionLatencyMs.${region}`, 0);
    const peers = asObject(json["peerLatencyMs"] ?? {}, `${at}.peerLatencyMs`);
    for (const [peer, ms] of Object.entries(peers)) {
      if (!names.includes(peer)) fail(`${at}.peerLatencyMs`, `is not a PoP of this scenario: ${peer}`);
      asNumber(ms, `${at}.peerLatencyMs.${peer}`, 0);
    }
    const chunks = json["capacityChunks"];
    const bytes = json["capacityBytes"];
    if ((chunks === undefined) === (bytes === undefined)) fail(at, "needs either capacityChunks or capacityBytes");
    const rate = (field: "regionMbitPerSecond" | "cacheMbitPerSecond"): Partial<PopSpec> =>
      json[field] === undefined ? {} : { [field]: asNumber(json[field], `${at}.${field}`, 1e-6) };
    return {
      name: names[i]!,
      regionLatencyMs: latency as Record<string, number>,
      ...rate("regionMbitPerSecond"),
      cacheLatencyMs: asNumber(json["cacheLatencyMs"], `${at}.cacheLatencyMs`, 0),
      ...rate("cacheMbitPerSecond"),
      peerLatencyMs: peers as Record<string, number>,
      ...(chunks === undefined ? {} : { capacityChunks: asInteger(chunks, `${at}.capacityChunks`, 0) }),
      ...(bytes === undefined ? {} : { capacityBytes: asInteger(bytes, `${at}.capacityBytes`, 0) }),
      demand: asNumber(json["demand"] ?? 1, `${at}.demand`, 1e-6),
    };
  });
}

function parseNoise(input: unknown): NoiseSpec {
  const json = asObject(input, "noise");
  refuseUnknown(json, ["lognormalSigma", "stragglerProbability", "stragglerFactor", "stragglersShared"], "noise.");
  return {
    lognormalSigma: asNumber(json["lognormalSigma"] ?? 0, "noise.lognormalSigma", 0, 5),
    stragglerProbability: asNumber(json["stragglerProbability"] ?? 0, "noise.stragglerProbability", 0, 1),
    stragglerFactor: asNumber(json["stragglerFactor"] ?? 1, "noise.stragglerFactor", 1),
    stragglersShared: asOneOf(json["stragglersShared"] ?? "chunk", "noise.stragglersShared", ["chunk", "region"]),
  };
}

function parsePopularity(input: unknown): PopularitySpec {
  const json = asObject(input, "popularity");
  refuseUnknown(
    json,
    ["type", "exponent", "fraction", "hotShare", "shiftEverySeconds", "driftSwapsPerSecond"],
    "popularity.",
  );
  const change = {
    shiftEverySeconds: asNumber(json["shiftEverySeconds"] ?? 0, "popularity.shiftEverySeconds", 0),
    driftSwapsPerSecond: asNumber(json["driftSwapsPerSecond"] ?? 0, "popularity.driftSwapsPerSecond", 0, 1e5),
  };
  const type = asOneOf(json["type"], "popularity.type", ["zipf", "hot-set", "uniform"]);
  if (type === "zipf") return { type, exponent: asNumber(json["exponent"], "popularity.exponent", 0, 10), ...change };
  if (type === "uniform") return { type, ...change };
  return {
    type,
    fraction: asNumber(json["fraction"], "popularity.fraction", 1e-9, 1),
    hotShare: asNumber(json["hotShare"] ?? 1, "popularity.hotShare", 0, 1),
    ...change,
  };
}

function parseRequests(input: unknown): Scenario["requests"] {
  const json = asObject(input, "requests");
  refuseUnknown(json, ["perSecond", "count", "seconds"], "requests.");
  const perSecond = asNumber(json["perSecond"], "requests.perSecond", 1e-6);
  if ((json["count"] === undefined) === (json["seconds"] === undefined))
    fail("requests", "needs either count or seconds");
  if (json["count"] !== undefined) return { perSecond, count: asInteger(json["count"], "requests.count", 1) };
  return { perSecond, count: Math.max(1, Math.round(perSecond * asNumber(json["seconds"], "requests.seconds", 0))) };
}

function parseRead(input: unknown, at: string): ReadSpec {
  const json = asObject(input, at);
  refuseUnknown(json, ["delta", "cachedChunks", "dataChunksOnly", "decodeMs"], `${at}.`);
  return {
    delta: asInteger(json["delta"] ?? 0, `${at}.delta`, 0),
    cachedChunks: asOneOf(json["cachedChunks"] ?? "exact", `${at}.cachedChunks`, ["exact", "recovered", "functional"]),
    dataChunksOnly: asBoolean(json["dataChunksOnly"] ?? false, `${at}.dataChunksOnly`),
    decodeMs: asNumber(json["decodeMs"] ?? 0, `${at}.decodeMs`, 0),
  };
}

function parseClient(input: unknown): ClientSpec {
  const json = asObject(input, "client");
  refuseUnknown(json, ["hedge", "plans", "overheadMs", "mbitPerSecond"], "client.");
  return {
    hedge: asBoolean(json["hedge"] ?? false, "client.hedge"),
    plans: asOneOf(json["plans"] ?? "known", "client.plans", ["known", "asked"]),
    overheadMs: asNumber(json["overheadMs"] ?? 0, "client.overheadMs", 0),
    mbitPerSecond:
      json["mbitPerSecond"] === undefined ? Infinity : asNumber(json["mbitPerSecond"], "client.mbitPerSecond", 1e-6),
  };
}

function parseEvent(input: unknown, at: string, regions: readonly string[]): EventSpec {
  const json = asObject(input, at);
  refuseUnknown(json, ["atSeconds", "forSeconds", "region", "latencyFactor", "down"], `${at}.`);
  const region = asString(json["region"], `${at}.region`);
  if (!regions.includes(region)) fail(`${at}.region`, `is not a region of this scenario: ${region}`);
  return {
    atSeconds: asNumber(json["atSeconds"], `${at}.atSeconds`, 0),
    forSeconds: asNumber(json["forSeconds"], `${at}.forSeconds`, 0),
    region,
    latencyFactor: asNumber(json["latencyFactor"] ?? 1, `${at}.latencyFactor`, 0),
    down: asBoolean(json["down"] ?? false, `${at}.down`),
  };
}

function parseSystems(json: Json, read: ReadSpec): SystemSpec[] {
  const policies = asList(json["policies"] ?? [], "policies").map((entry, i) => {
    const { name: policy, ...settings } = asObject(entry, `policies[${i}]`);
    const chosen = asString(policy, `policies[${i}].name`);
    return {
      name: nameOf(chosen, settings),
      policy: chosen,
      settings,
      read: readFor(chosen, read),
      joint: chosen === "c2p",
    };
  });
  const systems = asList(json["systems"] ?? [], "systems").map((entry, i) => {
    const at = `systems[${i}]`;
    const { name, policy, read: own, joint, replicas, ...settings } = asObject(entry, at);
    const chosen = asString(policy, `${at}.policy`);
    return {
      name: asString(name, `${at}.name`),
      policy: chosen,
      settings,
      read: own === undefined ? readFor(chosen, read) : parseRead(own, `${at}.read`),
      // C2P needs peers.
      joint: asBoolean(joint ?? false, `${at}.joint`) || chosen === "c2p",
      ...(replicas === undefined ? {} : { replicas: asInteger(replicas, `${at}.replicas`, 1) }),
    };
  });
  const all = [...policies, ...systems];
  if (all.length === 0) fail("policies", "list at least one policy or system to compare");
  return withDistinctNames(all);
}

/** Sprout caches functional chunks, unless a system says how it reads. */
function readFor(policy: string, read: ReadSpec): ReadSpec {
  return policy === "sprout" ? { ...read, cachedChunks: "functional" } : read;
}

/** `lru` with chunks 3 is reported as `lru-3`. */
function nameOf(policy: string, { chunks }: Json): string {
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
