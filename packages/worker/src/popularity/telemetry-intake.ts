/**
 * Bounds on clients' reports. Every client has a share: none can make an object popular, move a latency, or fill the
 * memory that the reports of others need. Pure.
 */
import type { ClientSample, RegionSample } from "../regions/region-estimates.ts";
import { TERM_MS } from "./telemetry-token.ts";

/** One report of one client. */
export interface ClientReport {
  /** Name of the client; `OWN` for this PoP's own reads. */
  readonly client: string;
  /** Its network, for the reads. */
  readonly network?: string;
  readonly samples: readonly RegionSample[];
  /** Reads that this PoP did not serve. */
  readonly reads: readonly ReportedReads[];
}

/** Reads of one key. */
export interface ReportedReads {
  readonly key: string;
  readonly reads: number;
}

/** Reads that count, and the network of who reported them. */
export interface AdmittedReads extends ReportedReads {
  readonly network: string | undefined;
}

/** The client name of this PoP itself. */
export const OWN = "";
/** Reads of one key by one client that count in a term. */
export const READS_PER_KEY_MAX = 20;
/** Reads of all keys by one client that count in a term. */
export const READS_PER_CLIENT_MAX = 300;
/** Latencies of one client that count in a period, by region. */
export const SAMPLES_PER_CLIENT_MAX = 4;
const OWN_SAMPLES_MAX = 256;
/** Latencies kept in a period, by region. */
const SAMPLES_MAX = 1024;
/** Clients in a term; reports of further ones are dropped. */
const CLIENTS_MAX = 20_000;

interface Spent {
  total: number;
  readonly keys: Map<string, number>;
}

/** The shares of all clients. */
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

  /** Takes a report; returns the reads in it that count. */
  take({ client, network, samples, reads }: ClientReport): AdmittedReads[] {
    for (const sample of samples) this.#takeSample(client, sample);
    return reads.length > 0 ? this.#admit(client, reads).map((admitted) => ({ ...admitted, network })) : [];
  }

  /** Returns the latencies of the period by region, and starts the next one without any. */
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
