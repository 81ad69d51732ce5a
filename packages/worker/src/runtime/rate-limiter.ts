/**
 * A token bucket per client address, in fixed memory: for what costs this PoP much and the client nothing, such as keys
 * that do not exist and guesses of a token.
 *
 * The buckets are those of one isolate. Where the Worker has a rate limiting binding, it extends the limit to all
 * isolates of a location (developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit).
 */
import type { Clock } from "@agarose/core";

/** The rate limiting binding of Cloudflare. */
export interface RateLimitBinding {
  limit(options: { readonly key: string }): Promise<{ readonly success: boolean }>;
}

/** How much one client may do. */
interface RateLimits {
  readonly burst: number;
  /** Events per second in the long run. */
  readonly perSecond: number;
}

/** Clients that are remembered; the one that was seen longest ago is forgotten first. */
const CLIENTS_MAX = 10_000;
/** How long a client waits after the binding has refused it. */
const REFUSED_MS = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** The buckets of all clients. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #limits: RateLimits;
  readonly #buckets = new Map<string, Bucket>();
  #refused = 0;

  constructor(clock: Clock, limits: RateLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Returns whether a client has used up its tokens. A client without an address never has. */
  isBlocked(client: string | undefined): boolean {
    if (client === undefined || this.#bucket(client).tokens >= 1) return false;
    this.#refused++;
    return true;
  }

  /**
   * Takes a token of a client, and asks the binding where there is one. Resolves when the binding has answered. What is
   * in flight when the last token goes becomes a debt: else who does much at once would do so each second.
   */
  async spend(client: string | undefined, binding?: RateLimitBinding): Promise<void> {
    if (client === undefined) return;
    const bucket = this.#bucket(client);
    bucket.tokens--;
    const answer = await binding?.limit({ key: client }).catch(() => undefined);
    if (answer?.success !== false) return;
    bucket.tokens = Math.min(bucket.tokens, -(REFUSED_MS / 1_000) * this.#limits.perSecond);
  }

  #bucket(client: string): Bucket {
    const { burst, perSecond } = this.#limits;
    const now = this.#clock.now();
    const bucket = this.#buckets.get(client) ?? { tokens: burst, atMs: now };
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.atMs) / 1_000) * perSecond);
    bucket.atMs = now;
    this.#buckets.delete(client);
    this.#buckets.set(client, bucket);
    if (this.#buckets.size > CLIENTS_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
    return bucket;
  }
}
