/** Turns the events of the service worker into the reads that the page draws. */
import type { ReadEvent } from "@agarose/sw";
import { UNKNOWN, type Read, type ReadLog, type ReadRequest } from "./reads.ts";

/** Updates `log` with one event. Ignores events of reads that began before the page listened. */
export function applyEvent(log: ReadLog, event: ReadEvent): void {
  if (event.type === "read-start") {
    if (event.method === "GET") log.put(begun(event));
    return;
  }
  const before = log.get(event.read);
  if (before) log.put(advanced(before, event));
}

function begun({ read, key, range, at }: ReadEvent & { type: "read-start" }): Read {
  return {
    ...UNKNOWN,
    id: read,
    key,
    decoder: "service worker",
    at,
    range,
    requests: [],
    ms: undefined,
    kind: undefined,
    bytes: 0,
    decodeMs: 0,
    decodedShards: 0,
    error: undefined,
  };
}

function advanced(read: Read, event: Exclude<ReadEvent, { type: "read-start" }>): Read {
  switch (event.type) {
    case "plan": {
      const { ms, from, pop, k, delta, expectedMs } = event;
      return {
        ...read,
        k,
        delta,
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
      const { ms, kind, firstByteMs, bytes, decodeMs, decodedShards, error } = event;
      // A consumer that has enough, such as a video element, aborts. That is not a failure.
      const failure = error === undefined || error === "ABORTED" ? undefined : { code: error };
      return { ...read, ms, kind, firstByteMs, bytes, decodeMs, decodedShards, error: failure };
    }
  }
}

function requestOf(event: ReadEvent & { type: "request" }): ReadRequest {
  const { stripe, chunk, source, kind, bytes, startMs, endMs, error } = event;
  const isGone = kind !== "region" && error === "CHUNK_MISSING";
  const outcome = isGone ? "gone" : event.outcome;
  return { stripe, chunk, source, kind, bytes, chunks: 1, startMs, endMs, outcome, error };
}
