/**
 * Latencies and reads that clients report, and latencies of this PoP's own reads: kept by the isolate for a moment, then
 * handed to `PopState`, which says what of the reported reads counts. A lost batch costs a little accuracy only.
 */
import type { Clock } from "@agarose/core";
import type { Env } from "../http/settings.ts";
import { log } from "../platform/log.ts";
import type { RegionSample } from "../region-manager/region-estimates.ts";
import { popState, type RequestCounter } from "./request-counter.ts";
import { OWN, type ClientReport } from "./telemetry-intake.ts";
import { UnderWay } from "../platform/in-flight.ts";

const REPORTS_MAX = 200;
const OWN_SAMPLES_MAX = 128;
const FLUSH_AFTER_MS = 2_000;

type WaitUntil = (promise: Promise<unknown>) => void;

export class TelemetryBuffer {
  readonly #counter: RequestCounter;
  #reports: ClientReport[] = [];
  #own: RegionSample[] = [];
  #flushPlanned = false;
  #dropped = 0;
  readonly #underWay: UnderWay;

  /** @param counter counts the reads that count. */
  constructor(counter: RequestCounter, clock: Clock) {
    this.#counter = counter;
    this.#underWay = new UnderWay(clock);
  }

  /** Reports that were dropped because too many came between two flushes. */
  get dropped(): number {
    return this.#dropped;
  }

  report(report: ClientReport, env: Env, waitUntil: WaitUntil): void {
    if (this.#reports.length < REPORTS_MAX) this.#reports.push(report);
    else this.#dropped++;
    this.#planFlush(env, waitUntil);
  }

  /** Notes how long a region took for a read of this PoP. */
  observe(sample: RegionSample, env: Env, waitUntil: WaitUntil): void {
    if (this.#own.length < OWN_SAMPLES_MAX) this.#own.push(sample);
    this.#planFlush(env, waitUntil);
  }

  /** Hands everything on, and waits for what others are handing on. Resolves even when the Durable Object refuses. */
  async flush(env: Env, waitUntil: WaitUntil): Promise<void> {
    await Promise.all([this.#handOn(env, waitUntil), this.#underWay.ended()]);
  }

  #handOn(env: Env, waitUntil: WaitUntil): Promise<void> {
    return this.#underWay.add(this.#take(env, waitUntil));
  }

  async #take(env: Env, waitUntil: WaitUntil): Promise<void> {
    const own = { client: OWN, samples: this.#own, reads: [] };
    const reports = [...this.#reports, ...(own.samples.length > 0 ? [own] : [])];
    this.#reports = [];
    this.#own = [];
    if (reports.length === 0) return;
    try {
      const admitted = await popState(env).report(reports);
      for (const { key, reads } of admitted) this.#counter.count(key, env, waitUntil, reads);
    } catch (error) {
      log("warn", "telemetry lost", { reports: reports.length, error });
    }
  }

  #planFlush(env: Env, waitUntil: WaitUntil): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    const later = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, FLUSH_AFTER_MS));
      this.#flushPlanned = false;
      await this.#handOn(env, waitUntil);
    };
    waitUntil(later());
  }
}
