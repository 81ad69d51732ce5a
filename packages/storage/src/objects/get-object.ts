/** Reads one object with core's reader, over signed requests to the buckets. */
import { createHash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { storedRangeOf } from "@agarose/core/content";
import { chunkRegions, type Manifest } from "@agarose/core/format";
import type { ByteRange } from "@agarose/core/http";
import { openRead, type ObjectRead, type ReadReport, type RequestRecord } from "@agarose/core/read";
import {
  hedgeAfterMs,
  LATENCY_UNKNOWN,
  observeLatency,
  RegionSource,
  type LatencyEstimate,
} from "@agarose/core/sources";
import { openedContent } from "../encryption/secrets-of.ts";
import type { DeploymentParts } from "../parts.ts";
import { nodeSha256 } from "./sha256.ts";
import type { Store } from "../buckets/store.ts";
import { storeFetch, storeUrl } from "../buckets/stores.ts";

/** The parts that a read works with. */
export type ReadParts = Pick<DeploymentParts, "config" | "stores" | "codec" | "signal" | "clock" | "random">;

interface GetHow {
  readonly onBytes?: (bytes: number) => void;
  /** A read that may have begun already. Default: none has. */
  readonly early?: EarlyRead;
}

/**
 * Passes the bytes of `range`, or of the whole object, to `write` in order. The SHA-256 of a whole object is
 * checked at the end, so what was written counts only once this resolves.
 *
 * @throws NOT_ENOUGH_CHUNKS, READ_TIMEOUT, OBJECT_CORRUPT, ABORTED, or what `openedContent` throws.
 */
export async function getObject(
  manifest: Manifest,
  range: ByteRange | undefined,
  write: (part: Uint8Array) => Promise<unknown>,
  context: ReadParts,
  { onBytes, early }: GetHow = {},
): Promise<ReadReport> {
  const opened = await openedContent(manifest, context.config);
  const shown = opened?.shown ?? manifest;
  const wanted = range ?? { start: 0, end: shown.bytes };
  const stored = opened ? opened.stored(wanted) : range;
  const read = await (early?.take(manifest, stored) ?? openObject(manifest, stored, context));
  const hash = range ? undefined : createHash("sha256");
  for await (const part of opened?.content(wanted, read.body) ?? read.body) {
    hash?.update(part);
    await write(part);
    onBytes?.(part.length);
  }
  const actual = hash?.digest("hex");
  if (actual === undefined || actual === shown.sha256) return read.report;
  throw new AgaroseError(
    "OBJECT_CORRUPT",
    `${JSON.stringify(shown.key)} decodes to SHA-256 ${actual}, but its manifest has ${shown.sha256}: run \`agarose verify\``,
    { key: shown.key, expected: shown.sha256, actual },
  );
}

/** The bytes of `range`, or of the whole object, as a stream. It errors as `getObject` does, and never ends short. */
export function objectBody(
  manifest: Manifest,
  range: ByteRange | undefined,
  context: ReadParts,
): ReadableStream<Uint8Array> {
  const left = new AbortController();
  const signal = AbortSignal.any([context.signal, left.signal]);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const leave = (): void => left.abort(new AgaroseError("ABORTED", "the reader of the body left"));
  writer.closed.catch(leave);
  getObject(manifest, range, (part) => writer.write(part), { ...context, signal })
    .then(() => writer.close())
    .catch((error: unknown) => writer.abort(error))
    .catch(() => {});
  return readable;
}

/**
 * A read that begins by the first manifest, while a majority of the regions is asked for theirs. None of its bytes is
 * shown before the majority has confirmed that manifest. It saves the shorter of the two waits.
 */
export class EarlyRead {
  #begun:
    { readonly version: string; readonly range: ByteRange | undefined; readonly read: Promise<ObjectRead> } | undefined;
  readonly #stop = new AbortController();

  /** Begins to read the range that `rangeOf` returns. It does nothing where that throws, or the object is encrypted. */
  begin(manifest: Manifest, rangeOf: (manifest: Manifest) => ByteRange | undefined, context: ReadParts): void {
    if (manifest.encryption) return;
    try {
      const asked = rangeOf(manifest);
      const range = manifest.gzip ? storedRangeOf(manifest, asked ?? { start: 0, end: manifest.gzip.bytes }) : asked;
      const signal = AbortSignal.any([context.signal, this.#stop.signal]);
      const read = openObject(manifest, range, { ...context, signal });
      read.catch(() => {});
      this.#begun = { version: nameOf(manifest), range, read };
    } catch {
      // The confirmed manifest has the same fault or none.
    }
  }

  /** The read, if it is of these bytes. Else it is ended. */
  take(manifest: Manifest, range: ByteRange | undefined): Promise<ObjectRead> | undefined {
    const begun = this.#begun;
    const isSame =
      begun?.version === nameOf(manifest) && begun.range?.start === range?.start && begun.range?.end === range?.end;
    if (!isSame) this.stop();
    return isSame ? begun.read : undefined;
  }

  /** Ends what has begun. */
  stop(): void {
    this.#stop.abort(new AgaroseError("ABORTED", "another version was confirmed, or none"));
  }
}

/** Manifests of one upload and version have the same chunks, at the same places. */
function nameOf({ upload, version }: Manifest): string {
  return `${upload} ${version}`;
}

/**
 * Opens a read of the stored bytes `range`, or of all. Its report keeps one request of each outcome, which is enough
 * for `readKind`: a long object takes millions of requests. Throws as `openRead` does.
 */
export async function openObject(
  manifest: Manifest,
  range: ByteRange | undefined,
  { stores, codec, signal, clock, random }: ReadParts,
): Promise<ObjectRead> {
  const latencies = new Map<string, LatencyEstimate>();
  let read: ObjectRead | undefined;
  const onRequest = (record: RequestRecord): void => {
    learn(record, latencies);
    if (read && record.outcome !== "pending") keepFirst(record, read.report);
  };
  read = await openRead(
    { manifest, sources: sourcesOf(manifest, stores, latencies), signal, ...(range && { range }) },
    { codec, clock, sha256: nodeSha256, random },
    {},
    { onRequest },
  );
  return read;
}

/** Removes a request from a report that has another one with its outcome. */
function keepFirst(ended: RequestRecord, { requests }: ReadReport): void {
  const at = requests.indexOf(ended);
  if (at > requests.findIndex(({ outcome }) => outcome === ended.outcome)) requests.splice(at, 1);
}

/** One source per region that holds chunks of the object or its leaf list, with what this read has measured of it. */
function sourcesOf(
  manifest: Manifest,
  stores: readonly Store[],
  latencies: ReadonlyMap<string, LatencyEstimate>,
): RegionSource[] {
  const fetch = storeFetch(stores);
  return [...new Set([...chunkRegions(manifest), ...(manifest.leaves ?? [])])].map((name) => {
    const latency = (): LatencyEstimate => latencies.get(name) ?? LATENCY_UNKNOWN;
    return new RegionSource({ manifest, region: { name, url: storeUrl(name) }, latency, fetch });
  });
}

/** Learns from a request that ended. One that was cancelled late gives a lower bound: its region became slow. */
function learn({ source, outcome, startMs, endMs }: RequestRecord, latencies: Map<string, LatencyEstimate>): void {
  if (endMs === undefined || outcome === "failed") return;
  const known = latencies.get(source);
  const ms = endMs - startMs;
  if (outcome === "cancelled" && ms <= hedgeAfterMs(known ?? LATENCY_UNKNOWN)) return;
  latencies.set(source, observeLatency(known, ms));
}
