/**
 * Purge: removes the manifests and chunks of some keys from this PoP. The ledger decides, as in a period, and a purge
 * holds a period's lease, so that no period restores what it removes.
 */
import { AgaroseError } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import { notifyPeers } from "../peers/cooperation.ts";
import { sleep } from "../runtime/async.ts";
import { Budget, OPERATIONS_MAX } from "../runtime/budget.ts";
import { forgetOriginObjects } from "../read/origin-object.ts";
import type { Invocation } from "../runtime/invocation.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { PopSnapshot } from "./pop-state.ts";
import { CacheWriter } from "./cache-writer.ts";
import { LEASE_MS } from "./period.ts";
import { periodContext } from "./tick.ts";
import { openBooks, type PeriodContext } from "./period-context.ts";
import { publishConfiguration } from "./publish.ts";

/** Which keys to purge. */
export interface PurgeRequest {
  readonly keys: readonly string[];
  /** Every key with this prefix; the empty prefix purges all. */
  readonly prefix: string | undefined;
}

/** The result of a purge. */
export interface PurgeReport {
  readonly epoch: number;
  /** Objects that had cached chunks. */
  readonly objects: number;
  /** Stripes removed from KV now. */
  readonly stripes: number;
  /** Stripes left to the next period. */
  readonly left: number;
  /** Errors as `CODE: message`: the next period retries. */
  readonly errors: readonly string[];
}

const LEASE_PATIENCE_MS = 20_000;
const LEASE_RETRY_MS = 500;
const WORK_MS = 20_000;

/** Purges, and waits up to 20 s for a running period. Rejects with BUSY after that. */
export async function purge(request: PurgeRequest, invocation: Invocation): Promise<PurgeReport> {
  const { isolate } = invocation;
  const context = periodContext(invocation, {
    budget: new Budget(Math.min(OPERATIONS_MAX, isolate.settings.subrequestsMax)),
    turn: { mayChange: false },
    onPublished: (published) => isolate.configuration.set(published),
  });
  const snapshot = await lease(context);
  try {
    const matching = snapshot.ledger.filter(({ key }) => matches(request, key));
    const keys = [...request.keys, ...matching.map(({ key }) => key)];
    const isPurged = (key: string): boolean => matches(request, key);
    await isolate.manifests.forget(isPurged, keys);
    await forgetOriginObjects(isPurged, request.keys, isolate);
    return await remove(matching, snapshot, context, invocation);
  } finally {
    // A lease that does not end here expires.
    await orUndefined(Promise.resolve(context.state.endLease()), LEASE_RETRY_MS, isolate.clock);
  }
}

/** First withdraws the promise of the chunks, then removes them. */
async function remove(
  matching: readonly LedgerEntry[],
  snapshot: PopSnapshot,
  context: PeriodContext,
  { env }: Invocation,
): Promise<PurgeReport> {
  const { settings, state, cache, system } = context;
  // A purge removes everything whatever it costs; its operations only count.
  const spending = { ...settings.spending, usdPerPeriod: Infinity, usdPerMonth: Infinity };
  const unspent = { ledger: snapshot.ledger, spending: undefined, fillEgress: undefined };
  const { books, errors } = openBooks({ settings: { ...settings, spending }, system }, unspent);
  const { ledger, writeBudget } = books;
  const evict = matching.map((entry) => ({ ...entry, chunks: [], target: [], done: 0 }));
  for (const entry of evict) ledger.set(entry.version, entry);
  await state.record(evict);
  const published = await publishConfiguration(context, ledger.values(), snapshot.regions).catch(books.onError);
  if (published) await notifyPeers(env, settings, published, false, system.clock);
  for (const { version } of matching) cache.chunks.forget(version);
  writeBudget.spend({ writes: 1 });
  const untilMs = system.clock.now() + WORK_MS;
  const writer = new CacheWriter(context, books, {
    estimates: snapshot.regions,
    manifestOf: async () => undefined,
    untilMs,
  });
  await writer.apply({ evict, fill: [], announce: [] });
  await state.spend(writeBudget.spent);
  const { evicted, left } = writer.counts;
  const epoch = published?.epoch ?? snapshot.epoch;
  return { epoch, objects: matching.length, stripes: evicted, left, errors };
}

/** Waits for the period that is running, if one is. */
async function lease({ state, system: { clock, now } }: Pick<PeriodContext, "state" | "system">): Promise<PopSnapshot> {
  const untilMs = clock.now() + LEASE_PATIENCE_MS;
  for (;;) {
    const snapshot = await state.beginPeriod(now(), LEASE_MS);
    if (snapshot) return snapshot;
    if (clock.now() >= untilMs) {
      throw new AgaroseError("BUSY", `a period has been running for ${LEASE_PATIENCE_MS} ms: try again in a minute`);
    }
    await sleep(LEASE_RETRY_MS, clock);
  }
}

function matches({ keys, prefix }: PurgeRequest, key: string): boolean {
  return keys.includes(key) || (prefix !== undefined && key.startsWith(prefix));
}
