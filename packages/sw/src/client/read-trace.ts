/**
 * Follows one read: emits its events, and passes on what was measured.
 */
import { toAgaroseError } from "@agarose/core";
import { HAS_STORE } from "@agarose/core/features";
import { stripeShape } from "@agarose/core/format";
import {
  planReadMs,
  planStripe,
  readKind,
  serverTiming,
  type Line,
  type Piece,
  type ReadReport,
  type RequestRecord,
} from "@agarose/core/read";
import type { ChunkSource } from "@agarose/core/sources";
import type { PlanEvent, ReadEndEvent } from "../events/read-events.ts";
import type { ClientPorts } from "./client-ports.ts";
import type { HedgeBudget } from "./hedge-budget.ts";
import { sourceId, type LatencyTracker } from "./latency-tracker.ts";
import type { Bundle, FullPlan } from "./plans/bundle-request.ts";
import type { ReadRequest } from "./read-request.ts";

/** What a `ReadTrace` uses. */
export interface TracePorts extends Pick<ClientPorts, "clock" | "emit" | "store"> {
  readonly latencies: LatencyTracker;
  readonly hedging: HedgeBudget;
  readonly line: Line;
}

/** The trace of one read. */
export class ReadTrace {
  readonly #ports: TracePorts;
  /** Names the read in its events. Its 32 hexadecimal digits are a trace id, too. */
  readonly id = crypto.randomUUID();
  readonly #startMs: number;
  readonly #requests = new Map<RequestRecord, number>();
  #plan: PlanEvent | undefined;
  /** When the bundle's plan arrived, on the clock. The edge's chunks are on their way from then on. */
  #bundleMs = 0;
  /** 0 for a small range, whose blocks come one by one. */
  #edgeBytes = 0;
  /** Set for a batch. What it brings, the PoP may have fetched first: that says nothing of its cache. */
  #lasting: FullPlan | undefined;
  #firstByteMs: number | undefined;

  constructor({ key, method, headers }: ReadRequest, ports: TracePorts) {
    this.#ports = ports;
    this.#startMs = ports.clock.now();
    const range = headers.get("range") ?? undefined;
    ports.emit({ type: "read-start", read: this.id, key, method, range, at: Date.now() });
  }

  /**
   * Records the plan that the read continues with, and the model's time for its first stripe.
   *
   * @param pieces what a small range lies in.
   */
  planned(
    from: PlanEvent["from"],
    plan: FullPlan,
    stripe: number,
    sources: readonly ChunkSource[],
    pieces?: readonly Piece[],
  ): void {
    const { manifest, cached, delta, version } = plan;
    const { k, m, bytes } = manifest;
    const candidates = planStripe(manifest, stripe, sources);
    const expectedMs = planReadMs(k, delta, candidates);
    const pop = sources.find(({ kind }) => kind === "edge")?.id;
    this.#edgeBytes = pieces ? 0 : cached.length * stripeShape(manifest, 0).shardBytes;
    const ms = this.#now();
    this.#plan = { type: "plan", read: this.id, ms, from, pop, version, bytes, k, m, delta, cached, expectedMs };
    this.#ports.emit(this.#plan);
  }

  /** Records that the bundle's plan is here. */
  bundleArrived(bundle: Bundle): void {
    this.#bundleMs = this.#ports.clock.now();
    this.#lasting = bundle.lasting;
  }

  /** Records that the first stripe is ready. */
  firstStripe(): void {
    this.#firstByteMs ??= this.#now();
  }

  /** Records a request that began or ended. */
  request(record: RequestRecord): void {
    let request = this.#requests.get(record);
    if (request === undefined) {
      request = this.#requests.size;
      this.#requests.set(record, request);
    }
    if (record.endMs !== undefined) this.#measure(record, record.endMs);
    const { startMs, endMs } = record;
    this.#ports.emit({
      ...record,
      type: "request",
      read: this.id,
      request,
      startMs: startMs - this.#startMs,
      endMs: endMs === undefined ? undefined : endMs - this.#startMs,
    });
  }

  /** The `Server-Timing` value of a read that has its plan, so far. */
  serverTiming(report?: ReadReport): string {
    const { from, ms } = this.#plan!;
    return [`plan;desc="${from} plan";dur=${ms.toFixed(1)}`, ...(report ? serverTiming(report) : [])].join(", ");
  }

  /** Records the end of the read. */
  end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    const ms = this.#now();
    // The reader reports its last cancellations in this turn, after the end of the read.
    this.#ports.clock.after(0, () => {
      this.#ports.hedging.observe(this.#plan?.k ?? 0, [...this.#requests.keys()]);
      this.#ports.emit({
        type: "read-end",
        read: this.id,
        ms,
        status,
        kind: report && this.kind(report, bytes),
        firstByteMs: this.#firstByteMs,
        bytes,
        lineMbit: this.#ports.line.mbit,
        decodeMs: report?.decoding.ms ?? 0,
        decodedShards: report?.decoding.shards ?? 0,
        error: cause === undefined ? undefined : toAgaroseError(cause).code,
      });
    });
  }

  /** How a read of `bytes` was served so far. */
  kind(report: ReadReport, bytes: number): NonNullable<ReadEndEvent["kind"]> {
    return HAS_STORE && this.#ports.store && bytes > 0 && !report.requests.length ? "stored" : readKind(report);
  }

  #measure({ source, kind, bytes, outcome, startMs, waitMs, follows, error }: RequestRecord, endMs: number): void {
    const { latencies } = this.#ports;
    if (kind === "edge" && this.#lasting) return;
    const id = sourceId(kind, source);
    const size = (kind === "edge" && this.#edgeBytes) || bytes;
    // A request that still waits for its turn says nothing about its region.
    const waitedMs = waitMs ?? (kind === "region" ? Number.NaN : 0);
    const ms = endMs - waitedMs - (kind === "edge" ? Math.max(startMs, this.#bundleMs) : startMs);
    if (follows && outcome !== "failed") {
      // It waited for the blocks before it, on a line that its GET shares.
      if (outcome !== "cancelled") latencies.heard(id);
    } else if (outcome === "used" || outcome === "unused") {
      latencies.observe(id, ms, size);
    } else if (outcome === "failed") {
      // A missing chunk says nothing about the health of its source.
      if (kind !== "edge" && error !== "CHUNK_MISSING") latencies.failed(id);
    } else if (kind !== "edge") {
      latencies.observeAtLeast(id, ms, size);
    }
  }

  #now(): number {
    return this.#ports.clock.now() - this.#startMs;
  }
}
