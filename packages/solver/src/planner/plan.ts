/** Inputs and results of the planner. */
import type { PeerView } from "../cooperation/peer-view.ts";
import type { RegionEstimate } from "../options/sources.ts";
import type { PolicyDefinition } from "../policies/define-policy.ts";
import type { CacheView } from "./cache-options.ts";
import type { CachedObject, ObjectShape } from "./object-shape.ts";
import type { MsPrices } from "./prices.ts";
import type { CacheSlot } from "./slot-cache.ts";

/** How to plan. */
export interface PlannerOptions extends Omit<CacheView, "regions" | "peers" | "cachedOf"> {
  /** Name of one of the solver's policies. */
  readonly policy: string;
  /** Policies beside those of PoPs. Default: none. */
  readonly policies?: readonly PolicyDefinition[];
  readonly capacityBytes: number;
  /** Objects that the policy distinguishes. Default: 32,768. */
  readonly slots?: number;
  /** Prices of reads, writes and the cache. Default: only milliseconds count, with a fixed cost of a write. */
  readonly prices?: MsPrices | undefined;
}

/** The observations of a period. */
export interface PlanInput {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Most popular first. */
  readonly requests: readonly { readonly key: string; readonly requests: number; readonly popularity: number }[];
  /**
   * The present objects of keys; undefined where nothing is left to cache. Keys that were not looked up are missing.
   */
  readonly objects: ReadonlyMap<string, ObjectShape | undefined>;
  /** As measured at the end of the period. */
  readonly regions: readonly RegionEstimate[];
  /** Default: none. */
  readonly peers?: PeerView;
  /** The cached chunks, by version. */
  readonly ledger: ReadonlyMap<string, CachedObject>;
  /** Whether it is this PoP's turn. Otherwise the policy only learns, and the plan stays. Default: true. */
  readonly mayChange?: boolean;
  /**
   * Whether the period continues: the policy sees the requests since the last plan. Popularity, the estimates in force
   * and the requests at peers change at the end of the period only. Default: false.
   */
  readonly isExchange?: boolean;
}

/** The chunks that one object should have in the cache: at least one. */
export interface PlannedContents {
  readonly object: ObjectShape;
  /** Ascending. */
  readonly chunks: readonly number[];
  /** Milliseconds, and money as milliseconds, that they save per period beyond the current cache; >= 0. */
  readonly worth: number;
}

/** The wanted contents of the cache. */
export interface CachePlan {
  readonly planned: readonly PlannedContents[];
  /** State for another planner, to be taken before the next plan: computed when it is read. */
  readonly state: PlannerState;
  /** Objects that competed for the cache. */
  readonly candidates: number;
  /**
   * The error of the policy: the plan is then the previous one, and the policy starts from nothing in the next period.
   */
  readonly error?: unknown;
}

/** The state from which a new planner continues. */
export interface PlannerState {
  readonly policy: string;
  readonly periods: number;
  /** Time of the last one, in seconds since 1970. */
  readonly seconds: number;
  readonly regions: readonly RegionEstimate[];
  readonly slots: readonly { readonly slot: number; readonly content: CacheSlot; readonly d: number }[];
  /** Snapshot of the policy; undefined to start the policy from nothing. */
  readonly snapshot: Uint8Array | undefined;
}
