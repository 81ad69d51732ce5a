/**
 * `GET /healthz` and `GET /v1/status`: whether this PoP runs, what it caches, and how it sees its regions and peers.
 */
import type { Context } from "hono";
import { peerState } from "../../peers/cooperation.ts";
import { isolateOf } from "../../runtime/isolate.ts";
import { continentOf } from "../../runtime/continents.ts";
import { quantileMs } from "../../regions/latency-histogram.ts";
import { popState } from "../../cache/pop-state-stub.ts";
import { currentEgress, currentSpending } from "../../cache/spending.ts";
import type { AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { ideasOf } from "../ideas.ts";
import { findPlace, knownPlace } from "../known-place.ts";

/**
 * Answers 200 when the PoP runs and its variables are right. It waits for no other service, so polling it is cheap.
 * `entry` is where the request entered Cloudflare, and `place` where the Worker and its objects run: null in an
 * isolate's first answers. `continent` is whose state one Worker everywhere uses.
 */
export function healthz(c: Context<AppEnv>): Response {
  const { pop, location } = settingsOf(c.env);
  const continent = continentOf(c.env);
  const entry = c.req.raw.cf?.["colo"] ?? null;
  const where =
    location === undefined
      ? {}
      : {
          location,
          entry,
          place: knownPlace(c.env, (promise) => c.executionCtx.waitUntil(promise)),
          version: c.env.VERSION?.id ?? null,
        };
  return c.json({ ok: true, pop, ...(continent && { continent }), ...where }, 200, { "cache-control": "no-store" });
}

/** Answers with the state of the PoP and of the isolate that answers, as JSON. */
export async function status(c: Context<AppEnv>): Promise<Response> {
  const {
    pop,
    policy,
    cacheBytes,
    delta,
    functional,
    recovered,
    peers,
    spending: limits,
    fillEgressBytesPerDay,
    fillClientsMin,
    regions: own,
    publisherKeys,
  } = settingsOf(c.env);
  const isolate = isolateOf(c.env);
  const sources = [...own, ...(peers?.pops ?? [])].map(({ name }) => name);
  const snapshot = await popState(c.env).snapshot();
  const { epoch, ledger, regions, lastPeriod, spending, fillEgress } = snapshot;
  const peerStatus = peers ? await peerState(c.env).status() : null;
  const cachedBytes = ledger.reduce((sum, entry) => sum + entry.chunks.length * entry.chunkBytes, 0);
  return c.json({
    pop,
    continent: continentOf(c.env) ?? null,
    version: c.env.VERSION?.id ?? null,
    publisherKeys,
    policy,
    delta,
    functional,
    epoch,
    cache: { capacityBytes: cacheBytes, cachedBytes, objects: ledger },
    regions: regions.map(({ transfers: _transfers, times, ...region }) => ({
      ...region,
      p50Ms: quantileMs(times, 0.5) ?? null,
      p99Ms: quantileMs(times, 0.99) ?? null,
    })),
    // Keys that regions lack the newest version of: `agarose scrub` and `agarose repair` heal them.
    behind: snapshot.behind,
    // How long the chunk cache takes: the first read of a value in KV, and the next ones.
    cacheLatency: {
      firstMs: snapshot.cacheLatency.first?.meanMs ?? null,
      againMs: snapshot.cacheLatency.again?.meanMs ?? null,
    },
    place: await findPlace(c.env),
    peers: peerStatus,
    // Which ideas of the papers are at work, with the last period's estimates.
    ideas: ideasOf({
      settings: { policy, functional, recovered, delta, fillClientsMin },
      snapshot,
      peers: peerStatus?.peers,
    }),
    lastPeriod: lastPeriod ?? null,
    // Chunks that exchanges have last put into the Cache API, in seconds between two periods.
    lastExchange: snapshot.lastExchange ?? null,
    // The cache manager's KV operations of this month; a limit of null is no limit.
    spending: {
      ...currentSpending(spending, Date.now()),
      usdPerPeriodMax: Number.isFinite(limits.usdPerPeriod) ? limits.usdPerPeriod : null,
      usdPerMonthMax: Number.isFinite(limits.usdPerMonth) ? limits.usdPerMonth : null,
    },
    // Bytes that fills have fetched from the regions today, and those that the last period would have fetched beyond
    // that.
    fillEgress: {
      ...currentEgress(fillEgress, Date.now()),
      bytesPerDayMax: fillEgressBytesPerDay,
      clientsMin: fillClientsMin,
      refusedStripes: lastPeriod?.refused ?? 0,
    },
    // Counters of the isolate that answers; other isolates have their own.
    isolate: {
      chunkCache: isolate.cache.counters,
      stripes: isolate.coalescing.counters,
      recoveredChunks: isolate.traffic.recoveredChunks,
      decodedShards: isolate.traffic.decodedShards,
      regionImbalancePercent: isolate.traffic.regionImbalancePercent(own.map(({ name }) => name)),
      deniedRegions: isolate.denials.regions,
      readsWithMemory: isolate.memory.reads,
      expiredReads: isolate.memory.expired,
      limitedLookups: isolate.misses.refused,
      unconfirmedLookups: isolate.traffic.unconfirmed,
      openBreakers: sources.filter((name) => isolate.breakers.isOpen(name)),
      droppedCounts: isolate.counter.dropped,
    },
  });
}
