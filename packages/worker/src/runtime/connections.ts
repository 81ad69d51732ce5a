/**
 * Outgoing connections of one invocation.
 *
 * Six connections of a Worker may wait for response headers at a time. The runtime queues further ones in an order of
 * its own, and an abort does not remove them. This queue keeps the order of arrival, and an aborted request leaves it.
 */
import { AgaroseError, type FetchPort } from "@agarose/core";

/** Connections that may wait for response headers at a time. */
export const CONNECTIONS_MAX = 6;

/** A queue for `max` connections. */
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
    if (this.#open >= this.#max) await this.#slot(signal);
    else this.#open++;
    try {
      return await task();
    } finally {
      // The connection passes to the next in the queue. A newcomer could take one that was freed first.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#open--;
    }
  }

  #slot(signal: AbortSignal | undefined): Promise<void> {
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
 * Returns a `FetchPort` for the buckets. It queues for `connections` (a connection counts until its headers have
 * arrived), fetches from `origins` only, follows no redirect and uses no HTTP cache. It rejects with SOURCE_FAILED for
 * other origins.
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
