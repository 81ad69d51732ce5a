/**
 * What one isolate notes while it reads (requests, region latencies, cache values in doubt), handed on in batches beside the reads (`waitUntil`): nothing
 * on the read path waits for it, and a lost batch costs a little accuracy only.
 */
import type { Env } from "./env.ts";
import { log } from "./log.ts";
import type { RegionSample } from "./region-estimates.ts";

/** Durable Objects that share the keys among them. */
export const MONITOR_SHARDS = 4;
/** The one object that holds a PoP's state. */
export const POP_STATE_NAME = "pop";

const KEYS_MAX = 10_000;
const SAMPLES_MAX = 256;
const SUSPECTS_MAX = 256;
const FLUSH_AFTER_MS = 2_000;

export class RequestCounter {
  #counts = new Map<string, number>();
  #samples: RegionSample[] = [];
  #suspects = new Set<string>();
  #flushPlanned = false;
  #dropped = 0;

  /** Requests that were not counted because too many different keys came between two flushes. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Counts one request for `key`. */
  count(key: string, env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    this.#add(key, 1);
    this.#planFlush(env, waitUntil);
  }

  /** Notes how long a region took. */
  observe(sample: RegionSample, env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    if (this.#samples.length < SAMPLES_MAX) this.#samples.push(sample);
    this.#planFlush(env, waitUntil);
  }

  /** Notes that the chunk cache does not hold of a version what it should. */
  suspect(version: string, env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(version);
    this.#planFlush(env, waitUntil);
  }

  /** Hands everything on. Resolves even when a Durable Object refuses; requests it refused are handed on next time. */
  async flush(env: Env): Promise<void> {
    const counts = this.#counts;
    const samples = this.#samples;
    const suspects = [...this.#suspects];
    this.#counts = new Map();
    this.#samples = [];
    this.#suspects.clear();
    const shards = Map.groupBy(counts, ([key]) => shardOf(key));
    await Promise.all([
      ...[...shards].map(([shard, entries]) =>
        logged(monitorShard(env, shard).count(entries), () => this.#takeBack(entries)),
      ),
      ...(samples.length > 0 ? [logged(popState(env).observe(samples))] : []),
      ...(suspects.length > 0 ? [logged(popState(env).suspect(suspects))] : []),
    ]);
  }

  #takeBack(entries: readonly (readonly [key: string, requests: number])[]): void {
    for (const [key, requests] of entries) this.#add(key, requests);
  }

  #add(key: string, requests: number): void {
    const known = this.#counts.get(key);
    if (known === undefined && this.#counts.size >= KEYS_MAX) this.#dropped += requests;
    else this.#counts.set(key, (known ?? 0) + requests);
  }

  #planFlush(env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    const later = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, FLUSH_AFTER_MS));
      this.#flushPlanned = false;
      await this.flush(env);
    };
    waitUntil(later());
  }
}

/** Monitoring must not fail what it monitors: a refusal goes to the log, and to `onRefused`. */
async function logged(call: Promise<void>, onRefused = (): void => {}): Promise<void> {
  try {
    await call;
  } catch (error) {
    log("warn", "a Durable Object refused", { error });
    onRefused();
  }
}

export function monitorShard(env: Env, shard: number): ReturnType<Env["REQUEST_MONITOR"]["get"]> {
  return env.REQUEST_MONITOR.get(env.REQUEST_MONITOR.idFromName(`shard-${shard}`));
}

export function popState(env: Env): ReturnType<Env["POP_STATE"]["get"]> {
  return env.POP_STATE.get(env.POP_STATE.idFromName(POP_STATE_NAME));
}

/** FNV-1a over UTF-16 code units: any even spread will do. */
export function shardOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % MONITOR_SHARDS;
}
