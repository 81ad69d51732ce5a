/**
 * What one isolate notes while it reads (requests, cache values in doubt), handed on in batches beside the reads (`waitUntil`): nothing
 * on the read path waits for it, and a lost batch costs a little accuracy only.
 */
import type { Clock } from "@agarose/core";
import type { Env } from "../http/settings.ts";
import { fnv1a } from "./frequency-sketch.ts";
import { log } from "../platform/log.ts";
import { COUNTED_KEYS_MAX, RequestTally } from "./request-tally.ts";
import { UnderWay } from "../platform/in-flight.ts";

/** Durable Objects that share the keys among them. */
export const MONITOR_SHARDS = 4;
/** The one object that holds a PoP's state. */
export const POP_STATE_NAME = "pop";

const SUSPECTS_MAX = 256;
const FLUSH_AFTER_MS = 2_000;
/** Durable Objects that refuse are overloaded: they are given so much more time with each refusal, up to a minute. */
const FLUSH_AFTER_REFUSAL_MAX_MS = 60_000;

export class RequestCounter {
  readonly #tally = new RequestTally(COUNTED_KEYS_MAX);
  #suspects = new Set<string>();
  #flushPlanned = false;
  #flushAfterMs = FLUSH_AFTER_MS;
  readonly #underWay: UnderWay;
  readonly #onPeers: (epoch: number) => Promise<void>;

  /** @param onPeers told of the newest publication of `PeerState`, which comes with the answer to every batch. */
  constructor(clock: Clock, onPeers: (epoch: number) => Promise<void> = async () => {}) {
    this.#underWay = new UnderWay(clock);
    this.#onPeers = onPeers;
  }

  /** Requests that were not counted because too many different keys came between two flushes. */
  get dropped(): number {
    return this.#tally.dropped;
  }

  /** Counts requests for `key`. */
  count(key: string, env: Env, waitUntil: (promise: Promise<unknown>) => void, requests = 1): void {
    this.#tally.add(key, requests);
    this.#planFlush(env, waitUntil);
  }

  /** Notes that the chunk cache does not hold of a version what it should. */
  suspect(version: string, env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(version);
    this.#planFlush(env, waitUntil);
  }

  /**
   * Hands everything on, and waits for what others are handing on, so that a period counts all that came before it. Resolves
   * even when a Durable Object refuses; requests it refused are handed on next time.
   */
  async flush(env: Env): Promise<void> {
    await Promise.all([this.#handOn(env), this.#underWay.ended()]);
  }

  #handOn(env: Env): Promise<void> {
    return this.#underWay.add(this.#take(env));
  }

  async #take(env: Env): Promise<void> {
    const suspects = [...this.#suspects];
    this.#suspects.clear();
    const shards = Map.groupBy(this.#tally.drain(), ([key]) => shardOf(key));
    let peersEpoch = 0;
    const handedOn = await Promise.all([
      ...[...shards].map(([shard, entries]) =>
        accepts(
          async () => {
            peersEpoch = Math.max(peersEpoch, await monitorShard(env, shard).count(entries));
          },
          () => this.#tally.restore(entries),
        ),
      ),
      ...(suspects.length > 0 ? [accepts(() => popState(env).suspect(suspects))] : []),
    ]);
    this.#flushAfterMs = handedOn.every(Boolean)
      ? FLUSH_AFTER_MS
      : Math.min(FLUSH_AFTER_REFUSAL_MAX_MS, 2 * this.#flushAfterMs);
    await accepts(() => this.#onPeers(peersEpoch));
  }

  #planFlush(env: Env, waitUntil: (promise: Promise<unknown>) => void): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    const later = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, this.#flushAfterMs));
      this.#flushPlanned = false;
      await this.#handOn(env);
    };
    waitUntil(later());
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

export function monitorShard(env: Env, shard: number): ReturnType<Env["REQUEST_MONITOR"]["get"]> {
  return env.REQUEST_MONITOR.get(env.REQUEST_MONITOR.idFromName(`shard-${shard}`));
}

export function popState(env: Env): ReturnType<Env["POP_STATE"]["get"]> {
  return env.POP_STATE.get(env.POP_STATE.idFromName(POP_STATE_NAME));
}

/** Any even spread will do. */
export function shardOf(key: string): number {
  return fnv1a(key) % MONITOR_SHARDS;
}
