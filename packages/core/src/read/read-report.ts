/** The report of a read: every request, the chunks that were used, and the two response headers with its summary. */
import type { SourceKind } from "../sources/source.ts";

/** One request for one chunk of one stripe. */
export interface RequestRecord {
  /** Index of the stripe in the object. */
  readonly stripe: number;
  /** Index of the chunk in the stripe's code. */
  readonly chunk: number;
  /** Id of the source. */
  readonly source: string;
  /** `edge`: the cache of the PoP that answers; `peer`: the cache of a different PoP; `region`: a bucket. */
  readonly kind: SourceKind;
  /** Length of the shard. */
  readonly bytes: number;
  /** When the request started, on the reader's clock. */
  readonly startMs: number;
  /** Whether it continued a GET of an earlier request, so that its time does not measure its source. */
  follows?: boolean;
  /** How long it waited in the queue of a source that has one. */
  waitMs?: number;
  /** When it ended, on the reader's clock. */
  endMs?: number | undefined;
  /**
   * `unused`: it arrived after the same chunk, or it is functional and arrived after k others. `cancelled`: it was
   * aborted because k others were first.
   */
  outcome: "pending" | "used" | "unused" | "cancelled" | "failed";
  /** The code of the failure. */
  error?: string | undefined;
}

/**
 * Where the chunks that were used came from: only PoPs (`edge`), only buckets (`origin`) or both (`mixed`); `degraded`
 * if a source failed and was replaced.
 */
export type ReadKind = "edge" | "mixed" | "origin" | "degraded";

/** The codec's work. */
export interface Decoding {
  /** Its milliseconds. */
  ms: number;
  /** How many data shards it decoded. A corrupt functional chunk makes it decode shards twice. */
  shards: number;
}

/** A read and all its requests. Times are on the reader's clock. */
export interface ReadReport {
  readonly startMs: number;
  readonly requests: RequestRecord[];
  readonly decoding: Decoding;
  /** When the read ended: complete, cancelled or failed. */
  endMs?: number | undefined;
}

/** Returns the kind of a read from the requests it has made so far: the value of `x-agarose-read`. */
export function readKind(report: ReadReport): ReadKind {
  if (report.requests.some(isFault)) return "degraded";
  const used = report.requests.filter(({ outcome }) => outcome === "used");
  const regions = used.filter(({ kind }) => kind === "region").length;
  if (regions === 0) return "edge";
  return regions === used.length ? "origin" : "mixed";
}

/** Whether a source failed. A cache that does not hold a chunk any more is not a failure. */
export function isFault({ outcome, kind, error }: RequestRecord): boolean {
  return outcome === "failed" && !(kind !== "region" && error === "CHUNK_MISSING");
}

/**
 * Returns the entries of `Server-Timing`: for each source how many of its chunks were used and the milliseconds of the
 * slowest; then the codec's milliseconds. Chromium's DevTools show a description instead of its name, so it has both.
 */
export function serverTiming(report: ReadReport): string[] {
  const counts = new Map<string, { count: number; ms: number }>();
  for (const { source, kind, outcome, startMs, endMs } of report.requests) {
    if (outcome !== "used") continue;
    const name = `${kind}-${source}`.replace(/[^\w-]/g, "_");
    const entry = counts.get(name) ?? { count: 0, ms: 0 };
    entry.count++;
    entry.ms = Math.max(entry.ms, endMs! - startMs);
    counts.set(name, entry);
  }
  const { shards, ms: decodeMs } = report.decoding;
  if (shards > 0) counts.set("decode", { count: shards, ms: decodeMs });
  return [...counts].map(([name, { count, ms }]) => `${name};desc="${count} x ${name}";dur=${ms.toFixed(1)}`);
}
