/**
 * What a PoP must not forget between periods, in one Durable Object: region estimates, the ledger of the chunk cache, the
 * epoch, and whether a period is running. KV only broadcasts what is decided here, so a stale or failing KV misleads
 * nobody.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../http/settings.ts";
import { mergeRegion, type RegionProbe, type RegionState } from "../region-manager/region-estimates.ts";
import { addSpending, type Spending } from "../cache-manager/write-budget.ts";
import { SqlBlob } from "../platform/sql.ts";
import { TelemetryIntake, type ClientReport, type ReportedReads } from "../request-monitor/telemetry-intake.ts";

/** An object in the chunk cache, as far as the cache manager knows. */
export interface LedgerEntry {
  readonly version: string;
  readonly key: string;
  readonly stripes: number;
  /** Length of one chunk. */
  readonly chunkBytes: number;
  /** Chunks which every stripe has: what may be promised to readers. */
  readonly chunks: readonly number[];
  /** Chunks which every stripe is to have; empty while the object is being evicted. */
  readonly target: readonly number[];
  /** Stripes 0 to `done` - 1 have the target already. */
  readonly done: number;
}

/** How the last period went. */
export interface PeriodReport {
  readonly at: number;
  readonly ms: number;
  readonly epoch: number;
  /** Objects that competed for the cache. */
  readonly candidates: number;
  /** Stripes written and removed. */
  readonly written: number;
  readonly evicted: number;
  /** Chunks rebuilt from others because their region did not give them. */
  readonly reconstructed: number;
  /** Work left for the next period, in stripes. */
  readonly left: number;
  /** Work that waits for money, in stripes. */
  readonly waiting: number;
  /** What KV operations of this period cost. */
  readonly usd: number;
  readonly operations: number;
  /** What went wrong, as `CODE: message`; bounded. */
  readonly errors: readonly string[];
}

export interface PopSnapshot {
  readonly epoch: number;
  readonly ledger: readonly LedgerEntry[];
  readonly regions: readonly RegionState[];
  readonly lastPeriod: PeriodReport | undefined;
  /** On KV operations in the last month in which there were any. */
  readonly spending: Spending | undefined;
}

const TELEMETRY_KEY_BYTES = 32;

export class PopState extends DurableObject<Env> {
  readonly #sql: SqlStorage;
  readonly #plan: SqlBlob;
  /** In memory only: rows cost money, and what is lost with the object costs a little accuracy. */
  readonly #telemetry = new TelemetryIntake(Date.now);

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#sql = state.storage.sql;
    this.#plan = new SqlBlob(this.#sql, "plan");
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, json TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS regions (name TEXT PRIMARY KEY, json TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS ledger (version TEXT PRIMARY KEY, json TEXT NOT NULL);
    `);
  }

  /** Takes in what clients report and this PoP's reads have measured; returns what counts of the reported reads. */
  report(reports: readonly ClientReport[]): ReportedReads[] {
    return reports.flatMap((report) => this.#telemetry.take(report));
  }

  /** The secret of telemetry tokens where none is configured: made once, and the same for all isolates. */
  telemetryKey(): string {
    const known = this.#fact<string>("telemetryKey");
    if (known !== undefined) return known;
    const bytes = crypto.getRandomValues(new Uint8Array(TELEMETRY_KEY_BYTES));
    const key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.#setFact("telemetryKey", key);
    return key;
  }

  /** Starts a period, unless one is running whose lease has not run out. */
  beginPeriod(nowMs: number, leaseMs: number): PopSnapshot | undefined {
    const leaseUntil = this.#fact<number>("leaseUntil") ?? 0;
    if (leaseUntil > nowMs && leaseUntil - nowMs <= leaseMs) return undefined;
    this.#setFact("leaseUntil", nowMs + leaseMs);
    return this.snapshot();
  }

  /** Folds probes and the samples taken in into the estimates; forgets regions that are not probed any more. */
  mergeRegions(probes: readonly RegionProbe[]): RegionState[] {
    const before = new Map(this.#rows<RegionState>("regions").map((state) => [state.name, state]));
    const samples = this.#telemetry.drain();
    const merged = probes.map((probe) => mergeRegion(before.get(probe.region), probe, samples.get(probe.region) ?? []));
    this.#sql.exec("DELETE FROM regions");
    for (const state of merged) {
      this.#sql.exec("INSERT INTO regions (name, json) VALUES (?, ?)", state.name, JSON.stringify(state));
    }
    return merged;
  }

  /** Records ledger entries: before the writes they announce, and after those they confirm. */
  record(entries: readonly LedgerEntry[]): void {
    for (const entry of entries) {
      this.#sql.exec(
        "INSERT OR REPLACE INTO ledger (version, json) VALUES (?, ?)",
        entry.version,
        JSON.stringify(entry),
      );
    }
  }

  /** Has the next period check every stripe of these versions. */
  suspect(versions: readonly string[]): void {
    const entries = this.#rows<LedgerEntry>("ledger").filter(({ version }) => versions.includes(version));
    this.record(entries.map((entry) => ({ ...entry, done: 0 })));
  }

  /** Forgets what has been evicted. */
  remove(versions: readonly string[]): void {
    for (const version of versions) this.#sql.exec("DELETE FROM ledger WHERE version = ?", version);
  }

  /** The number of the next configuration. */
  nextEpoch(): number {
    const epoch = (this.#fact<number>("epoch") ?? 0) + 1;
    this.#setFact("epoch", epoch);
    return epoch;
  }

  /** What the planner left in the last period. */
  loadPlan(): Uint8Array | undefined {
    return this.#plan.load();
  }

  savePlan(plan: Uint8Array): void {
    this.#plan.save(plan);
  }

  /** Adds to what has been spent; less than nothing gives back. */
  spend(spending: Spending): void {
    this.#setFact("spending", addSpending(this.#fact<Spending>("spending"), spending));
  }

  endPeriod(report: PeriodReport): void {
    this.#setFact("lastPeriod", report);
    this.#setFact("leaseUntil", 0);
  }

  /** Ends what `beginPeriod` began, where it was no period. */
  endLease(): void {
    this.#setFact("leaseUntil", 0);
  }

  snapshot(): PopSnapshot {
    return {
      epoch: this.#fact<number>("epoch") ?? 0,
      ledger: this.#rows<LedgerEntry>("ledger"),
      regions: this.#rows<RegionState>("regions"),
      lastPeriod: this.#fact<PeriodReport>("lastPeriod"),
      spending: this.#fact<Spending>("spending"),
    };
  }

  #rows<T>(table: "regions" | "ledger"): T[] {
    const rows = this.#sql.exec<{ json: string }>(`SELECT json FROM ${table}`).toArray();
    return rows.map(({ json }) => JSON.parse(json) as T);
  }

  #fact<T>(name: string): T | undefined {
    const row = this.#sql.exec<{ json: string }>("SELECT json FROM facts WHERE name = ?", name).toArray()[0];
    return row && (JSON.parse(row.json) as T);
  }

  #setFact(name: string, value: unknown): void {
    this.#sql.exec("INSERT OR REPLACE INTO facts (name, json) VALUES (?, ?)", name, JSON.stringify(value));
  }
}
