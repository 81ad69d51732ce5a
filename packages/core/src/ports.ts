/**
 * Network, time, randomness and hashing, which core gets from its caller. It uses no globals for them, so a test
 * controls them all.
 */

/** The part of `fetch` that core uses. The global `fetch` of every runtime has this type. */
export type FetchPort = (url: string, init: FetchInit) => Promise<FetchedResponse>;

/** Options of a request. */
export interface FetchInit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** How urgent it is among other requests. Some runtimes ignore it. */
  readonly priority?: "high" | "low" | "auto";
}

/** The part of a `Response` that core uses. */
export interface FetchedResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Milliseconds from any fixed origin, and timers on the same scale. */
export interface Clock {
  now(): number;
  /** Calls `callback` once after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** Returns the SHA-256 of `bytes`: 32 bytes. */
export type Sha256 = (bytes: Uint8Array) => Promise<Uint8Array>;

/** Returns a number in [0, 1). */
export type Random = () => number;

/** The runtime's own clock and timers. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** The runtime's own SHA-256, of Web Crypto. */
export const systemSha256: Sha256 = async (bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));

/** All that a reader takes from its runtime. */
export interface Ports {
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
}

/** The runtime's own network, clock, chance and SHA-256. */
export const systemPorts: Ports = {
  fetch: (url, init) => fetch(url, init),
  clock: systemClock,
  random: () => Math.random(),
  sha256: systemSha256,
};
