/**
 * The account of one read: tells the channel what happens, and the latency book what was measured.
 */
import {
  planReadMs,
  hedgeAfterMs,
  planStripe,
  readKind,
  serverTiming,
  stripeShape,
  toAgaroseError,
  type ChunkSource,
  type ReadReport,
  type RequestRecord,
  type SourceKind,
} from "@agarose/core";
import type { FullPlan } from "./plans/bundle-request.ts";
import type { ObjectClient } from "./object-client.ts";
import type { ObjectRequest } from "./client-read.ts";
import type { PlanEvent, ReadEndEvent } from "../events/read-events.ts";

/** Names of sources in the latency book. */
export const popAnswer = (name: string): string => `pop:${name}`;
export const deliveryOf = (kind: SourceKind, name: string): string => `${kind}:${name}`;

export class ReadTrace {
  readonly #client: ObjectClient;
  readonly #id = crypto.randomUUID();
  readonly #startMs: number;
  readonly #requests = new Map<RequestRecord, number>();
  #plan: PlanEvent | undefined;
  /** When the bundle's plan came, on the clock; the edge's chunks are under way from then on. */
  #bundleMs = 0;
  #edgeBytes = 0;
  #firstByteMs: number | undefined;

  constructor(client: ObjectClient, { key, method, headers }: ObjectRequest) {
    this.#client = client;
    this.#startMs = client.ports.clock.now();
    const range = headers.get("range") ?? undefined;
    client.ports.emit({ type: "read-start", read: this.#id, key, method, range, at: Date.now() });
  }

  planned(from: PlanEvent["from"], plan: FullPlan, stripe: number, sources: readonly ChunkSource[]): void {
    const { manifest, cached, delta, version } = plan;
    const { k, m, bytes } = manifest;
    const candidates = planStripe(manifest, stripe, sources, { random: () => 0 });
    const expectedMs = planReadMs(k, delta, candidates);
    const pop = sources.find(({ kind }) => kind === "edge")?.id;
    this.#edgeBytes = cached.length * stripeShape(manifest, 0).shardBytes;
    const ms = this.#now();
    this.#plan = { type: "plan", read: this.#id, ms, from, pop, version, bytes, k, m, delta, cached, expectedMs };
    this.#client.ports.emit(this.#plan);
  }

  bundleArrived(): void {
    this.#bundleMs = this.#client.ports.clock.now();
  }

  firstStripe(): void {
    this.#firstByteMs ??= this.#now();
  }

  /** For `onRequest` of the reader. */
  request(record: RequestRecord): void {
    let request = this.#requests.get(record);
    if (request === undefined) {
      request = this.#requests.size;
      this.#requests.set(record, request);
    }
    if (record.endMs !== undefined) this.#measure(record, record.endMs);
    const { startMs, endMs } = record;
    this.#client.ports.emit({
      ...record,
      type: "request",
      read: this.#id,
      request,
      startMs: startMs - this.#startMs,
      endMs: endMs === undefined ? undefined : endMs - this.#startMs,
    });
  }

  /** The `Server-Timing` value of a read that has its plan, as far as it has come. */
  serverTiming(report?: ReadReport): string {
    const { from, ms } = this.#plan!;
    return [`plan;desc="${from}";dur=${ms.toFixed(1)}`, ...(report ? serverTiming(report) : [])].join(", ");
  }

  /** Ends the account. */
  end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    const ms = this.#now();
    // The reader's last cancellations are told in this turn still, after the read itself is over.
    this.#client.ports.clock.after(0, () => {
      this.#client.hedging.observe(this.#plan?.k ?? 0, [...this.#requests.keys()]);
      this.#client.ports.emit({
        type: "read-end",
        read: this.#id,
        ms,
        status,
        kind: report && this.kind(report, bytes),
        firstByteMs: this.#firstByteMs,
        bytes,
        decodeMs: report?.decoding.ms ?? 0,
        decodedShards: report?.decoding.shards ?? 0,
        error: cause === undefined ? undefined : toAgaroseError(cause).code,
      });
    });
  }

  /** How a read of so many bytes has been served so far. */
  kind(report: ReadReport, bytes: number): NonNullable<ReadEndEvent["kind"]> {
    return this.#client.ports.store && bytes > 0 && report.requests.length === 0 ? "stored" : readKind(report);
  }

  #measure({ source, kind, bytes, outcome, startMs, waitMs, error }: RequestRecord, endMs: number): void {
    const { latencies, reporting } = this.#client;
    const id = deliveryOf(kind, source);
    const size = kind === "edge" ? this.#edgeBytes : bytes;
    // What still waits for its turn says nothing of a region.
    const waitedMs = waitMs ?? (kind === "region" ? Number.NaN : 0);
    const ms = endMs - waitedMs - (kind === "edge" ? Math.max(startMs, this.#bundleMs) : startMs);
    if (outcome === "used" || outcome === "unused") {
      latencies.observe(id, ms, size);
      if (kind === "region") reporting.observe(source, ms, bytes);
    } else if (outcome === "failed") {
      // A chunk that is not there says nothing of how the source is.
      if (kind !== "edge" && error !== "CHUNK_MISSING") latencies.failed(id);
    } else if (kind !== "edge" && ms > hedgeAfterMs(latencies.estimate(id, size))) {
      latencies.observeAtLeast(id, ms, size);
    }
  }

  #now(): number {
    return this.#client.ports.clock.now() - this.#startMs;
  }
}
