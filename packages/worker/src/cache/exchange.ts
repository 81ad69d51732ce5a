/**
 * An exchange between two periods: what the requests of the last seconds ask for is kept in the Cache API, which costs
 * no KV write and may forget it. Of each object that the policy wants more of than KV has, it keeps all data chunks.
 * Plans name them as probable, and the next period writes to KV what the policy still wants then.
 */
import { inParallel } from "@agarose/core/async";
import type { ObjectShape, PlannedContents, RegionEstimate } from "@agarose/solver/planner";
import { KEPT_SECONDS } from "../read/fetched-stripes.ts";
import type { ExchangeReport } from "./ledger.ts";
import { observe } from "./period.ts";
import { openBooks, type PeriodBooks, type PeriodContext } from "./period-context.ts";
import { planPeriod, type PeriodPlan } from "./period-plan.ts";
import { fillParts, fillStripe } from "./stripe-fill.ts";

/** An exchange starts no new fill after this. */
const WORK_MS = 4_000;
/** An exchange that takes longer counts as killed. */
export const EXCHANGE_LEASE_MS = 20_000;
/** The most that one exchange adds. */
const ADDED_BYTES_MAX = 64 * 2 ** 20;
const STRIPES_AT_ONCE = 6;
/** The list that all isolates read names so many objects at most: the Cache API has the newest. */
const KEPT_MAX = 512;
/** Chunks that stay for less than this are refetched while they are wanted. */
const RENEWED_MS = 60_000;

/**
 * Runs one exchange. Resolves to undefined while a period or a purge runs. Rejects when the PoP's state is unavailable.
 *
 * @param kept what earlier exchanges have kept: by version until when, in milliseconds since 1970. It is updated.
 */
export async function runExchange(
  context: PeriodContext,
  kept: Map<string, number>,
): Promise<ExchangeReport | undefined> {
  const { state, cache, system } = context;
  const snapshot = await state.beginPeriod(system.now(), EXCHANGE_LEASE_MS);
  if (!snapshot) return undefined;
  const startMs = system.clock.now();
  const { books, errors } = openBooks(context, snapshot);
  let plan: PeriodPlan | undefined;
  let added = 0;
  try {
    const observed = snapshot.regions.length > 0 ? snapshot : await observe(context, snapshot);
    const { regions: estimates } = observed;
    plan = await planPeriod(context, books, observed, true);
    for (const [version, untilMs] of kept) if (untilMs <= system.now()) kept.delete(version);
    for (const object of additions(plan.planned, books.ledger, kept, system.now())) {
      if (system.clock.now() - startMs > WORK_MS) break;
      const untilMs = system.now() + KEPT_SECONDS * 1_000;
      if (!(await keepObject(context, books, estimates, plan, object))) continue;
      added++;
      kept.delete(object.version);
      kept.set(object.version, untilMs);
    }
    for (const version of [...kept.keys()].slice(0, -KEPT_MAX)) kept.delete(version);
    if (kept.size > 0) await cache.fetched.publish(kept);
  } catch (error) {
    books.onError(error);
  } finally {
    const { egressBudget, writeBudget } = books;
    if (egressBudget.used > 0) {
      await state.spend(writeBudget.priceOf(0, 0), egressBudget.of(egressBudget.used));
    }
    await state.endLease();
  }
  const fetchedBytes = books.egressBudget.used;
  const ended = { at: system.now(), ms: system.clock.now() - startMs };
  return { ...ended, asked: plan?.candidates ?? 0, added, fetchedBytes, kept: kept.size, errors };
}

/** The objects that the plan wants more of than KV has and that are not kept for long enough, best first. */
function additions(
  planned: readonly PlannedContents[],
  ledger: PeriodBooks["ledger"],
  kept: ReadonlyMap<string, number>,
  nowMs: number,
): ObjectShape[] {
  let bytes = 0;
  return planned
    .filter(({ object: { version }, chunks, worth }) => {
      const isKept = (kept.get(version) ?? 0) - nowMs >= RENEWED_MS;
      return worth > 0 && !isKept && chunks.length > (ledger.get(version)?.chunks.length ?? 0);
    })
    .toSorted((a, b) => b.worth - a.worth)
    .map(({ object }) => object)
    .filter(({ k, chunkBytes }) => (bytes += k * chunkBytes) <= ADDED_BYTES_MAX);
}

/**
 * Keeps the data chunks of all stripes, with what reads have just fetched of them. Resolves to whether it did. Never
 * rejects.
 */
async function keepObject(
  context: Pick<PeriodContext, "settings" | "cache" | "system">,
  books: Pick<PeriodBooks, "egressBudget" | "onError">,
  estimates: readonly RegionEstimate[],
  { manifestOf }: Pick<PeriodPlan, "manifestOf">,
  object: ObjectShape,
): Promise<boolean> {
  const { budget } = context.system;
  const { egressBudget } = books;
  const bytes = object.k * object.chunkBytes;
  // In the worst case every chunk is asked for once, and each stripe takes a get and a put of the Cache API.
  const operations = object.stripes * (object.k + object.m + 2);
  if (egressBudget.left < bytes || !budget.allows(operations)) return false;
  try {
    return await egressBudget.hold(bytes, () =>
      budget.hold(operations, async () => {
        const manifest = await manifestOf(object);
        if (!manifest) return false;
        const stripes = Array.from({ length: object.stripes }, (_, stripe) => stripe);
        const peers = await context.cache.peers?.sourcesOf(manifest);
        const wanted = Array.from({ length: object.k }, (_, chunk) => chunk);
        await inParallel(STRIPES_AT_ONCE, stripes, async (stripe) => {
          const parts = fillParts(context, books, estimates, { manifest, stripe });
          const { chunks } = await fillStripe({ ...parts, manifest, stripe, peers, wanted, stored: [] });
          budget.spend();
          const data = wanted.map((chunk) => chunks.get(chunk)!);
          await context.cache.fetched.keep(object.version, stripe, data);
        });
        return true;
      }),
    );
  } catch (error) {
    books.onError(error);
    return false;
  }
}
