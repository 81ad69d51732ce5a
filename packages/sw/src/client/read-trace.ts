/** Follows one read and emits its events, without influence on the read. */
import { toAgaroseError } from "@agarose/core";
import { HAS_STORE } from "@agarose/core/features";
import {
  planReadMs,
  planStripe,
  readKind,
  serverTiming,
  type Line,
  type ReadReport,
  type RequestRecord,
} from "@agarose/core/read";
import type { ChunkSource } from "@agarose/core/sources";
import type { PlanEvent, ReadEndEvent } from "../events/read-events.ts";
import type { ClientPorts } from "./client-ports.ts";
import type { FoundPlan } from "./plans/plan-source.ts";
import type { ReadRequest } from "./read-request.ts";

/** Dependencies of a `ReadTrace`. */
export interface TracePorts extends Pick<ClientPorts, "clock" | "emit" | "store"> {
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
  #firstByteMs: number | undefined;

  constructor({ key, method, headers }: ReadRequest, ports: TracePorts) {
    this.#ports = ports;
    this.#startMs = ports.clock.now();
    const range = headers.get("range") ?? undefined;
    ports.emit({ type: "read-start", read: this.id, key, method, range, at: Date.now() });
  }

  /** Records the plan that the read continues with, and the model's time for its first stripe. */
  planned({ from, plan }: FoundPlan, stripe: number, sources: readonly ChunkSource[]): void {
    const { manifest, cached, delta, version } = plan;
    const { k, m, bytes } = manifest;
    const expectedMs = planReadMs(k, delta, planStripe(manifest, stripe, sources));
    const pop = sources.find(({ kind }) => kind === "edge")?.id;
    const ms = this.#now();
    this.#plan = { type: "plan", read: this.id, ms, from, pop, version, bytes, k, m, delta, cached, expectedMs };
    this.#ports.emit(this.#plan);
  }

  /** Records a request that began or ended. */
  request(record: RequestRecord): void {
    const request = this.#requests.get(record) ?? this.#requests.size;
    this.#requests.set(record, request);
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

  /** The headers that tell of a read which has its plan: of one with bytes, when its first stripe is ready. */
  headers(report?: ReadReport, bytes = 0): Record<string, string> {
    const { from, ms } = this.#plan!;
    const timing = `plan;desc="${from} plan";dur=${ms.toFixed(1)}`;
    if (!report) return { "server-timing": timing };
    this.#firstByteMs ??= this.#now();
    const all = [timing, ...serverTiming(report)].join(", ");
    return { "server-timing": all, "x-agarose-read": this.#kind(report, bytes) };
  }

  end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    const ms = this.#now();
    // The reader reports its last cancellations in this turn, after the end of the read.
    this.#ports.clock.after(0, () => {
      this.#ports.emit({
        type: "read-end",
        read: this.id,
        ms,
        status,
        kind: report && this.#kind(report, bytes),
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
  #kind(report: ReadReport, bytes: number): NonNullable<ReadEndEvent["kind"]> {
    return HAS_STORE && this.#ports.store && bytes > 0 && !report.requests.length ? "stored" : readKind(report);
  }

  #now(): number {
    return this.#ports.clock.now() - this.#startMs;
  }
}
