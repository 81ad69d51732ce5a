/**
 * The service worker seen from the page: registers it, and turns its events into reads.
 */
import { onRead, register, type ReadEvent } from "@agarose/sw";
import type { Read, ReadLog, ReadRequest } from "./reads.ts";

export type WorkerState = "starting" | "active" | "absent";

const CONTROL_WAIT_MS = 4000;

/**
 * Registers the service worker and resolves once it controls the page, or after a few seconds without it, or when it
 * cannot be registered; `problem` says why not.
 */
export async function startServiceWorker(): Promise<{ state: WorkerState; problem?: string }> {
  const registered = register().then(
    () => ({ state: "active" as const }),
    (error: unknown) => ({ state: "absent" as const, problem: (error as Error).message }),
  );
  const late = new Promise<{ state: "starting" }>((resolve) => {
    setTimeout(() => resolve({ state: "starting" }), CONTROL_WAIT_MS);
  });
  return await Promise.race([registered, late]);
}

/** Whether a service worker answers this page's requests now. */
export function isControlled(): boolean {
  return "serviceWorker" in navigator && navigator.serviceWorker.controller !== null;
}

/** Keeps `log` up to date with what the service worker tells. */
export function followReads(log: ReadLog): void {
  onRead((event) => {
    const before = log.get(event.read);
    const after = event.type === "read-start" ? begun(event) : before && advanced(before, event);
    if (after && !isHead(event)) log.put(after);
  });
}

function isHead(event: ReadEvent): boolean {
  return event.type === "read-start" && event.method === "HEAD";
}

function begun({ read, key, range, at }: ReadEvent & { type: "read-start" }): Read {
  return {
    id: read,
    key,
    decoder: "service worker",
    at,
    range,
    k: undefined,
    delta: undefined,
    requests: [],
    ms: undefined,
    plan: undefined,
    firstByteMs: undefined,
    expectedMs: undefined,
    kind: undefined,
    bytes: 0,
    decodeMs: 0,
    decodedShards: 0,
    error: undefined,
  };
}

function advanced(read: Read, event: ReadEvent): Read {
  switch (event.type) {
    case "read-start":
      return read;
    case "plan": {
      const { ms, from, pop, k, expectedMs } = event;
      return {
        ...read,
        k,
        plan: { ms, from, pop },
        expectedMs: Number.isFinite(expectedMs) ? ms + expectedMs : undefined,
      };
    }
    case "request": {
      const requests = [...read.requests];
      requests[event.request] = requestOf(event);
      return { ...read, requests };
    }
    case "read-end": {
      const { ms, kind, firstByteMs, bytes, decodeMs, error } = event;
      // A consumer that has enough (a video element, mostly) aborts: that is no failure.
      const failure = error?.code === "ABORTED" ? undefined : error;
      const decodedShards = missingData(read);
      return { ...read, ms, kind, firstByteMs, bytes, decodeMs, decodedShards, error: failure };
    }
  }
}

function requestOf(event: ReadEvent & { type: "request" }): ReadRequest {
  const { stripe, chunk, source, kind, bytes, startMs, endMs, outcome, error } = event;
  return { stripe, chunk, source, kind, bytes, chunks: 1, startMs, endMs, outcome, error };
}

/** Every chunk used that is not a data chunk stands for a data chunk that was decoded. */
function missingData({ requests, k }: Read): number {
  if (k === undefined) return 0;
  return requests.filter(({ outcome, chunk }) => outcome === "used" && chunk !== undefined && chunk >= k).length;
}
