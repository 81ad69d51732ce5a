/** `GET /v1/status`: what this PoP caches and how it sees its regions and peers, as JSON. */
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { quantileMs } from "../../region-manager/latency-histogram.ts";
import { peerState } from "../../request-monitor/monitor-shards.ts";
import { popState } from "../../request-monitor/request-counter.ts";
import { currentSpending } from "../../cache-manager/write-budget.ts";

export async function status(c: Context<AppEnv>): Promise<Response> {
  const { isolate } = new Invocation(c.env, c.executionCtx);
  const { pop, policy, cacheBytes, delta, functional, peers, spending: budget } = isolate.settings;
  const sources = [...isolate.settings.regions, ...(peers?.pops ?? [])].map(({ name }) => name);
  const { epoch, ledger, regions, lastPeriod, spending } = await popState(c.env).snapshot();
  const cachedBytes = ledger.reduce((sum, entry) => sum + entry.chunks.length * entry.chunkBytes, 0);
  return c.json({
    pop,
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
    peers: peers ? await peerState(c.env).status() : null,
    lastPeriod: lastPeriod ?? null,
    // KV operations of the cache manager in this month; a limit of null is none.
    spending: {
      ...currentSpending(spending, Date.now()),
      usdPerPeriodMax: Number.isFinite(budget.usdPerPeriod) ? budget.usdPerPeriod : null,
      usdPerMonthMax: Number.isFinite(budget.usdPerMonth) ? budget.usdPerMonth : null,
    },
    // Of the isolate that answers; others have counted their own.
    isolate: {
      chunkCache: isolate.cache.counters,
      stripes: isolate.flights.counters,
      openBreakers: sources.filter((name) => isolate.breakers.isOpen(name)),
      droppedCounts: isolate.counter.dropped,
      droppedReports: isolate.telemetry.dropped,
    },
  });
}
