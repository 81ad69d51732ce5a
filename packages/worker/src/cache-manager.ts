/**
 * The cache manager: one period, run by the Cron Trigger (Agar, ICDCS'17, section IV).
 *
 * Probe the regions, close the period of the request monitor, plan, evict, fill, publish. Every step that fails leaves the
 * cache as it was before it; what a period does not finish, for its budget or because it was killed, the next one does.
 */
import {
  AgaroseError,
  LATENCY_UNKNOWN,
  toAgaroseError,
  type Clock,
  type Codec,
  type FetchPort,
  type Manifest,
  type Sha256,
} from "@agarose/core";
import { Budget } from "./budget.ts";
import { advance, diffCache, promise, type CacheChange } from "./cache-change.ts";
import { planCache, type PlanCandidate, type PlannedObject } from "./cache-plan.ts";
import type { CacheContext, ChunkCache } from "./chunk-cache.ts";
import { CONFIGURATION_NAME, type Configuration, type RegionEstimate } from "./configuration.ts";
import { within } from "./deadline.ts";
import { EDGE_LATENCY } from "./edge-source.ts";
import type { Settings } from "./env.ts";
import type { LedgerEntry, PeriodReport, PopSnapshot } from "./pop-state.ts";
import type { RegionProbe, RegionState } from "./region-estimates.ts";
import { probeRegions } from "./region-manager.ts";
import type { KeyPopularity } from "./request-monitor.ts";
import { fillStripe } from "./stripe-fill.ts";

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
  readonly cache: ChunkCache;
  readonly context: CacheContext;
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
  /** Told what was published. */
  readonly onPublished: (configuration: Configuration) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly budget?: Budget;
}

/** Objects that compete for the cache: each costs a manifest now and then. */
const CANDIDATES_MAX = 300;
const KV_DEADLINE_MS = 10_000;
/** New work starts until then; the rest of the minute is for ending what has started. */
const WORK_MS = 45_000;
const LEASE_MS = 120_000;
/** Stripes filled at once: enough to keep all connections busy, little enough for 128 MB. */
const STRIPES_AT_ONCE = 6;
/** Stripes between two notes of how far a period is. */
const RECORD_EVERY = 50;
const ERRORS_MAX = 20;
/** Kept for recording and publishing what was done. */
const OPERATIONS_RESERVED = 20;

/** Runs one period; undefined when another invocation is in the middle of one. Rejects when the PoP's state cannot be had. */
export async function runPeriod(options: CacheManagerOptions): Promise<PeriodReport | undefined> {
  const snapshot = await options.state.beginPeriod(options.now(), LEASE_MS);
  return snapshot && new Period(options, snapshot).run();
}

class Period {
  readonly #options: CacheManagerOptions;
  readonly #budget: Budget;
  readonly #startMs: number;
  readonly #ledger: Map<string, LedgerEntry>;
  readonly #errors: string[] = [];
  #regions: readonly RegionEstimate[];
  #epoch: number;
  #candidateCount = 0;
  #written = 0;
  #evicted = 0;
  #reconstructed = 0;
  #left = 0;
  #kvFailed = false;

  constructor(options: CacheManagerOptions, snapshot: PopSnapshot) {
    this.#options = options;
    this.#budget = options.budget ?? new Budget();
    this.#startMs = options.clock.now();
    this.#ledger = new Map(snapshot.ledger.map((entry) => [entry.version, entry]));
    this.#regions = snapshot.regions;
    this.#epoch = snapshot.epoch;
  }

  async run(): Promise<PeriodReport> {
    const { state } = this.#options;
    await this.#attempt(async () => {
      this.#regions = await state.mergeRegions(await probeRegions(this.#probeOptions()));
    });
    await this.#attempt(async () => {
      const change = await this.#plan();
      await state.record(change.announce);
      for (const entry of change.announce) this.#ledger.set(entry.version, entry);
      await this.#evict(change);
      await this.#fill(change);
    });
    await this.#attempt(() => this.#publish());
    const report = this.#report();
    await state.endPeriod(report);
    return report;
  }

  #probeOptions(): Parameters<typeof probeRegions>[0] {
    const { settings, clock } = this.#options;
    return { regions: settings.regions, fetch: this.#fetch, clock };
  }

  readonly #fetch: FetchPort = (url, init) => {
    this.#budget.spend();
    return this.#options.fetch(url, init);
  };

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
    await inParallel(STRIPES_AT_ONCE, popular, async ({ key, popularity }) => {
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

  async #evict({ evict }: CacheChange): Promise<void> {
    const { cache, context, state } = this.#options;
    for (const entry of evict) {
      let removed = 0;
      const stripes = Array.from({ length: entry.stripes }, (_, stripe) => stripe);
      await inParallel(STRIPES_AT_ONCE, stripes, async (stripe) => {
        if (!this.#mayStart(1)) return;
        this.#budget.spend();
        if (await this.#kv(() => cache.evict(entry.version, stripe, context))) removed++;
      });
      this.#evicted += removed;
      this.#left += entry.stripes - removed;
      if (removed < entry.stripes) continue;
      await state.remove([entry.version]);
      this.#budget.spend();
      this.#ledger.delete(entry.version);
    }
  }

  async #fill({ fill }: CacheChange): Promise<void> {
    const jobs = fill.flatMap(({ entry, plan }) =>
      Array.from({ length: entry.stripes - entry.done }, (_, i) => ({ entry, plan, stripe: entry.done + i })),
    );
    const done = new Map<string, Set<number>>(fill.map(({ entry }) => [entry.version, new Set()]));
    let unrecorded = 0;
    await inParallel(STRIPES_AT_ONCE, jobs, async ({ entry, plan: { manifest }, stripe }) => {
      // At worst every chunk comes to nothing at first and is rebuilt from k others.
      const isDone =
        this.#mayStart(entry.target.length + manifest.k + 2) && (await this.#fillStripe(entry, manifest, stripe));
      if (!isDone) {
        this.#left++;
        return;
      }
      done.get(entry.version)!.add(stripe);
      if (++unrecorded < RECORD_EVERY) return;
      unrecorded = 0;
      await this.#recordProgress(fill, done);
    });
    await this.#recordProgress(fill, done);
  }

  /** Tells the ledger how far each object is, so that a killed period is not begun again from its start. */
  async #recordProgress(fill: CacheChange["fill"], done: ReadonlyMap<string, ReadonlySet<number>>): Promise<void> {
    const advanced = fill.flatMap(({ entry }) => {
      const stripes = done.get(entry.version)!;
      let reached = entry.done;
      while (stripes.has(reached)) reached++;
      return reached > (this.#ledger.get(entry.version)?.done ?? 0) ? [advance(entry, reached)] : [];
    });
    if (advanced.length === 0) return;
    this.#budget.spend();
    for (const entry of advanced) this.#ledger.set(entry.version, entry);
    await this.#options.state.record(advanced);
  }

  async #fillStripe(entry: LedgerEntry, manifest: Manifest, stripe: number): Promise<boolean> {
    const { settings, cache, context, clock, sha256, codec } = this.#options;
    try {
      this.#budget.spend();
      const stored = await within(cache.load(entry.version, stripe, context), KV_DEADLINE_MS, clock, "a KV read");
      const filled = await fillStripe({
        manifest,
        stripe,
        wanted: entry.target,
        stored,
        regions: settings.regions,
        estimates: new Map(this.#regions.map((region) => [region.name, region])),
        fetch: this.#fetch,
        clock,
        sha256,
        codec,
      });
      this.#reconstructed += filled.reconstructed;
      if (filled.unchanged) return true;
      this.#budget.spend();
      const isWritten = await this.#kv(() => cache.write(entry.version, stripe, filled.chunks, context));
      if (isWritten) this.#written++;
      return isWritten;
    } catch (error) {
      this.#note(error);
      return false;
    }
  }

  async #publish(): Promise<void> {
    const { state, context, clock, now, onPublished } = this.#options;
    this.#epoch = await state.nextEpoch();
    const configuration: Configuration = {
      epoch: this.#epoch,
      at: now(),
      cached: promise([...this.#ledger.values()]),
      regions: this.#options.settings.regions.map(({ name }) => {
        const { meanMs, sdMs, down } = this.#regions.find((region) => region.name === name) ?? {
          ...LATENCY_UNKNOWN,
          down: false,
        };
        return { name, meanMs, sdMs, down };
      }),
    };
    // This isolate reads by it even if KV refuses it, and says so in the report.
    onPublished(configuration);
    await within(
      context.kv.put(CONFIGURATION_NAME, JSON.stringify(configuration)),
      KV_DEADLINE_MS,
      clock,
      "a KV write",
    );
  }

  #report(): PeriodReport {
    return {
      at: this.#options.now(),
      ms: this.#options.clock.now() - this.#startMs,
      epoch: this.#epoch,
      candidates: this.#candidateCount,
      written: this.#written,
      evicted: this.#evicted,
      reconstructed: this.#reconstructed,
      left: this.#left,
      operations: this.#budget.used,
      errors: this.#errors,
    };
  }

  /** Whether there is time and budget to start something of `operations`. After a failure of KV nothing more is started. */
  #mayStart(operations: number): boolean {
    const isInTime = this.#options.clock.now() - this.#startMs < WORK_MS;
    return !this.#kvFailed && isInTime && this.#budget.allows(operations + OPERATIONS_RESERVED);
  }

  async #kv(change: () => Promise<void>): Promise<boolean> {
    try {
      await within(change(), KV_DEADLINE_MS, this.#options.clock, "a KV write");
      return true;
    } catch (error) {
      this.#kvFailed = true;
      this.#note(error);
      return false;
    }
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

/** Runs `task` for every item, `count` at a time, in order of starting. */
async function inParallel<T>(count: number, items: readonly T[], task: (item: T) => Promise<void>): Promise<void> {
  const iterator = items.values();
  const worker = async (): Promise<void> => {
    for (const item of iterator) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, worker));
}
