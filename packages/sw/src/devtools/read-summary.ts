/** The events of a read folded into one record: what the overlay draws and the log says. */
import type { PlanEvent, ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "../events/read-events.ts";

/** The summary of one read so far. `end` is missing until the read ends. */
export interface ReadSummary {
  readonly start: ReadStartEvent;
  /** The last one, where an object changed in between. */
  readonly plan?: PlanEvent;
  /** By number; the latest event of each. */
  readonly requests: readonly RequestEvent[];
  readonly end?: ReadEndEvent;
}

/** `summary` after one more event of the same read; undefined for an event of a read whose start was missed. */
export function summarized(summary: ReadSummary | undefined, event: ReadEvent): ReadSummary | undefined {
  if (event.type === "read-start") return { start: event, requests: [] };
  if (!summary) return undefined;
  if (event.type === "plan") return { ...summary, plan: event };
  if (event.type === "read-end") return { ...summary, end: event };
  const requests = [...summary.requests];
  requests[event.request] = event;
  return { ...summary, requests };
}

/** Sums over the requests of one read that have ended. */
export interface ReadTotals {
  /** Bytes of the chunks that arrived, used or not. */
  readonly fetchedBytes: number;
  /** Requests by how they ended. */
  readonly used: number;
  readonly unused: number;
  readonly cancelled: number;
  readonly failed: number;
}

/** Totals of the requests of a read. */
export function totalsOf({ requests }: ReadSummary): ReadTotals {
  const totals = { fetchedBytes: 0, used: 0, unused: 0, cancelled: 0, failed: 0 };
  for (const { outcome, bytes } of requests) {
    if (outcome === "pending") continue;
    totals[outcome]++;
    if (outcome === "used" || outcome === "unused") totals.fetchedBytes += bytes;
  }
  return totals;
}

/** One source's share of a read: the chunks that were used, and their bytes. */
export interface SourceShare {
  readonly source: string;
  readonly kind: RequestEvent["kind"];
  readonly chunks: number;
  readonly bytes: number;
}

/** Whose chunks were used, the one with most first. */
export function sharesOf({ requests }: ReadSummary): SourceShare[] {
  const shares = new Map<string, SourceShare>();
  for (const { source, kind, bytes, outcome } of requests) {
    if (outcome !== "used") continue;
    const name = `${kind} ${source}`;
    const share = shares.get(name) ?? { source, kind, chunks: 0, bytes: 0 };
    shares.set(name, { ...share, chunks: share.chunks + 1, bytes: share.bytes + bytes });
  }
  return [...shares.values()].toSorted((a, b) => b.chunks - a.chunks);
}

/** Bytes that no bucket had to send: chunks used from caches, or all of an object that this browser has kept. */
export function savedBytes(summary: ReadSummary): number {
  if (summary.end?.kind === "stored") return summary.end.bytes;
  return sharesOf(summary).reduce((sum, { kind, bytes }) => sum + (kind === "region" ? 0 : bytes), 0);
}

/** One line for people: `photos/cat.jpg 206 mixed, 1.2 MB in 85 ms (first byte 40 ms): edge fra 3, region dublin 1`. */
export function described(summary: ReadSummary): string {
  const { start, end } = summary;
  const what = `${start.method === "HEAD" ? "HEAD " : ""}${start.key}${start.range ? ` [${start.range}]` : ""}`;
  if (!end) return `${what} is being read`;
  if (end.error) return `${what} failed with ${end.error} after ${ms(end.ms)}`;
  const first = end.firstByteMs === undefined ? "" : ` (first byte ${ms(end.firstByteMs)})`;
  const sources = sharesOf(summary).map(({ kind, source, chunks }) => `${kind} ${source} ${chunks}`);
  const decoded = end.decodedShards > 0 ? [`${end.decodedShards} decoded in ${ms(end.decodeMs)}`] : [];
  const { unused, cancelled, failed } = totalsOf(summary);
  const extra = [`${unused} unused`, `${cancelled} cancelled`, `${failed} failed`].filter(
    (text) => !text.startsWith("0"),
  );
  const all = [...sources, ...decoded, ...extra].join(", ");
  const kind = end.kind ? ` ${end.kind}` : "";
  return `${what} ${end.status}${kind}, ${bytesText(end.bytes)} in ${ms(end.ms)}${first}${all && `: ${all}`}`;
}

/** Returns a length for people, in decimal units: 1,500 is `1.5 kB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
