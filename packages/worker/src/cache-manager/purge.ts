/**
 * Purge: what this PoP has of some keys goes, manifests and chunks. The ledger decides, as in a period, and a purge holds the
 * lease of one, so that no period puts back what it removes.
 */
import { AgaroseError, systemSha256 } from "@agarose/core";
import { Budget, OPERATIONS_MAX } from "../platform/operation-budget.ts";
import { LEASE_MS } from "./cache-manager.ts";
import { CacheWriter } from "./cache-writer.ts";
import { orUndefined } from "../platform/async.ts";
import type { Invocation } from "../read/isolate.ts";
import { tellPeers } from "../peers/cooperation.ts";
import type { LedgerEntry, PopSnapshot } from "../state/pop-state.ts";
import { publishConfiguration } from "./publish.ts";
import { popState } from "../request-monitor/request-counter.ts";
import { Purse } from "./write-budget.ts";

export interface PurgeRequest {
  readonly keys: readonly string[];
  /** Every key that begins so; the empty one is all. */
  readonly prefix: string | undefined;
}

export interface PurgeReport {
  readonly epoch: number;
  /** Objects of which chunks were cached. */
  readonly objects: number;
  /** Stripes removed from KV now, and left to the next period. */
  readonly stripes: number;
  readonly left: number;
  /** What went wrong, as `CODE: message`: the next period tries again. */
  readonly errors: readonly string[];
}

const LEASE_PATIENCE_MS = 20_000;
const LEASE_RETRY_MS = 500;
const WORK_MS = 20_000;

/** Rejects with BUSY while a period is running for too long. */
export async function purge(request: PurgeRequest, invocation: Invocation): Promise<PurgeReport> {
  const { isolate, env } = invocation;
  const state = popState(env);
  const snapshot = await lease(invocation);
  try {
    const matching = snapshot.ledger.filter(({ key }) => matches(request, key));
    const keys = [...request.keys, ...matching.map(({ key }) => key)];
    await isolate.manifests.forget((key) => matches(request, key), keys);
    return await remove(matching, snapshot, invocation);
  } finally {
    // Where this fails, the lease runs out by itself.
    await orUndefined(Promise.resolve(state.endLease()), LEASE_RETRY_MS, isolate.clock);
  }
}

/** First nobody is promised the chunks any more, then they go. */
async function remove(
  matching: readonly LedgerEntry[],
  snapshot: PopSnapshot,
  invocation: Invocation,
): Promise<PurgeReport> {
  const { isolate, env, cacheContext, fetch } = invocation;
  const { settings, cache, clock, codec, configuration } = isolate;
  const state = popState(env);
  const errors: string[] = [];
  const note = (error: unknown): void => void errors.push(String(error));
  const ledger = new Map(snapshot.ledger.map((entry) => [entry.version, entry]));
  const evict = matching.map((entry) => ({ ...entry, chunks: [], target: [], done: 0 }));
  for (const entry of evict) ledger.set(entry.version, entry);
  await state.record(evict);
  const publishing = publishConfiguration({
    settings,
    state: { nextEpoch: async () => state.nextEpoch() },
    kv: env.CHUNKS,
    clock,
    now: Date.now,
    onPublished: (published) => configuration.set(published),
    ledger: ledger.values(),
    estimates: snapshot.regions,
  });
  const published = await publishing.catch(note);
  if (published) await tellPeers(env, published, false);
  for (const { version } of matching) cache.forget(version);
  // What must go goes, whatever it costs; it is only counted.
  const unlimited = { ...settings.spending, usdPerPeriod: Infinity, usdPerMonth: Infinity };
  const purse = new Purse(unlimited, undefined, Date.now());
  purse.spend({ writes: 1 });
  const writer = new CacheWriter({
    state: {
      record: async (entries) => state.record(entries),
      remove: async (versions) => state.remove(versions),
    },
    ledger,
    cache,
    context: cacheContext,
    regions: settings.regions,
    estimates: snapshot.regions,
    fetch,
    clock,
    sha256: systemSha256,
    codec,
    manifestOf: async () => undefined,
    purse,
    budget: new Budget(Math.min(OPERATIONS_MAX, settings.subrequestsMax)),
    untilMs: clock.now() + WORK_MS,
    onError: note,
  });
  await writer.apply({ evict, fill: [], announce: [] });
  await state.spend(purse.spent);
  const { evicted, left } = writer.counts;
  const epoch = published?.epoch ?? snapshot.epoch;
  return { epoch, objects: matching.length, stripes: evicted, left, errors };
}

/** Waits for the period that is running, if one is. */
async function lease({ env, isolate: { clock } }: Invocation): Promise<PopSnapshot> {
  const state = popState(env);
  const untilMs = clock.now() + LEASE_PATIENCE_MS;
  for (;;) {
    const snapshot = await state.beginPeriod(Date.now(), LEASE_MS);
    if (snapshot) return snapshot;
    if (clock.now() >= untilMs) {
      throw new AgaroseError("BUSY", `a period has been running for ${LEASE_PATIENCE_MS} ms: try again in a minute`);
    }
    await new Promise<void>((resolve) => clock.after(LEASE_RETRY_MS, resolve));
  }
}

function matches({ keys, prefix }: PurgeRequest, key: string): boolean {
  return keys.includes(key) || (prefix !== undefined && key.startsWith(prefix));
}
