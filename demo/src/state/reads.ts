/** The reads that the page has seen, in the shape that lanes, waterfall and charts draw. */
import { describeError } from "./api-error.ts";

/** How a request ended. `gone`: the plan was older than the cache, which has dropped the chunk. The source is fine. */
export type Outcome = "pending" | "used" | "unused" | "cancelled" | "failed" | "gone";

export interface ReadRequest {
  readonly stripe: number;
  /** Undefined in the summary of a read that the edge decoded. */
  readonly chunk: number | undefined;
  readonly source: string;
  readonly kind: "edge" | "peer" | "region";
  readonly bytes: number;
  /** How many chunks this entry covers: 1, or more in a summary. */
  readonly chunks: number;
  /** Milliseconds since the read began. */
  readonly startMs: number;
  readonly endMs: number | undefined;
  readonly outcome: Outcome;
  readonly error: string | undefined;
}

export interface Read {
  readonly id: string;
  readonly key: string;
  readonly decoder: "service worker" | "edge";
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  readonly range: string | undefined;
  readonly k: number | undefined;
  readonly delta: number | undefined;
  readonly requests: readonly ReadRequest[];
  /** Duration. Undefined while the read is in progress. */
  readonly ms: number | undefined;
  /** When the plan was known, and its source. */
  readonly plan: { readonly ms: number; readonly from: string; readonly pop: string | undefined } | undefined;
  /** When the first stripe was complete. */
  readonly firstByteMs: number | undefined;
  /** When the plan's model expected it. */
  readonly expectedMs: number | undefined;
  readonly kind: string | undefined;
  /** Bytes that the page received. */
  readonly bytes: number;
  readonly decodeMs: number;
  readonly decodedShards: number;
  readonly error: { readonly code: string; readonly message?: string } | undefined;
}

/** The facts of a read that come after its beginning, and never for one that the edge decoded. */
export const UNKNOWN = {
  range: undefined,
  k: undefined,
  delta: undefined,
  plan: undefined,
  firstByteMs: undefined,
  expectedMs: undefined,
} as const;

const READS_MAX = 400;

/** The latest reads by id. Dispatches `read` for each change, with the read as `detail`. */
export class ReadLog extends EventTarget {
  readonly #reads = new Map<string, Read>();

  get all(): Read[] {
    return [...this.#reads.values()];
  }

  get(id: string): Read | undefined {
    return this.#reads.get(id);
  }

  put(read: Read): void {
    this.#reads.set(read.id, read);
    const oldest = this.#reads.keys().next().value;
    if (this.#reads.size > READS_MAX && oldest !== undefined) this.#reads.delete(oldest);
    this.dispatchEvent(new CustomEvent<Read>("read", { detail: read }));
  }
}

/** The code of a read's error, and its meaning with the chunks that arrived of the stripe that failed. */
export function explainRead({ error, k, requests }: Read): { readonly code: string; readonly message: string } {
  const { code, message } = error!;
  if (message !== undefined) return { code, message };
  const stripe = Math.max(0, ...requests.map((request) => request.stripe));
  const arrived = requests.filter(
    ({ stripe: own, outcome }) => own === stripe && (outcome === "used" || outcome === "unused"),
  );
  const numbers = k === undefined || code !== "NOT_ENOUGH_CHUNKS" ? {} : { needed: k, available: arrived.length };
  return { code, message: describeError(code, numbers) };
}

/** Counts the chunks that a read used, and those of them from a cache at the edge. */
export function usedChunks(read: Read): { edge: number; all: number } {
  let edge = 0;
  let all = 0;
  for (const { outcome, kind, chunks } of read.requests) {
    if (outcome !== "used") continue;
    all += chunks;
    if (kind !== "region") edge += chunks;
  }
  return { edge, all };
}

/**
 * Returns a read that the edge decoded, from its Server-Timing header: the chunks and the slowest time of each source,
 * as in `edge-fra;desc="6 x edge-fra";dur=12.0, decode;desc="2 x decode";dur=1.1`.
 */
export function readOfEdgeAnswer(
  { key, at, ms, bytes, kind, error }: Pick<Read, "key" | "at" | "ms" | "bytes" | "error"> & { kind: string | null },
  serverTiming: string | null,
): Read {
  const requests: ReadRequest[] = [];
  let decode = { decodeMs: 0, decodedShards: 0 };
  for (const entry of (serverTiming ?? "").matchAll(/([\w-]+);desc="(\d+) [^"]+";dur=([\d.]+)/g)) {
    const [, name = "", number, duration] = entry;
    if (name === "decode") {
      decode = { decodeMs: Number(duration), decodedShards: Number(number) };
      continue;
    }
    const [by, ...source] = name.split("-");
    if (by !== "edge" && by !== "peer" && by !== "region") continue;
    requests.push({
      stripe: 0,
      chunk: undefined,
      source: source.join("-"),
      kind: by,
      bytes: 0,
      chunks: Number(number),
      startMs: 0,
      endMs: Number(duration),
      outcome: "used",
      error: undefined,
    });
  }
  return {
    ...UNKNOWN,
    id: `edge-${at}-${key}`,
    key,
    decoder: "edge",
    at,
    requests,
    ms,
    kind: kind ?? undefined,
    bytes,
    ...decode,
    error,
  };
}
