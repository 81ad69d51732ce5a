/**
 * What core takes from outside: network, time, randomness and hashing. Nothing here is reached for globally, so a test
 * can hold all of them.
 */

/** The part of `fetch` that core uses; the global one fits in every runtime. */
export type FetchPort = (url: string, init: FetchInit) => Promise<FetchedResponse>;

export interface FetchInit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** How urgent it is among other requests; not all runtimes care. */
  readonly priority?: "high" | "low" | "auto";
}

export interface FetchedResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Milliseconds from any fixed origin, and timers on the same scale. */
export interface Clock {
  now(): number;
  /** Calls `callback` once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** SHA-256 of `bytes` (32 bytes). */
export type Sha256 = (bytes: Uint8Array) => Promise<Uint8Array>;

/** A number in [0, 1). */
export type Random = () => number;

/** The runtime's own clock, hash and randomness: what every adapter passes unless a test passes something else. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

export const systemSha256: Sha256 = async (bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
