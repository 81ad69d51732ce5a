/**
 * Latencies and reads that clients report, and latencies of this PoP's own reads. The isolate gathers them for a moment
 * and hands them to `PopState`, which returns the reported reads that count. A lost batch only costs a little accuracy.
 */
import { inParallel, type Clock } from "@agarose/core";
import { BatchFlusher, type WaitUntil } from "../runtime/batch-flusher.ts";
import { log } from "../runtime/log.ts";
import type { RegionSample } from "../regions/region-estimates.ts";
import { OWN, type AdmittedReads, type ClientReport } from "./telemetry-intake.ts";

const REPORTS_MAX = 200;
const OWN_SAMPLES_MAX = 128;
/** Reported keys of one batch that count; each may take an operation of the Cache API. */
const REPORTED_KEYS_MAX = 300;
const CHECKS_AT_ONCE = 6;

/** Where an isolate hands its reports to. */
export interface ReportSink {
  /** Takes the reports; resolves to the reads among them that count. */
  report(reports: readonly ClientReport[]): Promise<readonly AdmittedReads[]>;
  /** Resolves to whether this PoP knows the key's object. */
  isKnown(key: string): Promise<boolean>;
  /** Counts reads. */
  count(key: string, waitUntil: WaitUntil, networks: readonly string[], reads: number): void;
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
      const reported = Array.from(
        Map.groupBy(admitted, ({ key }) => key),
        ([key, all]) => {
          const networks = [...new Set(all.flatMap(({ network }) => network ?? []))];
          return { key, networks, reads: all.reduce((sum, { reads }) => sum + reads, 0) };
        },
      );
      const most = reported.toSorted((a, b) => b.reads - a.reads).slice(0, REPORTED_KEYS_MAX);
      await inParallel(CHECKS_AT_ONCE, most, async ({ key, networks, reads }) => {
        if (await this.#sink.isKnown(key)) this.#sink.count(key, waitUntil, networks, reads);
      });
      return true;
    } catch (error) {
      log("warn", "telemetry lost", { reports: reports.length, error });
      return false;
    }
  }
}
