/**
 * Reports measured latencies to a PoP in batches. A report never delays a read, and is not retried.
 */
import { HAS_STORE, type Clock } from "@agarose/core";
import type { ObjectStore } from "./object-store.ts";

/** The body of `POST /v1/telemetry`. */
export interface TelemetryReport {
  /** From the PoP's latest plan. */
  readonly token?: string;
  readonly regions: readonly {
    readonly name: string;
    readonly samples: number;
    readonly meanMs: number;
    readonly meanBytes: number;
  }[];
  /** Reads by key that no PoP has seen. */
  readonly reads?: Readonly<Record<string, number>>;
}

/** What `Telemetry` uses. */
export interface TelemetryOptions {
  readonly clock: Clock;
  /** Counts the reads that no PoP sees. */
  readonly store?: Pick<ObjectStore, "takeReads"> | undefined;
  readonly send: (report: TelemetryReport) => void;
}

/** A report is sent this long after its first sample. */
export const BATCH_MS = 5_000;

/** Collects samples and sends them. */
export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #sums = new Map<string, { samples: number; ms: number; bytes: number }>();
  #isDue = false;

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  /** `region` delivered `bytes` in `ms`. */
  observe(region: string, ms: number, bytes: number): void {
    const sum = this.#sums.get(region) ?? { samples: 0, ms: 0, bytes: 0 };
    sum.samples++;
    sum.ms += ms;
    sum.bytes += bytes;
    this.#sums.set(region, sum);
    this.due();
  }

  /** Schedules a report. */
  due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#options.clock.after(BATCH_MS, () => this.#report());
  }

  #report(): void {
    const regions = [...this.#sums].map(([name, { samples, ms, bytes }]) => ({
      name,
      samples,
      meanMs: ms / samples,
      meanBytes: bytes / samples,
    }));
    const reads = HAS_STORE ? this.#options.store?.takeReads() : undefined;
    this.#sums.clear();
    this.#isDue = false;
    this.#options.send({ regions, ...(reads && { reads }) });
  }
}
