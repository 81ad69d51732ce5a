/**
 * * The changes of a period in the cache: it counts requests, looks keys up, asks the policy, and trims the change to
 * the budget.
 */
import type { Manifest } from "@agarose/core/format";
import { type CachePlan, type ObjectShape, type PlannedContents, type Savings } from "@agarose/solver/planner";
import type { PopSettings } from "../peers/peer-settings.ts";
import { EDGE_LATENCY } from "../regions/region-latency.ts";
import { FRONT_TTL_SECONDS } from "../read/chunk-cache.ts";
import { fnv1a } from "../popularity/frequency-sketch.ts";
import type { PeriodReport } from "./ledger.ts";
import { egressOf, pricesOf } from "./cache-settings.ts";
import { affordableChange, diffCache, leftovers, type AffordableChange } from "./cache-change.ts";
import type { Observed, PeriodBooks, PeriodContext } from "./period-context.ts";
import { ABSENT_MAX, lookUp } from "./look-up.ts";
import { encodePlannerState } from "./planner-state.ts";

/** The tasks of a period. */
export interface PeriodPlan {
  /** The wanted contents of the cache. */
  readonly planned: readonly PlannedContents[];
  /** Nothing for an exchange. */
  readonly change: AffordableChange;
  readonly candidates: number;
  /** The most popular keys, in requests per period. */
  readonly popular: NonNullable<PeriodReport["popular"]>;
  /**
   * Resolves to the manifest of an object to fill, or to undefined when its key names another version now. Rejects as
   * `findManifest` does.
   */
  readonly manifestOf: (object: ObjectShape) => Promise<Manifest | undefined>;
  /** Returns what each idea saves with the cache as the ledger has it now; undefined without requests. */
  readonly savings: () => Savings | undefined;
}

/**
 * Keys that a period looks up: the most popular ones, those not yet cached as planned, and those popular at peers. Half
 * of the popular ones are left to keys that the policy does not know, and most others take turns, so that new versions
 * are noticed.
 */
const LOOKED_UP_MAX = 300;
const RENEWED_EACH_PERIOD = 100;
const UNSETTLED_MAX = 100;
const AT_PEERS_MAX = 100;
/** Keys that the report of a period names, for `scrub` to choose from. */
const REPORTED_MAX = 100;

/** Cron Triggers run once a minute. */
const PERIOD_SECONDS = 60;
/** Keys that an exchange looks up. */
const EXCHANGED_MAX = 50;

/** An exchange writes nothing to KV. */
const NO_CHANGE: AffordableChange = { evict: [], fill: [], announce: [], waiting: 0, refused: 0 };

/** Plans a period, or an exchange in between. Rejects when the request monitor or the PoP's state is unavailable. */
export async function planPeriod(
  { settings, state, planners, requests: monitor, system, turn }: Omit<PeriodContext, "cache">,
  { ledger, writeBudget, egressBudget, onError }: PeriodBooks,
  { regions, cacheLatency }: Observed,
  isExchange = false,
): Promise<PeriodPlan> {
  const { findManifest } = monitor;
  const { peers, mayChange } = turn;
  const counted = await monitor.closePeriod(settings.knownObjects);
  const afford = (planned: Parameters<typeof diffCache>[1]): AffordableChange => {
    if (isExchange) return NO_CHANGE;
    const change = diffCache([...ledger.values()], planned);
    const isFree = mayChange || settings.policy === "off";
    return affordableChange(isFree ? change : leftovers(change, ledger), [...ledger.values()], {
      writes: writeBudget.writesLeft,
      egressBytes: egressBudget.left,
      capacityBytes: settings.cacheBytes,
    });
  };
  // A client that cannot steer the fills cannot make a scrub store an object with a different code either.
  const popular = counted
    .filter(({ mayFill }) => mayFill)
    .slice(0, REPORTED_MAX)
    .map(({ key, popularity }) => ({ key, popularity }));
  // Cached objects may stay for one client, too.
  const cachedKeys = new Set([...ledger.values()].filter(({ target }) => target.length > 0).map(({ key }) => key));
  const requests = counted.filter(({ key, mayFill }) => mayFill || cachedKeys.has(key));
  if (settings.policy === "off" || (isExchange && requests.length === 0)) {
    const change = afford([]);
    return { planned: [], change, candidates: 0, popular, manifestOf: async () => undefined, savings: () => undefined };
  }
  const planner = await planners.planner(
    {
      policy: settings.policy,
      capacityBytes: settings.cacheBytes,
      slots: settings.knownObjects,
      cacheMs: (cacheLatency.again ?? EDGE_LATENCY).meanMs,
      firstRead: cacheLatency.first && { ms: cacheLatency.first.meanMs, periods: FRONT_TTL_SECONDS / PERIOD_SECONDS },
      delta: settings.delta,
      recovered: settings.recovered,
      prices: pricesOf(settings, settings.regions),
      functionalPop: settings.functional ? popNumber(settings) : undefined,
    },
    async () => state.loadPlan(),
  );
  const asked = requests.map(({ key }) => key);
  const keys = isExchange
    ? asked.filter((key) => !planner.knows(key)).slice(0, EXCHANGED_MAX)
    : [
        ...planner.unsettled(ledger).slice(0, UNSETTLED_MAX),
        ...[...(peers?.requests.keys() ?? [])].slice(0, AT_PEERS_MAX),
        ...popularKeys(asked, (key) => planner.knows(key), system.now()),
      ];
  const foundMax = keys.length - ABSENT_MAX;
  const { objects, manifests, absent } = await lookUp(keys, {
    findManifest,
    mayLookUp: monitor.mayLookUp,
    onError,
    foundMax: Math.max(LOOKED_UP_MAX, foundMax),
  });
  // A key without an object leaves the popularity, so that it takes no lookup of the next period.
  if (absent.length > 0) await monitor.forgetKeys(absent).catch(onError);
  let plan: CachePlan;
  try {
    plan = planner.plan({
      nowMs: system.now(),
      requests,
      objects,
      regions,
      ledger,
      mayChange,
      isExchange,
      ...(peers ? { peers } : {}),
    });
    // An exchange changes nothing that a restart must not lose.
    if (!isExchange && planners.mustSave(planner.known)) await state.savePlan(encodePlannerState(plan.state));
  } catch (error) {
    planners.forget();
    throw error;
  }
  if (plan.error !== undefined) onError(plan.error);
  return {
    planned: plan.planned,
    change: afford(plan.planned),
    candidates: plan.candidates,
    popular,
    manifestOf: async (object) => {
      const manifest = manifests.get(object.version) ?? (await findManifest(object.key));
      return manifest.version === object.version ? manifest : undefined;
    },
    savings: () => planner.savings((version) => ledger.get(version)?.chunks ?? [], egressOf(settings.regions)),
  };
}

/** Returns which of the keys a period looks up, most popular first. */
export function popularKeys(asked: readonly string[], isKnown: (key: string) => boolean, nowMs: number): string[] {
  const all = LOOKED_UP_MAX + ABSENT_MAX;
  if (asked.length <= all) return [...asked];
  const { known = [], other = [] } = Object.groupBy(asked, (key) => (isKnown(key) ? "known" : "other"));
  const turns = known.slice(RENEWED_EACH_PERIOD);
  const left = all - Math.min(known.length, RENEWED_EACH_PERIOD);
  const renewed = Math.min(turns.length, left - Math.min(other.length, all / 2));
  const first = (Math.floor(nowMs / (PERIOD_SECONDS * 1_000)) * renewed) % Math.max(1, turns.length);
  const inTurn = [...turns.slice(first), ...turns.slice(0, first)].slice(0, renewed);
  return [...known.slice(0, RENEWED_EACH_PERIOD), ...other.slice(0, left - renewed), ...inTurn];
}

/** Returns the number of a PoP: peers have different numbers, and other PoPs most likely do. */
function popNumber({ pop, peers }: PopSettings): number {
  if (!peers) return fnv1a(pop);
  return [pop, ...peers.pops.map(({ name }) => name)].toSorted().indexOf(pop);
}
