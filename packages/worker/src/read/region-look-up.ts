/** The manifest of a key as the buckets have it, at the consistency that is wanted. */
import { AgaroseError, toAgaroseError, type Clock } from "@agarose/core";
import { isTombstone } from "@agarose/core/format";
import {
  AVOID_MS_MAX,
  findManifest,
  hedgeAfterMs,
  readMajority,
  type SourceHealth,
  type FindManifestOptions,
  type TaggedManifest,
  type MajorityReadOptions,
} from "@agarose/core/sources";
import type { RegionEstimate } from "@agarose/solver/planner";
import { withTimeout } from "../runtime/async.ts";
import { log } from "../runtime/log.ts";
import type { Traffic } from "../http/traffic.ts";
import type { CircuitBreakers } from "../regions/circuit-breakers.ts";
import { latencyOf } from "../regions/region-latency.ts";
import type { ConfiguredRegion } from "../regions/region-settings.ts";
import type { Consistency, FoundManifest } from "./manifest-store.ts";

/** The parts of its isolate and invocation that a look-up needs. */
interface RegionLookUp extends Pick<FindManifestOptions, "fetch" | "sha256" | "trust"> {
  readonly regions: readonly Pick<ConfiguredRegion, "name" | "popUrl">[];
  readonly estimates: readonly RegionEstimate[];
  readonly clock: Clock;
  readonly breakers: CircuitBreakers;
  /** Regions that lacked a version which a majority has: they have probably missed other puts of that time, too. */
  readonly laggards: SourceHealth;
  readonly traffic: Pick<Traffic, "unconfirmed" | "foundBehind" | "unusableManifest">;
  /** Takes the regions that lack the newest version: this PoP cannot write to buckets. */
  readonly onBehind: (regions: readonly string[]) => void;
}

/** Regions that hang must not hang a read. By then a read has replaced late regions if others answer at all. */
export const LOOK_UP_MS = 8_000;

/** Resolves to the manifest, none older than `generationMin`. Rejects as `findManifest` does. */
export async function lookUp(
  key: string,
  generationMin: number,
  consistency: Consistency,
  options: RegionLookUp,
  known?: TaggedManifest,
): Promise<FoundManifest> {
  const { fetch, sha256, trust, clock, estimates, breakers, laggards, traffic } = options;
  const regions = options.regions.map(({ name, popUrl }) => {
    const latency = latencyOf(estimates, name);
    // A region that sent an unsigned manifest, or lacked a version, is tried when no other answers.
    const isLast = breakers.isOpen(manifestsOf(name)) || laggards.isAvoided(name);
    // Its place is the last, but another region replaces it as soon as any other: several may be asked for a majority.
    const last = { ...latency, meanMs: latency.meanMs + LOOK_UP_MS, lateMs: hedgeAfterMs(latency) };
    return { name, url: popUrl, latency: isLast ? last : latency };
  });
  const abort = new AbortController();
  const finding: FindManifestOptions = {
    regions,
    fetch,
    clock,
    signal: abort.signal,
    sha256,
    trust,
    generationMin,
    onUnusable: (region, { code }) => {
      breakers.failed(manifestsOf(region));
      if (traffic.unusableManifest(region, code)) log("warn", "manifest not used", { region, key, code });
    },
  };
  const found = consistency === "strong" ? ofMajority(key, { ...finding, known }, options) : firstOf(key, finding);
  try {
    return await withTimeout(found, LOOK_UP_MS, clock, `finding the manifest of ${JSON.stringify(key)}`);
  } finally {
    abort.abort();
  }
}

/**
 * The manifest that a majority of the regions has. Where none can be had, it is the first sound one, because a reader
 * is better off with a version that may be old than with none; but none older than what a region has just shown.
 */
async function ofMajority(
  key: string,
  finding: FindManifestOptions & Pick<MajorityReadOptions, "known">,
  { laggards, traffic, onBehind }: RegionLookUp,
): Promise<FoundManifest> {
  const note = (behind: readonly string[]): void => {
    for (const region of behind) {
      laggards.avoid(region, AVOID_MS_MAX);
      traffic.foundBehind(region);
    }
    if (behind.length > 0) onBehind(behind);
  };
  try {
    const buckets = [...new Map(finding.regions.map((region) => [region.url, region])).values()];
    const names = finding.regions.map(({ name }) => name);
    // A region with a former name is there twice, and has one vote.
    const { record, behind, tags } = await readMajority(key, { ...finding, regions: buckets, names });
    note(behind);
    if (record && !isTombstone(record)) return { manifest: record, isConfirmed: true, tags };
    throw new AgaroseError("OBJECT_NOT_FOUND", `a majority of the regions has no object ${JSON.stringify(key)}`, {
      key,
      ...(record && { generation: record.generation }),
    });
  } catch (error) {
    const { code, details } = toAgaroseError(error);
    if (code !== "NO_QUORUM" && code !== "READ_UNCERTAIN") throw error;
    traffic.unconfirmed++;
    // Whether the newest version was acknowledged nobody can know, but who lacks it needs a repair in both cases.
    note((details["behind"] ?? []) as readonly string[]);
    const seen = code === "READ_UNCERTAIN" ? Number(details["generation"] ?? 0) : 0;
    return firstOf(key, { ...finding, generationMin: Math.max(finding.generationMin ?? 0, seen) });
  }
}

/** The first sound manifest. */
async function firstOf(key: string, finding: FindManifestOptions): Promise<FoundManifest> {
  return { manifest: await findManifest(key, finding), isConfirmed: false };
}

/** The breaker of a region's manifests, which says nothing about its chunks. */
function manifestsOf(region: string): string {
  return `manifests of ${region}`;
}
