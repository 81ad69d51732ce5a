/**
 * Notes of one isolate while it reads (requests, doubtful cache values, how long regions took), handed
 * on in batches beside the reads. No
 * read waits for it, and a lost batch only costs a little accuracy.
 */
import type { Clock } from "@agarose/core";
import { BatchFlusher, type WaitUntil } from "../runtime/batch-flusher.ts";
import { log } from "../runtime/log.ts";
import { addTimes, NO_TIMES, type CacheTimes } from "../cache/cache-latency.ts";
import type { RegionSample } from "../regions/region-estimates.ts";
import { shardOf } from "./monitor-shards.ts";
import { COUNTED_KEYS_MAX, RequestTally, type CountedKey } from "./request-tally.ts";

const SUSPECTS_MAX = 256;
const SAMPLES_MAX = 128;

/** Where an isolate hands its notes to. */
interface CountSink {
  /** Adds requests by key to a shard; resolves to the newest publication of `PeerState` that the shard knows. */
  count(shard: number, entries: readonly CountedKey[]): Promise<number>;
  /** Makes the next period check these versions in the cache. */
  suspect(versions: readonly string[]): Promise<void>;
  /** Takes how long regions and the chunk cache took. */
  observe(samples: readonly RegionSample[], cacheTimes: CacheTimes): Promise<void>;
  /** Takes the newest publication of `PeerState`, after each batch. */
  notePeers(epoch: number): Promise<void>;
}

/** The counter of one isolate. */
export class RequestCounter {
  readonly #tally = new RequestTally(COUNTED_KEYS_MAX);
  readonly #sink: CountSink;
  readonly #flusher: BatchFlusher;
  readonly #clientsMax: number;
  /** By key. */
  #clients = new Map<string, Set<string>>();
  #suspects = new Set<string>();
  #samples: RegionSample[] = [];
  #cacheTimes: CacheTimes = NO_TIMES;

  /** @param clientsMax clients that a fill needs: of more, no name is kept; of 1, none. */
  constructor(clock: Clock, sink: CountSink, clientsMax = 1) {
    this.#sink = sink;
    this.#clientsMax = clientsMax;
    this.#flusher = new BatchFlusher(clock, () => this.#handOn());
  }

  /** Requests that were not counted because too many different keys came between two flushes. */
  get dropped(): number {
    return this.#tally.dropped;
  }

  count(key: string, waitUntil: WaitUntil, clients: readonly string[]): void {
    this.#tally.add(key, 1);
    this.#noteClients(key, clients);
    this.#flusher.plan(waitUntil);
  }

  /** Notes that the chunk cache does not hold what it should of a version. */
  suspect(version: string, waitUntil: WaitUntil): void {
    if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(version);
    this.#flusher.plan(waitUntil);
  }

  /** Notes how long a region took for a read. */
  observe(sample: RegionSample, waitUntil: WaitUntil): void {
    if (this.#samples.length < SAMPLES_MAX) this.#samples.push(sample);
    this.#flusher.plan(waitUntil);
  }

  /** Notes how long the chunk cache took for a read, and whether KV had to be asked. The read's count hands it on. */
  noteCacheRead(ms: number, isFirst: boolean): void {
    const reads = { reads: 1, ms };
    this.#cacheTimes = addTimes(this.#cacheTimes, { ...NO_TIMES, [isFirst ? "first" : "again"]: reads });
  }

  /**
   * Hands everything on, and waits for other batches in flight, so that a period counts every earlier request. Resolves
   * even when a Durable Object refuses; refused requests stay for the next batch.
   */
  async flush(waitUntil: WaitUntil): Promise<void> {
    await this.#flusher.flush(waitUntil);
  }

  #noteClients(key: string, clients: readonly string[]): void {
    if (this.#clientsMax <= 1) return;
    const known = this.#clients.get(key) ?? new Set();
    if (!this.#clients.has(key) && this.#clients.size >= COUNTED_KEYS_MAX) return;
    this.#clients.set(key, known);
    for (const client of clients) if (known.size < this.#clientsMax) known.add(client);
  }

  async #handOn(): Promise<boolean> {
    const suspects = [...this.#suspects];
    this.#suspects.clear();
    const samples = this.#samples;
    this.#samples = [];
    const cacheTimes = this.#cacheTimes;
    this.#cacheTimes = NO_TIMES;
    const clients = this.#clients;
    this.#clients = new Map();
    const counted = Array.from(this.#tally.drain(), ([key, requests]): CountedKey => {
      const known = clients.get(key);
      return known ? [key, requests, [...known]] : [key, requests];
    });
    const shards = Map.groupBy(counted, ([key]) => shardOf(key));
    let peersEpoch = 0;
    const accepted = await Promise.all([
      ...[...shards].map(([shard, entries]) =>
        accepts(
          async () => {
            peersEpoch = Math.max(peersEpoch, await this.#sink.count(shard, entries));
          },
          () => {
            this.#tally.restore(entries.map(([key, requests]) => [key, requests]));
            for (const [key, , names = []] of entries) this.#noteClients(key, names);
          },
        ),
      ),
      ...(suspects.length > 0 ? [accepts(() => this.#sink.suspect(suspects))] : []),
      ...(samples.length > 0 || cacheTimes !== NO_TIMES
        ? [accepts(() => this.#sink.observe(samples, cacheTimes))]
        : []),
    ]);
    await accepts(() => this.#sink.notePeers(peersEpoch));
    return accepted.every(Boolean);
  }
}

/** Monitoring must not fail what it monitors: a refusal goes to the log, and to `onRefused`. */
async function accepts(call: () => Promise<void>, onRefused = (): void => {}): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    log("warn", "a Durable Object refused", { error });
    onRefused();
    return false;
  }
}
