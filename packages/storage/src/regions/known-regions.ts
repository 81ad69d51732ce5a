/** A process's knowledge of the regions from its reads: how fast they answer, and which of them missed a write. */
import type { ManifestRecord } from "@agarose/core/format";
import {
  hedgeAfterMs,
  LATENCY_UNKNOWN,
  observeLatency,
  type LatencyEstimate,
  type MajorityRead,
} from "@agarose/core/sources";
import { readRegion } from "./region-survey.ts";
import { enqueueRepair } from "../commit/repair-queue.ts";
import type { RegionParts } from "../commit/write-context.ts";

/** So long, a region that was found behind is asked after the others. */
const BEHIND_MS = 60_000;
/** A put that is under way has reached all of its regions by then. */
const SETTLING_MS = 2_000;
/** Keys whose entry was made, so that the next read of them makes no other one. */
const ENTERED_MAX = 1_000;
const LAST_MS = 1e9;

/** Remembers regions for the reads of one process, and enters what some of them lack into the repair queue. */
export class KnownRegions {
  readonly #context: RegionParts;
  readonly #isLasting: boolean;
  readonly #latencies = new Map<string, LatencyEstimate>();
  readonly #behindUntilMs = new Map<string, number>();
  /** The newest generation that was entered, by key. */
  readonly #entered = new Map<string, number>();
  #pending: (() => Promise<void>)[] = [];

  /** @param isLasting whether the process continues: entries are made by and by. Otherwise its end calls `flush`. */
  constructor(context: RegionParts, isLasting: boolean) {
    this.#context = context;
    this.#isLasting = isLasting;
  }

  /** The expectation of a region. One that hangs or was found behind counts as the farthest. */
  latencyOf(region: string): LatencyEstimate {
    const { clock, breaker } = this.#context;
    const known = this.#latencies.get(region) ?? LATENCY_UNKNOWN;
    const isLast = breaker.isOpen(region) || (this.#behindUntilMs.get(region) ?? 0) > clock.now();
    return isLast ? { meanMs: LAST_MS + known.meanMs, sdMs: 0, lateMs: hedgeAfterMs(known) } : known;
  }

  /** Learns from a request that took `ms`. One that was given up says something only if it was late. */
  learn(region: string, ms: number, isAnswered: boolean): void {
    const known = this.#latencies.get(region);
    if (!isAnswered && ms <= hedgeAfterMs(known ?? LATENCY_UNKNOWN)) return;
    this.#latencies.set(region, observeLatency(known, ms));
  }

  /** Notes which regions answered with something older than a majority holds. */
  found(key: string, { record, behind }: MajorityRead): void {
    const { clock } = this.#context;
    for (const region of behind) this.#behindUntilMs.set(region, clock.now() + BEHIND_MS);
    if (!record || behind.length === 0 || (this.#entered.get(key) ?? -1) >= record.generation) return;
    if (this.#entered.size === ENTERED_MAX) this.#entered.delete(this.#entered.keys().next().value!);
    this.#entered.set(key, record.generation);
    this.#pending.push(() => this.#enter(record, behind));
    if (this.#isLasting && this.#pending.length === 1) clock.after(SETTLING_MS, () => void this.flush());
  }

  /** Enters what is still behind into the repair queue. Does not reject: an entry is a hint. */
  async flush(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    for (const enter of pending) if (!this.#context.signal.aborted) await enter().catch(() => {});
  }

  async #enter({ key, generation }: ManifestRecord, behind: readonly string[]): Promise<void> {
    const { stores, signal, trust } = this.#context;
    const suspects = stores.filter((store) => behind.includes(store.region.name));
    const found = await Promise.all(suspects.map((store) => readRegion(key, store, signal, trust)));
    const late = found.filter(({ record }) => (record?.generation ?? -1) < generation);
    const regions = late.map(({ store }) => store.region.name);
    await enqueueRepair({ key, generation, missing: [], regions }, this.#context);
  }
}
