/**
 * The client's network in a browser: no cookies, no HTTP cache (chunks are verified and kept by ourselves or not at
 * all), no redirects to hosts outside the configuration.
 */
import type { FetchPort } from "@agarose/core";

const POLICY = { cache: "no-store", credentials: "omit", redirect: "error" } as const;

/** @param fetch the global one; `globalThis.fetch` must not be called as a method of something else. */
export function fetchPort(fetch: typeof globalThis.fetch): FetchPort {
  return (url, init) => fetch(url, { ...init, ...POLICY });
}
