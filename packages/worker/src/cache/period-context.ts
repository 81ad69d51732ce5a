/** Everything outside the cache manager that one period, or one purge, works with. */
import { toAgaroseError, type Clock, type Codec, type FetchPort, type Sha256 } from "@agarose/core";
import type { Manifest } from "@agarose/core/format";
import type { ChunkSource } from "@agarose/core/sources";
import type { RegionEstimate } from "@agarose/solver/planner";
import type { OwnTurn } from "../peers/cooperation.ts";
import type { PopSettings } from "../peers/peer-settings.ts";
import type { Budget } from "../runtime/budget.ts";
import type { CacheContext, ChunkCache } from "../read/chunk-cache.ts";
import type { FetchedStripes } from "../read/fetched-stripes.ts";
import type { RegionSettings } from "../regions/region-settings.ts";
import type { KeyRequests } from "../popularity/request-monitor.ts";
import type { Configuration } from "./configuration.ts";
import type { PopSnapshot, PopState } from "./pop-state.ts";
import type { CacheLatency } from "./cache-latency.ts";
import type { CacheSettings } from "./cache-settings.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { PlannerKeeper } from "./planner-keeper.ts";
import { EgressBudget, WriteBudget } from "./write-budget.ts";

/** `PopState` as a period calls it. */
export type StatePort = Rpc<
  Pick<
    PopState,
    | "beginPeriod"
    | "mergeProbes"
    | "record"
    | "remove"
    | "nextEpoch"
    | "loadPlan"
    | "savePlan"
    | "spend"
    | "endPeriod"
    | "endLease"
  >
>;

/** The methods of a Durable Object as others call them by RPC, or as the object itself does. */
type Rpc<T> = {
  [Name in keyof T]: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Awaited<Result> | Promise<Awaited<Result>>
    : never;
};

interface PeriodSettings extends CacheSettings, RegionSettings, PopSettings {
  /** Requests beyond k that readers make. */
  readonly delta: number;
}

/** Peers as sources of what a period writes. */
interface FillPeers {
  /** Resolves to the peers that hold chunks of an object, except those that are known to fail. */
  sourcesOf(manifest: Manifest): Promise<readonly ChunkSource[]>;
  /** Notes whether a peer has delivered what it should. */
  note(name: string, isGood: boolean): void;
}

/** How far the regions and the PoP's own cache are. */
export interface Observed {
  readonly regions: readonly RegionEstimate[];
  readonly cacheLatency: CacheLatency;
}

interface PeriodRequests {
  /** Ends the period in every shard of the request monitor; resolves to the most popular keys of each. */
  readonly closePeriod: (limit: number) => Promise<KeyRequests[]>;
  /** Removes keys without an object from the request monitor. */
  readonly forgetKeys: (keys: readonly string[]) => Promise<void>;
  readonly findManifest: (key: string) => Promise<Manifest>;
  /** Returns whether the platform allows another manifest. */
  readonly mayLookUp: () => boolean;
}

interface PeriodCache {
  readonly chunks: ChunkCache;
  /** KV, as this invocation may use it. */
  readonly kv: CacheContext;
  readonly fetched: FetchedStripes;
  /** Undefined: fills come from the buckets only. */
  readonly peers?: FillPeers | undefined;
  /** Called with the configuration that was published. */
  readonly onPublished: (configuration: Configuration) => void;
}

/** Network, time and arithmetic of a period. */
interface PeriodSystem {
  /** Counts against `budget`. */
  readonly fetch: FetchPort;
  readonly budget: Budget;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
}

/** The context of one period. */
export interface PeriodContext {
  readonly settings: PeriodSettings;
  readonly state: StatePort;
  readonly planners: PlannerKeeper;
  readonly requests: PeriodRequests;
  readonly cache: PeriodCache;
  readonly system: PeriodSystem;
  /** The permissions of the peers, and the view to plan by. */
  readonly turn: OwnTurn;
}

/** The shared state of a period's steps: the ledger, and the rest of the budgets. */
export interface PeriodBooks {
  /** By version; the writer keeps it up to date. */
  readonly ledger: Map<string, LedgerEntry>;
  readonly writeBudget: WriteBudget;
  readonly egressBudget: EgressBudget;
  readonly onError: (error: unknown) => void;
}

const ERRORS_MAX = 20;

/** The books of a period or an exchange at its start, and the errors that it has had so far, as `CODE: message`. */
export function openBooks(
  { settings, system }: Pick<PeriodContext, "settings" | "system">,
  { ledger, spending, fillEgress }: Pick<PopSnapshot, "ledger" | "spending" | "fillEgress">,
): { readonly books: PeriodBooks; readonly errors: readonly string[] } {
  const errors: string[] = [];
  const books: PeriodBooks = {
    ledger: new Map(ledger.map((entry) => [entry.version, entry])),
    writeBudget: new WriteBudget(settings.spending, spending, system.now()),
    egressBudget: new EgressBudget(settings.fillEgressBytesPerDay, fillEgress, system.now()),
    onError(cause) {
      const { code, message } = toAgaroseError(cause);
      if (errors.length < ERRORS_MAX) errors.push(`${code}: ${message}`);
    },
  };
  return { books, errors };
}
