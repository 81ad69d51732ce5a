/**
 * The cache manager: one period, run by the Cron Trigger (Agar, ICDCS'17, section IV).
 *
 * Probe the regions, close the period of the request monitor, plan, evict, fill, publish. Every step that fails leaves the
 * cache as it was before it; what a period does not finish, for its budget or because it was killed, the next one does.
 */
import {
  AgaroseError,
  toAgaroseError,
  type Clock,
  type Codec,
  type FetchPort,
  type Manifest,
  type Sha256,
} from "@agarose/core";
import type { Budget } from "./budget.ts";
import { diffCache, type CacheChange } from "./cache-change.ts";
import { planCache, type PlanCandidate, type PlannedObject } from "./cache-plan.ts";
import { CacheWriter, type WriteCounts } from "./cache-writer.ts";
import type { CacheContext, ChunkCache } from "./chunk-cache.ts";
import type { Configuration, RegionEstimate } from "./configuration.ts";
import { CONNECTIONS_MAX } from "./connections.ts";
import { EDGE_LATENCY } from "./edge-source.ts";
import type { Settings } from "./env.ts";
import { inParallel } from "./parallel.ts";
import type { LedgerEntry, PeriodReport, PopSnapshot } from "./pop-state.ts";
import { publishConfiguration } from "./publish.ts";
import type { RegionProbe, RegionState } from "./region-estimates.ts";
import { probeRegions, SIZED_EVERY, sizedTargets } from "./region-manager.ts";
import type { KeyPopularity } from "./request-monitor.ts";

/** The PoP's state as the manager uses it: `PopState` through its stub. */
export interface StatePort {
  beginPeriod(nowMs: number, leaseMs: number): Promise<PopSnapshot | undefined>;
  mergeRegions(probes: readonly RegionProbe[]): Promise<RegionState[]>;
  record(entries: readonly LedgerEntry[]): Promise<void>;
  remove(versions: readonly string[]): Promise<void>;
  nextEpoch(): Promise<number>;
  endPeriod(report: PeriodReport): Promise<void>;
}

export interface CacheManagerOptions {
  readonly settings: Settings;
  readonly state: StatePort;
  /** Ends the period in every shard of the request monitor; the most popular keys of each. */
  readonly closePeriod: (limit: number) => Promise<KeyPopularity[]>;
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
}

/** Objects that compete for the cache: each costs a manifest now and then. */
const CANDIDATES_MAX = 300;
/** New work starts until then; the rest of the minute is for ending what has started. */
const WORK_MS = 45_000;
export const LEASE_MS = 120_000;
const ERRORS_MAX = 20;

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

  constructor(options: CacheManagerOptions, snapshot: PopSnapshot) {
    this.#options = options;
    this.#startMs = options.clock.now();
    this.#ledger = new Map(snapshot.ledger.map((entry) => [entry.version, entry]));
    this.#regions = snapshot.regions;
    this.#epoch = snapshot.epoch;
  }

  async run(): Promise<PeriodReport> {
    const { settings, state, fetch, clock, findManifest } = this.#options;
    await this.#attempt(async () => {
      const keys = this.#epoch % SIZED_EVERY === 0 ? [...this.#ledger.values()].map(({ key }) => key) : [];
      const sized = await sizedTargets(keys, findManifest);
      this.#regions = await state.mergeRegions(await probeRegions({ regions: settings.regions, sized, fetch, clock }));
    });
    await this.#attempt(async () => {
      const writer = new CacheWriter({
        ...this.#options,
        ledger: this.#ledger,
        regions: this.#options.settings.regions,
        estimates: this.#regions,
        untilMs: this.#startMs + WORK_MS,
        onError: (error) => this.#note(error),
      });
      this.#counts = writer.counts;
      await writer.apply(await this.#plan());
    });
    await this.#attempt(() => this.#publish());
    const report = this.#report();
    await state.endPeriod(report);
    return report;
  }

  async #plan(): Promise<CacheChange> {
    const { settings, closePeriod } = this.#options;
    const popular = await closePeriod(CANDIDATES_MAX);
    if (settings.policy === "off") return diffCache([...this.#ledger.values()], [], new Set());
    const { candidates, unknown } = await this.#candidates(popular.slice(0, CANDIDATES_MAX));
    const keep = [...this.#ledger.values()].filter(({ key }) => unknown.has(key));
    const keptBytes = keep.reduce((sum, entry) => sum + entry.target.length * entry.chunkBytes, 0);
    const planned: PlannedObject[] = planCache({
      candidates,
      capacityBytes: Math.max(0, settings.cacheBytes - keptBytes),
      regions: this.#regions,
      cacheMs: EDGE_LATENCY.meanMs,
      delta: settings.delta,
    });
    return diffCache([...this.#ledger.values()], planned, new Set(keep.map(({ version }) => version)));
  }

  /** Manifests of the popular keys, and the keys whose manifests could not be had although they may exist. */
  async #candidates(popular: readonly KeyPopularity[]): Promise<{ candidates: PlanCandidate[]; unknown: Set<string> }> {
    const byVersion = new Map<string, PlanCandidate>();
    const unknown = new Set<string>();
    await inParallel(CONNECTIONS_MAX, popular, async ({ key, popularity }) => {
      if (!this.#options.mayLookUp()) {
        unknown.add(key);
        return;
      }
      try {
        const manifest = await this.#options.findManifest(key);
        const { version } = manifest;
        const cached = this.#ledger.get(version)?.target ?? [];
        // Keys of equal content share a version, and so their cached chunks.
        const others = byVersion.get(version)?.popularity ?? 0;
        byVersion.set(version, { manifest, popularity: popularity + others, cached });
      } catch (error) {
        const { code } = toAgaroseError(error);
        if (code !== "OBJECT_NOT_FOUND" && code !== "KEY_INVALID" && code !== "KEY_TOO_LONG") {
          unknown.add(key);
          this.#note(error);
        }
      }
    });
    this.#candidateCount = byVersion.size;
    return { candidates: [...byVersion.values()], unknown };
  }

  async #publish(): Promise<void> {
    const { settings, state, context, clock, now, onPublished } = this.#options;
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
