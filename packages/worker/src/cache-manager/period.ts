/** The Cron Trigger: one period of the cache manager with this PoP's real parts. */
import { systemSha256 } from "@agarose/core";
import { Budget, OPERATIONS_MAX } from "../platform/operation-budget.ts";
import { runPeriod } from "./cache-manager.ts";
import type { Configuration } from "../state/configuration.ts";
import type { Env } from "../http/settings.ts";
import { Invocation, isolateOf } from "../read/isolate.ts";
import { log } from "../platform/log.ts";
import { peerSources } from "../peers/peer-reading.ts";
import { takeTurn, tellPeers } from "../peers/cooperation.ts";
import { MONITOR_SHARDS, monitorShard, popState } from "../request-monitor/request-counter.ts";
import type { KeyRequests } from "../request-monitor/request-monitor.ts";

interface PeriodContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** Rejects when the PoP's state cannot be had: the cache stays as it is, and the next period goes on. */
export async function period(env: Env, context: PeriodContext): Promise<void> {
  try {
    await run(env, context);
  } catch (error) {
    log("error", "period failed", { error });
    throw error;
  }
}

async function run(env: Env, context: PeriodContext): Promise<void> {
  const { settings, breakers, cache, clock, codec, configuration, counter, telemetry } = isolateOf(env);
  // Manifests may take half of the subrequests, as far as they are not KV's, and the changes the other half.
  const halfMax = Math.ceil(settings.subrequestsMax / 2);
  const budget = new Budget(Math.min(OPERATIONS_MAX, halfMax));
  const invocation = new Invocation(env, context, () => budget.spend());
  await telemetry.flush(env, invocation.waitUntil);
  await counter.flush(env);
  const state = popState(env);
  const turn = await takeTurn(invocation);
  let published: Configuration | undefined;
  const report = await runPeriod({
    settings,
    state: {
      beginPeriod: async (nowMs, leaseMs) => state.beginPeriod(nowMs, leaseMs),
      mergeRegions: async (probes) => state.mergeRegions(probes),
      record: async (entries) => state.record(entries),
      remove: async (versions) => state.remove(versions),
      nextEpoch: async () => state.nextEpoch(),
      loadPlan: async () => state.loadPlan(),
      savePlan: async (plan) => state.savePlan(plan),
      spend: async (spending) => state.spend(spending),
      endPeriod: async (ended) => state.endPeriod(ended),
    },
    closePeriod: (limit) => closePeriod(env, limit),
    mayLookUp: () => invocation.subrequests.used < halfMax,
    findManifest: (key) => invocation.manifest(key),
    cache,
    context: invocation.cacheContext,
    fetch: invocation.fetch,
    clock,
    sha256: systemSha256,
    codec,
    onPublished: (current) => {
      configuration.set(current);
      published = current;
    },
    now: Date.now,
    budget,
    fillPeers: settings.peers && {
      sourcesOf: (manifest) => peerSources(invocation, manifest, []),
      note: (name, isGood) => (isGood ? breakers.succeeded(name) : breakers.failed(name)),
    },
    ...turn,
  });
  if (published) await tellPeers(env, published, turn.mayChange);
  if (report) log(report.errors.length > 0 ? "warn" : "info", "period", { pop: settings.pop, ...report });
}

async function closePeriod(env: Env, limit: number): Promise<KeyRequests[]> {
  const shards = Array.from({ length: MONITOR_SHARDS }, (_, shard) => monitorShard(env, shard).closePeriod(limit));
  const popular = (await Promise.all(shards)).flat();
  return popular.toSorted((a, b) => b.popularity - a.popularity);
}
