/**
 * What a period changes in the cache: requests counted, keys looked up, the policy asked, and of the change as much as there is
 * money for.
 */
import type { Manifest } from "@agarose/core";
import { affordableChange, type AffordableChange } from "./affordable-change.ts";
import { diffCache, leftovers } from "./cache-change.ts";
import type { RegionEstimate } from "../state/configuration.ts";
import { EDGE_LATENCY } from "../read/edge-source.ts";
import type { Settings } from "../http/settings.ts";
import { fnv1a } from "../request-monitor/frequency-sketch.ts";
import type { PeerView } from "../peers/peer-view.ts";
import { lookUp } from "./planner/look-up.ts";
import type { ObjectShape } from "./planner/object-shape.ts";
import { Planner, SLOTS } from "./planner/planner.ts";
import type { LedgerEntry } from "../state/pop-state.ts";
import type { KeyRequests } from "../request-monitor/request-monitor.ts";
import type { Purse } from "./write-budget.ts";

export interface PeriodPlanOptions {
  readonly settings: Settings;
  readonly ledger: ReadonlyMap<string, LedgerEntry>;
  readonly regions: readonly RegionEstimate[];
  /** Default: none. */
  readonly peers?: PeerView | undefined;
  /** False while it is another PoP's turn: then only what was begun goes on. Default: true. */
  readonly mayChange?: boolean;
  readonly state: {
    loadPlan(): Promise<Uint8Array | undefined>;
    savePlan(plan: Uint8Array): Promise<void>;
  };
  /** Ends the period in every shard of the request monitor; the most popular keys of each. */
  readonly closePeriod: (limit: number) => Promise<KeyRequests[]>;
  readonly findManifest: (key: string) => Promise<Manifest>;
  /** Whether another manifest is within what the platform allows. */
  readonly mayLookUp: () => boolean;
  readonly purse: Purse;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly onError: (error: unknown) => void;
}

export interface PeriodPlan {
  readonly change: AffordableChange;
  /** Objects that competed for the cache. */
  readonly candidates: number;
  /** Of an object that is to be filled; undefined when its key names another version by now. Rejects when it cannot be had. */
  readonly manifestOf: (object: ObjectShape) => Promise<Manifest | undefined>;
}

/** Keys looked up each period, of those most asked for, those not in the cache yet, and those that peers are asked for. */
const LOOKED_UP_MAX = 300;
const UNSETTLED_MAX = 100;
const AT_PEERS_MAX = 100;

export async function planPeriod(options: PeriodPlanOptions): Promise<PeriodPlan> {
  const { settings, ledger, regions, peers, mayChange = true, state, purse, nowMs, onError } = options;
  const requests = await options.closePeriod(SLOTS);
  const afford = (planned: Parameters<typeof diffCache>[1]): AffordableChange => {
    const change = diffCache([...ledger.values()], planned);
    const isFree = mayChange || settings.policy === "off";
    return affordableChange(isFree ? change : leftovers(change, ledger), [...ledger.values()], {
      writes: purse.writesLeft,
      capacityBytes: settings.cacheBytes,
    });
  };
  if (settings.policy === "off") return { change: afford([]), candidates: 0, manifestOf: async () => undefined };
  const before = await state.loadPlan();
  const planner = new Planner(
    {
      policy: settings.policy,
      capacityBytes: settings.cacheBytes,
      cacheMs: EDGE_LATENCY.meanMs,
      delta: settings.delta,
      functionalPop: settings.functional ? popNumber(settings) : undefined,
    },
    before,
  );
  const keys = [
    ...planner.unsettled(ledger).slice(0, UNSETTLED_MAX),
    ...requests.slice(0, LOOKED_UP_MAX).map(({ key }) => key),
    ...[...(peers?.requests.keys() ?? [])].slice(0, AT_PEERS_MAX),
  ];
  const { objects, manifests } = await lookUp(keys, options);
  const plan = planner.plan({ nowMs, requests, objects, regions, ledger, mayChange, ...(peers ? { peers } : {}) });
  if (plan.error !== undefined) onError(plan.error);
  await state.savePlan(plan.state);
  return {
    change: afford(plan.planned),
    candidates: plan.candidates,
    manifestOf: async (object) => {
      const manifest = manifests.get(object.version) ?? (await options.findManifest(object.key));
      return manifest.version === object.version ? manifest : undefined;
    },
  };
}

/** PoPs that know each other have different numbers; those that do not, most likely. */
function popNumber({ pop, peers }: Settings): number {
  if (!peers) return fnv1a(pop);
  return [pop, ...peers.pops.map(({ name }) => name)].toSorted().indexOf(pop);
}
