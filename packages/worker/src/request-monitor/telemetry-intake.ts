/**
 * How much of what clients report counts. Every client has a share, so that one of them can neither make an object popular
 * nor move a latency, nor fill the memory that others' reports need. Pure.
 */
import type { ClientSample, RegionSample } from "../region-manager/region-estimates.ts";
import { TERM_MS } from "./telemetry-token.ts";

/** What one client has reported at once. */
export interface ClientReport {
  /** Name of the client; this PoP's own reads are those of `OWN`. */
  readonly client: string;
  readonly samples: readonly RegionSample[];
  /** Reads served without this PoP. */
  readonly reads: readonly ReportedReads[];
}

export interface ReportedReads {
  readonly key: string;
  readonly reads: number;
}

export const OWN = "";
/** Reads that count of one client in a term: of one key, and of all. */
export const READS_PER_KEY_MAX = 20;
export const READS_PER_CLIENT_MAX = 300;
/** Latencies that count of one client in a period, by region. */
export const SAMPLES_PER_CLIENT_MAX = 4;
const OWN_SAMPLES_MAX = 256;
/** Latencies kept in a period, by region. */
const SAMPLES_MAX = 1024;
/** Clients in a term; what further ones report is dropped. */
const CLIENTS_MAX = 20_000;

interface Spent {
  total: number;
  readonly keys: Map<string, number>;
}

export class TelemetryIntake {
  readonly #now: () => number;
  #term = 0;
  readonly #spent = new Map<string, Spent>();
  /** By region. */
  readonly #samples = new Map<string, ClientSample[]>();
  /** By region and client. */
  readonly #sampleCounts = new Map<string, number>();

  /** @param now milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes in a report; returns what counts of its reads. */
  take({ client, samples, reads }: ClientReport): ReportedReads[] {
    for (const sample of samples) this.#takeSample(client, sample);
    return reads.length > 0 ? this.#admit(client, reads) : [];
  }

  /** The latencies of the period, by region; the next one begins without any. */
  drain(): ReadonlyMap<string, readonly ClientSample[]> {
    const samples = new Map(this.#samples);
    this.#samples.clear();
    this.#sampleCounts.clear();
    return samples;
  }

  #takeSample(client: string, { region, ms, bytes }: RegionSample): void {
    const name = `${region}\n${client}`;
    const count = this.#sampleCounts.get(name) ?? 0;
    const ofRegion = this.#samples.get(region) ?? [];
    if (count >= (client === OWN ? OWN_SAMPLES_MAX : SAMPLES_PER_CLIENT_MAX) || ofRegion.length >= SAMPLES_MAX) return;
    this.#sampleCounts.set(name, count + 1);
    ofRegion.push({ client, ms, bytes });
    this.#samples.set(region, ofRegion);
  }

  #admit(client: string, reported: readonly ReportedReads[]): ReportedReads[] {
    const term = Math.floor(this.#now() / TERM_MS);
    if (term !== this.#term) this.#spent.clear();
    this.#term = term;
    const spent = this.#spent.get(client) ?? { total: 0, keys: new Map<string, number>() };
    if (!this.#spent.has(client) && this.#spent.size >= CLIENTS_MAX) return [];
    this.#spent.set(client, spent);
    return reported.flatMap(({ key, reads }) => {
      const before = spent.keys.get(key) ?? 0;
      const admitted = Math.min(reads, READS_PER_KEY_MAX - before, READS_PER_CLIENT_MAX - spent.total);
      if (admitted <= 0) return [];
      spent.keys.set(key, before + admitted);
      spent.total += admitted;
      return [{ key, reads: admitted }];
    });
  }
}
