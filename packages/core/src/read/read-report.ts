/**
 * What a read did: every request, which chunks were used, and the two headers that tell it to the outside.
 */
import type { SourceKind } from "../sources/source.ts";

export interface RequestRecord {
  readonly stripe: number;
  readonly chunk: number;
  readonly source: string;
  readonly kind: SourceKind;
  /** Length of the shard asked for. */
  readonly bytes: number;
  /** On the reader's clock. */
  readonly startMs: number;
  /** What it waited for its turn, where the source has turns and its own has come. */
  waitMs?: number;
  endMs?: number | undefined;
  /**
   * `unused`: arrived whole, but the same chunk or, of a functional one, k others were there already; `cancelled`: aborted
   * because k others were first.
   */
  outcome: "pending" | "used" | "unused" | "cancelled" | "failed";
  /** The code of the failure. */
  error?: string | undefined;
}

/** `degraded`: a source failed and was replaced; else where the chunks that were used came from. */
export type ReadKind = "edge" | "mixed" | "origin" | "degraded";

/** Work of the codec. */
export interface Decoding {
  /** Time spent. */
  ms: number;
  /** Data shards that had to be decoded; twice where functional chunks turned out corrupt. */
  shards: number;
}

export interface ReadReport {
  readonly startMs: number;
  readonly requests: RequestRecord[];
  readonly decoding: Decoding;
  /** When the last byte was handed over, on the reader's clock. */
  endMs?: number | undefined;
}

export function readKind(report: ReadReport): ReadKind {
  if (report.requests.some(isFault)) return "degraded";
  const used = report.requests.filter(({ outcome }) => outcome === "used");
  const regions = used.filter(({ kind }) => kind === "region").length;
  if (regions === 0) return "edge";
  return regions === used.length ? "origin" : "mixed";
}

/** A source that failed, as against a cache that no longer holds what an older plan said. */
export function isFault({ outcome, kind, error }: RequestRecord): boolean {
  return outcome === "failed" && !(kind !== "region" && error === "CHUNK_MISSING");
}

/** The entries of `Server-Timing`: per source, chunks used and the time of its slowest one; then the time in the codec. */
export function serverTiming(report: ReadReport): string[] {
  const bySource = new Map<string, { chunks: number; ms: number }>();
  for (const { source, kind, outcome, startMs, endMs } of report.requests) {
    if (outcome !== "used" || endMs === undefined) continue;
    const name = `${kind}-${source}`.replace(/[^\w-]/g, "_");
    const entry = bySource.get(name) ?? { chunks: 0, ms: 0 };
    entry.chunks++;
    entry.ms = Math.max(entry.ms, endMs - startMs);
    bySource.set(name, entry);
  }
  const entries = [...bySource].map(([name, { chunks, ms }]) => `${name};desc="${chunks} chunks";dur=${ms.toFixed(1)}`);
  if (report.decoding.shards > 0) {
    entries.push(`decode;desc="${report.decoding.shards} shards";dur=${report.decoding.ms.toFixed(1)}`);
  }
  return entries;
}
