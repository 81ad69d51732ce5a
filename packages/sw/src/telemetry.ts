/**
 * Reports measured latencies to a PoP in batches: fire and forget, never on the way of a read.
 */
import type { Clock } from "@agarose/core";
import type { ObjectStore } from "./object-store.ts";

/** The body of `POST /v1/telemetry`. */
export interface TelemetryReport {
  /** As the PoP's last plan brought it. */
  readonly token?: string;
  readonly regions: readonly {
    readonly name: string;
    readonly samples: number;
    readonly meanMs: number;
    readonly meanBytes: number;
  }[];
  /** By key: reads that no PoP has seen. */
  readonly reads?: Readonly<Record<string, number>>;
}

export interface TelemetryOptions {
  readonly clock: Clock;
  /** Counts the reads that no PoP has seen. */
  readonly store?: Pick<ObjectStore, "takeReads"> | undefined;
  readonly send: (report: TelemetryReport) => void;
}

/** A report goes out when it has this many samples, or so long after its first one. */
export const BATCH_SAMPLES = 64;
export const BATCH_MS = 5_000;

export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #sums = new Map<string, { samples: number; ms: number; bytes: number }>();
  #samples = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(options: TelemetryOptions) {
    this.#options = options;
  }

  /** `region` delivered `bytes` in `ms`. */
  observe(region: string, ms: number, bytes: number): void {
    const sum = this.#sums.get(region) ?? { samples: 0, ms: 0, bytes: 0 };
    this.#sums.set(region, { samples: sum.samples + 1, ms: sum.ms + ms, bytes: sum.bytes + bytes });
    this.due();
  }

  /** There is something more to report. */
  due(): void {
    this.#samples++;
    if (this.#samples >= BATCH_SAMPLES) this.flush();
    else this.#cancelTimer ??= this.#options.clock.after(BATCH_MS, () => this.flush());
  }

  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#samples === 0) return;
    const regions = [...this.#sums].map(([name, { samples, ms, bytes }]) => ({
      name,
      samples,
      meanMs: ms / samples,
      meanBytes: bytes / samples,
    }));
    const reads = this.#options.store?.takeReads();
    this.#sums.clear();
    this.#samples = 0;
    this.#options.send({ regions, ...(reads && { reads }) });
  }
}
