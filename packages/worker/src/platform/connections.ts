/**
 * Outgoing connections of one invocation.
 *
 * A Worker may have six connections waiting for response headers at a time; further ones queue inside the runtime, where
 * neither order nor abort is ours. So we queue here: in order of asking, and an aborted request leaves the queue.
 */
import { AgaroseError, type FetchPort } from "@agarose/core";

export const CONNECTIONS_MAX = 6;

export class Connections {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #open = 0;

  constructor(max = CONNECTIONS_MAX) {
    this.#max = max;
  }

  /** Runs `task` when a connection is free. Rejects with the signal's reason if that aborts before. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#open >= this.#max) await this.#turn(signal);
    else this.#open++;
    try {
      return await task();
    } finally {
      // The connection passes on as it is: freed first, it could be taken by a request that has not waited.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#open--;
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(start), 1);
        reject(signal!.reason);
      };
      this.#waiting.push(start);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }
}

/** The platform's `fetch`, in the part that is used here. */
export type PlatformFetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * A `FetchPort` for the buckets: within `connections` (a connection counts until its headers are there), to
 * `origins` only, without following redirects and past every HTTP cache.
 */
export function regionFetch(
  connections: Connections,
  origins: ReadonlySet<string>,
  platformFetch: PlatformFetch,
): FetchPort {
  return async (url, init) => {
    const { origin } = new URL(url);
    if (!origins.has(origin)) {
      throw new AgaroseError("SOURCE_FAILED", `${origin} is not the host of a configured region`, { origin });
    }
    return connections.run(() => platformFetch(url, { ...init, redirect: "manual", cache: "no-store" }), init.signal);
  };
}
