/**
 * Latencies and reads that clients report, and latencies of this PoP's own reads. The isolate gathers them for a moment
 * and hands them to `PopState`, which returns the reported reads that count. A lost batch only costs a little accuracy.
 */
import type { Clock } from "@agarose/core";
import { inParallel } from "../platform/async.ts";
import { BatchFlusher, type WaitUntil } from "../platform/batch-flusher.ts";
import { log } from "../platform/log.ts";
import type { RegionSample } from "../region-manager/region-estimates.ts";
import { OWN, type ClientReport, type ReportedReads } from "./telemetry-intake.ts";

const REPORTS_MAX = 200;
const OWN_SAMPLES_MAX = 128;
/** Reported keys of one batch that count; each may take an operation of the Cache API. */
const REPORTED_KEYS_MAX = 300;
const CHECKS_AT_ONCE = 6;

/** Where an isolate hands its reports to. */
export interface ReportSink {
  /** Takes the reports; resolves to the reads among them that count. */
  report(reports: readonly ClientReport[]): Promise<readonly ReportedReads[]>;
  /** Resolves to whether this PoP knows the key's object. */
  isKnown(key: string): Promise<boolean>;
  /** Counts reads. */
  count(key: string, waitUntil: WaitUntil, reads: number): void;
}

/** The reports that an isolate has gathered. */
export class TelemetryBuffer {
  readonly #sink: ReportSink;
  readonly #flusher: BatchFlusher;
  #reports: ClientReport[] = [];
  #own: RegionSample[] = [];
  #dropped = 0;

  constructor(clock: Clock, sink: ReportSink) {
    this.#sink = sink;
    this.#flusher = new BatchFlusher(clock, (waitUntil) => this.#handOn(waitUntil));
  }

  /** Reports that were dropped because too many came between two flushes. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Gathers a client's report. */
  report(report: ClientReport, waitUntil: WaitUntil): void {
    if (this.#reports.length < REPORTS_MAX) this.#reports.push(report);
    else this.#dropped++;
    this.#flusher.plan(waitUntil);
  }

  /** Notes how long a region took for a read of this PoP. */
  observe(sample: RegionSample, waitUntil: WaitUntil): void {
    if (this.#own.length < OWN_SAMPLES_MAX) this.#own.push(sample);
    this.#flusher.plan(waitUntil);
  }

  /** Hands everything on, and waits for other batches in flight. Resolves even when the Durable Object refuses. */
  async flush(waitUntil: WaitUntil): Promise<void> {
    await this.#flusher.flush(waitUntil);
  }

  async #handOn(waitUntil: WaitUntil): Promise<boolean> {
    const own = { client: OWN, samples: this.#own, reads: [] };
    const reports = [...this.#reports, ...(own.samples.length > 0 ? [own] : [])];
    this.#reports = [];
    this.#own = [];
    if (reports.length === 0) return true;
    try {
      const admitted = await this.#sink.report(reports);
      // A client could report keys that do not exist, and fill the periods with lookups of them.
      const reported = new Map<string, number>();
      for (const { key, reads } of admitted) reported.set(key, (reported.get(key) ?? 0) + reads);
      const keys = [...reported].toSorted(([, most], [, least]) => least - most).slice(0, REPORTED_KEYS_MAX);
      await inParallel(CHECKS_AT_ONCE, keys, async ([key, reads]) => {
        if (await this.#sink.isKnown(key)) this.#sink.count(key, waitUntil, reads);
      });
      return true;
    } catch (error) {
      log("warn", "telemetry lost", { reports: reports.length, error });
      return false;
    }
  }
}
