/**
 * The cache manager: one period, run by the Cron Trigger (Agar, ICDCS'17, section IV).
 *
 * Probe the regions, close the period of the request monitor, plan, evict, fill, publish. Every step that fails leaves the
 * cache as it was before it; what a period does not finish, for its budget or because it was killed, the next one does.
 */
import {
  toAgaroseError,
  type AgaroseError,
  type Clock,
  type Codec,
  type FetchPort,
  type Manifest,
  type Sha256,
} from "@agarose/core";
import type { Budget } from "../platform/operation-budget.ts";
import { CacheWriter, type FillPeers, type WriteCounts } from "./cache-writer.ts";
import type { CacheContext, ChunkCache } from "../read/chunk-cache.ts";
import type { Configuration, RegionEstimate } from "../state/configuration.ts";
import type { Settings } from "../http/settings.ts";
import type { PeerView } from "../peers/peer-view.ts";
import { planPeriod, type PeriodPlan } from "./period-plan.ts";
import type { LedgerEntry, PeriodReport, PopSnapshot } from "../state/pop-state.ts";
import { publishConfiguration } from "./publish.ts";
import type { RegionProbe, RegionState } from "../region-manager/region-estimates.ts";
import { probeRegions, SIZED_EVERY, sizedTargets } from "../region-manager/region-probes.ts";
import type { KeyRequests } from "../request-monitor/request-monitor.ts";
import { Purse, type Spending } from "./write-budget.ts";

/** The PoP's state as the manager uses it: `PopState` through its stub. */
export interface StatePort {
  beginPeriod(nowMs: number, leaseMs: number): Promise<PopSnapshot | undefined>;
  mergeRegions(probes: readonly RegionProbe[]): Promise<RegionState[]>;
  record(entries: readonly LedgerEntry[]): Promise<void>;
  remove(versions: readonly string[]): Promise<void>;
  nextEpoch(): Promise<number>;
  /** What the planner left in the last period. */
  loadPlan(): Promise<Uint8Array | undefined>;
  savePlan(plan: Uint8Array): Promise<void>;
  /** Adds to what has been spent; less than nothing gives back. */
  spend(spending: Spending): Promise<void>;
  endPeriod(report: PeriodReport): Promise<void>;
}

export interface CacheManagerOptions {
  readonly settings: Settings;
  readonly state: StatePort;
  /** Ends the period in every shard of the request monitor; the most popular keys of each. */
  readonly closePeriod: (limit: number) => Promise<KeyRequests[]>;
  readonly findManifest: (key: string) => Promise<Manifest>;
  /** Whether another manifest is within what the platform allows. */
  readonly mayLookUp: () => boolean;
  readonly cache: ChunkCache;
  readonly context: CacheContext;
  /** Counts against `budget`. */
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
  /** Told what was published. */
  readonly onPublished: (configuration: Configuration) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly budget: Budget;
  /** Default: none. */
  readonly peers?: PeerView;
  /** False while it is another PoP's turn. Default: true. */
  readonly mayChange?: boolean;
  /** Default: fills come from the buckets alone. */
  readonly fillPeers?: FillPeers | undefined;
}

/** New work starts until then; the rest of the minute is for ending what has started. */
const WORK_MS = 45_000;
export const LEASE_MS = 120_000;
const ERRORS_MAX = 20;
/** Every period publishes, whatever there is money for. */
const PUBLISHING_WRITES = 1;

/** Runs one period; undefined when another invocation is in the middle of one. Rejects when the PoP's state cannot be had. */
export async function runPeriod(options: CacheManagerOptions): Promise<PeriodReport | undefined> {
  const snapshot = await options.state.beginPeriod(options.now(), LEASE_MS);
  return snapshot && new Period(options, snapshot).run();
}

class Period {
  readonly #options: CacheManagerOptions;
  readonly #startMs: number;
  readonly #ledger: Map<string, LedgerEntry>;
  readonly #errors: string[] = [];
  #regions: readonly RegionEstimate[];
  #epoch: number;
  #candidateCount = 0;
  #counts: WriteCounts = { written: 0, evicted: 0, reconstructed: 0, left: 0 };
  #waiting = 0;
  readonly #purse: Purse;

  constructor(options: CacheManagerOptions, snapshot: PopSnapshot) {
    this.#options = options;
    this.#startMs = options.clock.now();
    this.#ledger = new Map(snapshot.ledger.map((entry) => [entry.version, entry]));
    this.#regions = snapshot.regions;
    this.#epoch = snapshot.epoch;
    this.#purse = new Purse(options.settings.spending, snapshot.spending, options.now());
    this.#purse.reserve(PUBLISHING_WRITES);
  }

  async run(): Promise<PeriodReport> {
    const { settings, state, fetch, clock, findManifest } = this.#options;
    await this.#attempt(async () => {
      const keys = this.#epoch % SIZED_EVERY === 0 ? [...this.#ledger.values()].map(({ key }) => key) : [];
      const sized = await sizedTargets(keys, findManifest);
      this.#regions = await state.mergeRegions(await probeRegions({ regions: settings.regions, sized, fetch, clock }));
    });
    await this.#attempt(async () => this.#change(await this.#plan()));
    await this.#attempt(() => this.#publish());
    const report = this.#report();
    await state.endPeriod(report);
    return report;
  }

  #plan(): Promise<PeriodPlan> {
    const { now } = this.#options;
    return planPeriod({
      ...this.#options,
      ledger: this.#ledger,
      regions: this.#regions,
      purse: this.#purse,
      nowMs: now(),
      onError: (error) => this.#note(error),
    });
  }

  async #change({ change, candidates, manifestOf }: PeriodPlan): Promise<void> {
    const { state } = this.#options;
    this.#candidateCount = candidates;
    this.#waiting = change.waiting;
    const writer = new CacheWriter({
      ...this.#options,
      ledger: this.#ledger,
      regions: this.#options.settings.regions,
      estimates: this.#regions,
      manifestOf,
      purse: this.#purse,
      untilMs: this.#startMs + WORK_MS,
      onError: (error) => this.#note(error),
    });
    this.#counts = writer.counts;
    // Taken from the books before it is spent: of a period that is killed, too much is in them rather than too little.
    const reserved = writer.atMost(change);
    await state.spend(reserved);
    try {
      await writer.apply(change);
    } finally {
      const { writes, reads } = this.#purse.spent;
      await state.spend(this.#purse.priceOf(writes - reserved.writes, reads - reserved.reads));
    }
  }

  async #publish(): Promise<void> {
    const { settings, state, context, clock, now, onPublished } = this.#options;
    await state.spend(this.#purse.priceOf(PUBLISHING_WRITES, 0));
    this.#purse.spend({ writes: PUBLISHING_WRITES });
    await publishConfiguration({
      settings,
      state,
      kv: context.kv,
      clock,
      now,
      // This isolate reads by it even if KV refuses it, and says so in the report.
      onPublished: (configuration) => {
        this.#epoch = configuration.epoch;
        onPublished(configuration);
      },
      ledger: this.#ledger.values(),
      estimates: this.#regions,
    });
  }

  #report(): PeriodReport {
    return {
      at: this.#options.now(),
      ms: this.#options.clock.now() - this.#startMs,
      epoch: this.#epoch,
      candidates: this.#candidateCount,
      ...this.#counts,
      waiting: this.#waiting,
      usd: this.#purse.spent.usd,
      operations: this.#options.budget.used,
      errors: this.#errors,
    };
  }

  async #attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.#note(error);
    }
  }

  #note(cause: unknown): void {
    const error: AgaroseError = toAgaroseError(cause);
    if (this.#errors.length < ERRORS_MAX) this.#errors.push(`${error.code}: ${error.message}`);
  }
}
