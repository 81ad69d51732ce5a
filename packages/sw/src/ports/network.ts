/**
 * The client's network in a browser: no cookies, no HTTP cache (chunks are verified and kept by ourselves or not at
 * all), no redirects to hosts outside the configuration.
 */
import type { FetchPort } from "@agarose/core";
import type { TelemetryReport } from "../client/telemetry.ts";

const POLICY = { cache: "no-store", credentials: "omit", redirect: "error" } as const;

/** @param fetch the global one; `globalThis.fetch` must not be called as a method of something else. */
export function fetchPort(fetch: typeof globalThis.fetch): FetchPort {
  return (url, init) => fetch(url, { ...init, ...POLICY });
}

/** Sends a report as a simple request, without waiting and without reporting failure. */
export function telemetryPost(fetch: typeof globalThis.fetch): (url: string, report: TelemetryReport) => void {
  return (url, report) => {
    const body = JSON.stringify(report);
    // A text is sent as text/plain, which needs no preflight.
    fetch(url, { ...POLICY, method: "POST", body, keepalive: true }).catch(() => {});
  };
}
