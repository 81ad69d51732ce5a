/**
 * One period of the cache, in five steps: observe, plan, write, publish, report (Agar, ICDCS'17, section IV).
 *
 * A step that fails leaves the cache as it was. The next period finishes what this one left, for lack of budget or
 * because it was killed.
 */
import type { RegionEstimate, Savings } from "@agarose/solver/planner";
import { probeRegions, SIZED_EVERY, sizedTargets } from "../regions/region-probes.ts";
import { KV_DEADLINE_MS } from "../read/chunk-cache.ts";
import { timedMs } from "../runtime/async.ts";
import { NO_TIMES, type CacheLatency, type CacheTimes } from "./cache-latency.ts";
import type { PeriodReport } from "./ledger.ts";
import type { PopSnapshot } from "./pop-state.ts";
import { CacheWriter, noWrites, type WriteCounts } from "./cache-writer.ts";
import type { Configuration } from "./configuration.ts";
import { openBooks, type Observed, type PeriodBooks, type PeriodContext } from "./period-context.ts";
import { planPeriod, type PeriodPlan } from "./period-plan.ts";
import { publishConfiguration } from "./publish.ts";

/** A period starts no new work after this, with its wait for its turn; the rest of the minute is for finishing. */
const WORK_MS = 45_000;
/** Look-ups may begin for half of the time that is left, so that fills have the other half, and at least for this. */
const LOOK_UPS_MS_MIN = 5_000;
/** A period or purge that takes longer counts as killed. */
export const LEASE_MS = 120_000;
/** A cache that takes less is near, as it is before the first measurement: reads measure it. */
const SLOW_CACHE_MS = 20;
/** Every period publishes, whatever the budget. */
const PUBLISHING_WRITES = 1;

/**
 * Runs one period. Resolves to undefined while another invocation runs one; rejects when the PoP's state is
 * unavailable.
 */
export async function runPeriod(context: PeriodContext): Promise<PeriodReport | undefined> {
  const { state, cache, system } = context;
  const snapshot = await state.beginPeriod(system.now(), LEASE_MS);
  if (!snapshot) return undefined;
  const startMs = system.clock.now();
  const { books, errors } = openBooks(context, snapshot);
  books.writeBudget.reserve(PUBLISHING_WRITES);
  const observed = (await observe(context, snapshot).catch(books.onError)) ?? snapshot;
  const { regions } = observed;
  const { requests } = context;
  const untilMs = startMs + WORK_MS - (context.turn.waitedMs ?? 0);
  const lookUpsMs = Math.max(LOOK_UPS_MS_MIN, (untilMs - system.clock.now()) / 2);
  const lookUpsUntilMs = system.clock.now() + lookUpsMs;
  const mayLookUp = (): boolean => system.clock.now() < lookUpsUntilMs && requests.mayLookUp();
  const planning = planPeriod({ ...context, requests: { ...requests, mayLookUp } }, books, observed);
  const plan = (await planning.catch(books.onError)) ?? undefined;
  const written = plan && (await write(context, books, regions, plan, untilMs));
  let { epoch } = snapshot;
  const onPublished = (configuration: Configuration): void => {
    epoch = configuration.epoch;
    cache.onPublished(configuration);
  };
  // This isolate reads by the configuration even if KV refuses it, and the report says so.
  await publish({ ...context, cache: { ...cache, onPublished } }, books, regions).catch(books.onError);
  const ended = { at: system.now(), ms: system.clock.now() - startMs, epoch, operations: system.budget.used };
  const report = { ...ended, ...reportOf(books, plan, written), errors };
  await state.endPeriod(report);
  return report;
}

/** Probes the regions, and the cache where it was slow. Resolves to the new estimates. */
export async function observe(
  context: Pick<PeriodContext, "settings" | "state" | "requests" | "cache" | "system">,
  { epoch, ledger, cacheLatency }: Pick<PopSnapshot, "epoch" | "ledger" | "cacheLatency">,
): Promise<Observed> {
  const { settings, state, requests, system } = context;
  const { fetch, clock } = system;
  const keys = epoch % SIZED_EVERY === 0 ? ledger.map(({ key }) => key) : [];
  const sized = await sizedTargets(keys, requests.findManifest);
  const probes = await probeRegions({ regions: settings.regions, sized, fetch, clock });
  return state.mergeProbes(probes, await probeCache(context, cacheLatency));
}

/**
 * Probes the cache where it was slow: KV then keeps nothing that a read would measure, and no read would notice that it
 * is fast again. No data center knows the name, so that the probe is a first read. Never rejects.
 */
async function probeCache(
  { cache, system }: Pick<PeriodContext, "cache" | "system">,
  { first }: CacheLatency,
): Promise<CacheTimes> {
  if (!first || first.meanMs < SLOW_CACHE_MS) return NO_TIMES;
  const { budget, clock, now } = system;
  const { kv, connections } = cache.kv;
  budget.spend();
  const ask = async (): Promise<boolean> => (await kv.get(`probe:${now()}`)) === null;
  const ms = await connections.run(() => timedMs(ask, KV_DEADLINE_MS, clock));
  // After an outage the estimate of before is as good as any.
  return Number.isFinite(ms) ? { ...NO_TIMES, first: { reads: 1, ms } } : NO_TIMES;
}

/** The outcome of a period's writes. */
interface Written {
  readonly counts: WriteCounts;
  readonly savings: Savings | undefined;
}

/** Evicts and fills as planned. Never rejects: what was done until an error counts. */
async function write(
  context: Pick<PeriodContext, "settings" | "state" | "cache" | "system">,
  books: PeriodBooks,
  estimates: readonly RegionEstimate[],
  { change, manifestOf, savings }: PeriodPlan,
  untilMs: number,
): Promise<Written> {
  const { state } = context;
  const { writeBudget, egressBudget } = books;
  const writer = new CacheWriter(context, books, { estimates, manifestOf, untilMs });
  let saved: Savings | undefined;
  try {
    // The state records the money before it is spent, so a killed period has recorded too much rather than too little.
    const reserved = writer.atMost(change);
    const reservedBytes = writer.fetchesAtMost(change);
    await state.spend(reserved, egressBudget.of(reservedBytes));
    try {
      await writer.apply(change);
    } finally {
      const { writes, reads } = writeBudget.spent;
      await state.spend(
        writeBudget.priceOf(writes - reserved.writes, reads - reserved.reads),
        egressBudget.of(egressBudget.used - reservedBytes),
      );
      saved = savings();
    }
  } catch (error) {
    books.onError(error);
  }
  return { counts: writer.counts, savings: saved };
}

/** Publishes what the ledger promises, and pays for it. Rejects as `publishConfiguration` does. */
async function publish(
  context: Pick<PeriodContext, "settings" | "state" | "cache" | "system">,
  { ledger, writeBudget }: Pick<PeriodBooks, "ledger" | "writeBudget">,
  estimates: readonly RegionEstimate[],
): Promise<void> {
  await context.state.spend(writeBudget.priceOf(PUBLISHING_WRITES, 0));
  writeBudget.spend({ writes: PUBLISHING_WRITES });
  await publishConfiguration(context, ledger.values(), estimates);
}

/** Returns what a period reports of its plan and its writes; a plan that failed has neither. */
function reportOf(
  { writeBudget }: Pick<PeriodBooks, "writeBudget">,
  plan: PeriodPlan | undefined,
  written: Written | undefined,
): Omit<PeriodReport, "at" | "ms" | "epoch" | "operations" | "errors"> {
  const { counts = noWrites(), savings } = written ?? {};
  return {
    candidates: plan?.candidates ?? 0,
    popular: plan?.popular ?? [],
    ...counts,
    refused: (plan?.change.refused ?? 0) + counts.refused,
    waiting: plan?.change.waiting ?? 0,
    ...(savings ? { savings } : {}),
    usd: writeBudget.spent.usd,
  };
}
