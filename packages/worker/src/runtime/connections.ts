/**
 * Outgoing connections of one invocation.
 *
 * Six connections of a Worker may wait for response headers at a time. The runtime queues further ones in its own
 * order, and an abort does not remove them. This queue keeps the order of arrival, and an aborted request leaves it.
 */
import { AgaroseError, type FetchPort } from "@agarose/core";
import { Limiter } from "@agarose/core/async";

/** Connections that may wait for response headers at a time. */
export const CONNECTIONS_MAX = 6;

/** A queue for connections. */
export class Connections extends Limiter {
  constructor(max = CONNECTIONS_MAX) {
    super(max);
  }
}

/** The platform's `fetch`, in the part that is used here. */
type PlatformFetch = (url: string, init: RequestInit) => Promise<Response>;

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
