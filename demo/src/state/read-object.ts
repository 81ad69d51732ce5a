/**
 * Reads an object as any page does, with fetch. Without a service worker the edge decodes, and the log entry comes from
 * the headers of the answer. With one, the log entry comes from its events.
 */
import { readOfEdgeAnswer, type Read, type ReadLog } from "./reads.ts";
import { isControlled } from "./service-worker.ts";
import { apiError } from "./api-error.ts";

export interface Progress {
  /** Bytes of the object that have arrived. */
  readonly received: number;
  readonly total: number | undefined;
  readonly part: Uint8Array;
}

/** Returns the whole object. Rejects with ApiError for an error status, and as fetch does. */
export async function readObject(
  log: ReadLog,
  key: string,
  onProgress: (progress: Progress) => void = () => {},
): Promise<{ parts: Uint8Array<ArrayBuffer>[]; contentType: string }> {
  const at = Date.now();
  const startMs = performance.now();
  const controlled = isControlled();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let received = 0;
  // The browser's HTTP cache would answer a second read without any request for a chunk.
  const response = await fetch(`/ec/${key}`, { cache: "no-store" });
  const record = (error?: Read["error"]): void => {
    if (controlled) return;
    const { headers } = response;
    const serverTiming = headers.get("server-timing");
    const kind = headers.get("x-agarose-read");
    const ms = performance.now() - startMs;
    log.put(readOfEdgeAnswer({ key, at, ms, bytes: received, kind, error }, serverTiming));
  };
  if (!response.ok || !response.body) {
    const error = await apiError(response);
    record({ code: error.code, message: error.message });
    throw error;
  }
  const length = response.headers.get("content-length");
  const total = length === null ? undefined : Number(length);
  const reader = response.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    received += next.value.length;
    onProgress({ received, total, part: next.value });
  }
  record();
  return { parts, contentType: response.headers.get("content-type") ?? "application/octet-stream" };
}
