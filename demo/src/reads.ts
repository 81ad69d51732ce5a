/**
 * The reads that the page has seen, in the one shape that gel, waterfall and charts draw.
 */

/** `gone`: an older plan promised the chunk and the cache has dropped it since, so nothing is wrong with the source. */
export type Outcome = "pending" | "used" | "unused" | "cancelled" | "failed" | "gone";

export interface ReadRequest {
  readonly stripe: number;
  /** Undefined where only a summary is known (reads decoded at the edge). */
  readonly chunk: number | undefined;
  readonly source: string;
  readonly kind: "edge" | "peer" | "region";
  readonly bytes: number;
  /** How many chunks this entry stands for; 1 but for a summary. */
  readonly chunks: number;
  /** Since the read began. */
  readonly startMs: number;
  readonly endMs: number | undefined;
  readonly outcome: Outcome;
  readonly error: string | undefined;
}

export interface Read {
  readonly id: string;
  readonly key: string;
  /** Who put the object together. */
  readonly decoder: "service worker" | "edge";
  /** Date.now() when it began. */
  readonly at: number;
  readonly range: string | undefined;
  readonly k: number | undefined;
  readonly delta: number | undefined;
  readonly requests: readonly ReadRequest[];
  /** Undefined while under way. */
  readonly ms: number | undefined;
  /** When it was known what to fetch, and who said so. */
  readonly plan: { readonly ms: number; readonly from: string; readonly pop: string | undefined } | undefined;
  /** When the first stripe was complete. */
  readonly firstByteMs: number | undefined;
  /** When the plan's own model expected that. */
  readonly expectedMs: number | undefined;
  readonly kind: string | undefined;
  /** Bytes handed over. */
  readonly bytes: number;
  readonly decodeMs: number;
  readonly decodedShards: number;
  readonly error: { readonly code: string; readonly message?: string } | undefined;
}

const READS_MAX = 400;

/** Holds the latest reads by id. Dispatches `read` for each change, with the read as `detail`. */
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

/** Chunks that were used, and those of them that a cache at the edge gave. */
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
 * A read that the edge decoded, from what its answer tells: per source how many chunks and the slowest one's time, as in
 * `edge-fra;desc="6 chunks";dur=12.0, region-dublin;desc="3 chunks";dur=51.2, decode;desc="2 shards";dur=1.1`.
 */
export function readOfEdgeAnswer(
  answer: { key: string; at: number; ms: number; bytes: number; kind: string | null; serverTiming: string | null } & {
    error?: Read["error"];
  },
): Read {
  const requests: ReadRequest[] = [];
  let decode = { decodeMs: 0, decodedShards: 0 };
  for (const entry of (answer.serverTiming ?? "").matchAll(/([\w-]+);desc="(\d+) \w+";dur=([\d.]+)/g)) {
    const [, name = "", number, duration] = entry;
    if (name === "decode") {
      decode = { decodeMs: Number(duration), decodedShards: Number(number) };
      continue;
    }
    const [kind, ...source] = name.split("-");
    if (kind !== "edge" && kind !== "peer" && kind !== "region") continue;
    requests.push({
      stripe: 0,
      chunk: undefined,
      source: source.join("-"),
      kind,
      bytes: 0,
      chunks: Number(number),
      startMs: 0,
      endMs: Number(duration),
      outcome: "used",
      error: undefined,
    });
  }
  return {
    id: `edge-${answer.at}-${answer.key}`,
    key: answer.key,
    decoder: "edge",
    at: answer.at,
    range: undefined,
    k: undefined,
    delta: undefined,
    requests,
    ms: answer.ms,
    plan: undefined,
    firstByteMs: undefined,
    expectedMs: undefined,
    kind: answer.kind ?? undefined,
    bytes: answer.bytes,
    ...decode,
    error: answer.error,
  };
}
