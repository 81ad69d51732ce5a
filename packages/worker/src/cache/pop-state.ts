/**
 * * The lasting state of a PoP between periods, in one Durable Object: region estimates, the ledger of the chunk cache,
 * the epoch, and whether a period is running. KV only distributes these decisions, so a stale or failing KV misleads no
 * read.
 */
import { DurableObject } from "cloudflare:workers";
import { mergeRegion, type RegionProbe, type RegionSample, type RegionState } from "../regions/region-estimates.ts";
import type { Continent } from "../runtime/continents.ts";
import { findColo } from "../runtime/durable-objects.ts";
import { Facts, SqlBlob } from "../runtime/sql.ts";
import { addTimes, mergeCacheTimes, NO_TIMES, type CacheLatency, type CacheTimes } from "./cache-latency.ts";
import type { ExchangeReport, LedgerEntry, PeriodReport } from "./ledger.ts";
import { addEgress, addSpending, type FillEgress, type Spending } from "./spending.ts";

/** Everything that a period and `/v1/status` need at once. */
export interface PopSnapshot {
  readonly epoch: number;
  readonly ledger: readonly LedgerEntry[];
  readonly regions: readonly RegionState[];
  /** How long the chunk cache takes. */
  readonly cacheLatency: CacheLatency;
  readonly lastPeriod: PeriodReport | undefined;
  /** The spending of the last month with any. */
  readonly spending: Spending | undefined;
  /** Bytes that fills have fetched on the last day with any. */
  readonly fillEgress: FillEgress | undefined;
  /** Keys that regions lacked the newest version of, the latest first. */
  readonly behind: readonly KeyBehind[];
  /** The last exchange of the instance that answers. */
  readonly lastExchange?: ExchangeReport | undefined;
}

/** A key, and the regions that lacked what a majority has of it. */
interface KeyBehind {
  readonly key: string;
  readonly regions: readonly string[];
}

/** So many are remembered: a walk over all objects finds the others. */
const BEHIND_MAX = 100;

/** Measurements of reads that are kept in a period, by region. */
const SAMPLES_MAX = 256;

/** The state of one PoP. Its public methods are called by RPC. */
export abstract class PopState extends DurableObject {
  readonly #sql: SqlStorage;
  readonly #facts: Facts;
  readonly #plan: SqlBlob;
  /** By version, as the table has it; undefined before it was first needed. */
  #ledger: Map<string, LedgerEntry> | undefined;
  /** In memory only: rows cost money, and losing these costs a little accuracy. */
  readonly #samples = new Map<string, RegionSample[]>();
  #cacheTimes: CacheTimes = NO_TIMES;
  /** In memory only, as those are. */
  protected lastExchange: ExchangeReport | undefined;
  /** In memory only, for the same reason. */
  readonly #behind = new Map<string, readonly string[]>();

  constructor(state: DurableObjectState, env: object) {
    super(state, env);
    this.#sql = state.storage.sql;
    this.#facts = new Facts(this.#sql);
    this.#plan = new SqlBlob(this.#sql, "plan");
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS regions (name TEXT PRIMARY KEY, json TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS ledger (version TEXT PRIMARY KEY, json TEXT NOT NULL);
    `);
  }

  /** Runs one period: of `continent`, for one Worker everywhere. Rejects while what it needs is unavailable. */
  abstract runPeriod(continent?: Continent): Promise<void>;

  /** Takes how long regions and the chunk cache took for reads of this PoP. */
  observe(samples: readonly RegionSample[], cacheTimes: CacheTimes): void {
    this.#cacheTimes = addTimes(this.#cacheTimes, cacheTimes);
    for (const sample of samples) {
      const ofRegion = this.#samples.get(sample.region) ?? [];
      this.#samples.set(sample.region, ofRegion);
      if (ofRegion.length < SAMPLES_MAX) ofRegion.push(sample);
    }
  }

  /**
   * Notes that there are requests, and the host by which they come: a period has no request that says it. One Worker
   * everywhere runs no periods where there are none.
   */
  recordUse(nowMs: number, host: string): void | Promise<void> {
    this.#facts.set("usedMs", nowMs);
    this.#facts.set("host", host);
  }

  /** Returns the host of `recordUse`; undefined before a request has come. */
  host(): string | undefined {
    return this.#facts.get<string>("host");
  }

  /** Whether `recordUse` was called within `withinMs`. */
  isUsed(nowMs: number, withinMs: number): boolean {
    const usedMs = this.#facts.get("usedMs");
    return usedMs !== undefined && nowMs - usedMs < withinMs;
  }

  /** Starts a period. Returns undefined while another one holds a lease that has not expired. */
  beginPeriod(nowMs: number, leaseMs: number): PopSnapshot | undefined {
    const leaseUntil = this.#facts.get("leaseUntil") ?? 0;
    if (leaseUntil > nowMs && leaseUntil - nowMs <= leaseMs) return undefined;
    this.#facts.set("leaseUntil", nowMs + leaseMs);
    return this.snapshot();
  }

  /** Updates all estimates from probes and from what reads have measured. Forgets regions that are no longer probed. */
  mergeProbes(probes: readonly RegionProbe[], ofCache: CacheTimes): Pick<PopSnapshot, "regions" | "cacheLatency"> {
    return { regions: this.#mergeRegions(probes), cacheLatency: this.#mergeCacheTimes(ofCache) };
  }

  #mergeCacheTimes(probes: CacheTimes): CacheLatency {
    const before = this.#cacheLatency();
    const times = addTimes(this.#cacheTimes, probes);
    this.#cacheTimes = NO_TIMES;
    // A row costs money: nothing new, no row.
    if (times.first.reads + times.again.reads === 0) return before;
    return this.#facts.set("cacheLatency", mergeCacheTimes(before, times));
  }

  #mergeRegions(probes: readonly RegionProbe[]): RegionState[] {
    const before = new Map(this.regions().map((state) => [state.name, state]));
    const merged = probes.map((probe) =>
      mergeRegion(before.get(probe.region), probe, this.#samples.get(probe.region) ?? []),
    );
    this.#samples.clear();
    this.#sql.exec("DELETE FROM regions");
    for (const state of merged) {
      this.#sql.exec("INSERT INTO regions (name, json) VALUES (?, ?)", state.name, JSON.stringify(state));
    }
    return merged;
  }

  /** Records ledger entries: before the writes that they announce, and after those that they confirm. */
  record(entries: readonly LedgerEntry[]): void {
    for (const entry of entries) {
      this.#sql.exec(
        "INSERT OR REPLACE INTO ledger (version, json) VALUES (?, ?)",
        entry.version,
        JSON.stringify(entry),
      );
      this.#entries.set(entry.version, entry);
    }
  }

  /** Makes the next period check every stripe of these versions. */
  suspect(versions: readonly string[]): void {
    const entries = versions.flatMap((version) => this.#entries.get(version) ?? []);
    this.record(entries.map((entry) => ({ ...entry, done: 0 })));
  }

  /** Notes keys for whoever repairs, who finds them in `/v1/status`. */
  behind(found: readonly KeyBehind[]): void {
    for (const { key, regions } of found) {
      this.#behind.delete(key);
      this.#behind.set(key, regions);
    }
    for (const key of this.#behind.keys()) {
      if (this.#behind.size <= BEHIND_MAX) return;
      this.#behind.delete(key);
    }
  }

  remove(versions: readonly string[]): void {
    for (const version of versions) {
      this.#sql.exec("DELETE FROM ledger WHERE version = ?", version);
      this.#entries.delete(version);
    }
  }

  regions(): RegionState[] {
    return this.#rows<RegionState>("regions");
  }

  /** Returns the number of the next configuration. */
  nextEpoch(): number {
    const epoch = (this.#facts.get("epoch") ?? 0) + 1;
    this.#facts.set("epoch", epoch);
    return epoch;
  }

  /** Returns what the planner saved in the last period. */
  loadPlan(): Uint8Array | undefined {
    return this.#plan.load();
  }

  /** Saves the planner's state for the next period. */
  savePlan(plan: Iterable<Uint8Array>): void {
    this.#plan.save(plan);
  }

  /** Adds to the spending and to what fills fetch; a negative amount gives back. */
  spend(spending: Spending, egress?: FillEgress): void {
    this.#facts.set("spending", addSpending(this.#facts.get<Spending>("spending"), spending));
    if (!egress || egress.bytes === 0) return;
    this.#facts.set("fillEgress", addEgress(this.#facts.get<FillEgress>("fillEgress"), egress));
  }

  /** Ends the period and keeps its report. */
  endPeriod(report: PeriodReport): void {
    this.#facts.set("lastPeriod", report);
    this.#facts.set("leaseUntil", 0);
  }

  /** Ends the lease of `beginPeriod` without a report: a purge holds one too. */
  endLease(): void {
    this.#facts.set("leaseUntil", 0);
  }

  snapshot(): PopSnapshot {
    return {
      epoch: this.#facts.get("epoch") ?? 0,
      ledger: [...this.#entries.values()],
      regions: this.regions(),
      cacheLatency: this.#cacheLatency(),
      lastPeriod: this.#facts.get<PeriodReport>("lastPeriod"),
      spending: this.#facts.get<Spending>("spending"),
      fillEgress: this.#facts.get<FillEgress>("fillEgress"),
      behind: [...this.#behind].map(([key, regions]) => ({ key, regions })).toReversed(),
      lastExchange: this.lastExchange,
    };
  }

  /** Resolves to the data center that runs this object, or to null where that cannot be found out. */
  colo(): Promise<string | null> {
    return findColo();
  }

  get #entries(): Map<string, LedgerEntry> {
    this.#ledger ??= new Map(this.#rows<LedgerEntry>("ledger").map((entry) => [entry.version, entry]));
    return this.#ledger;
  }

  #cacheLatency(): CacheLatency {
    return this.#facts.get<CacheLatency>("cacheLatency") ?? {};
  }

  #rows<T>(table: "regions" | "ledger"): T[] {
    const rows = this.#sql.exec<{ json: string }>(`SELECT json FROM ${table}`).toArray();
    return rows.map(({ json }) => JSON.parse(json) as T);
  }
}
