/**
 * Reads one object with core's reader, over signed requests to the buckets.
 */
import { createHash } from "node:crypto";
import {
  AgaroseError,
  LATENCY_UNKNOWN,
  observeLatency,
  openRead,
  RegionSource,
  systemClock,
  type ByteRange,
  type Clock,
  type Codec,
  type LatencyEstimate,
  type Manifest,
  type ObjectRead,
  type Random,
  type ReadReport,
} from "@agarose/core";
import { nodeSha256 } from "./sha256.ts";
import type { Store } from "../store/store.ts";
import { storeFetch, storeUrl } from "../store/stores.ts";

/** What `getObject` reads with. */
export interface GetContext {
  readonly stores: readonly Store[];
  readonly codec: () => Promise<Codec>;
  readonly signal: AbortSignal;
  readonly onBytes?: (bytes: number) => void;
  /** Timers of hedged requests. Default: the system's. */
  readonly clock?: Clock;
  /** Spreads requests over sources that are equally near. Default: `Math.random`. */
  readonly random?: Random;
}

/**
 * Passes the bytes of `range`, or of the whole object, to `write` in order. The SHA-256 of a whole object is checked at
 * the end, so what was written counts only once this resolves.
 *
 * @throws NOT_ENOUGH_CHUNKS, READ_TIMEOUT, OBJECT_CORRUPT or ABORTED.
 */
export async function getObject(
  manifest: Manifest,
  range: ByteRange | undefined,
  write: (part: Uint8Array) => Promise<unknown>,
  context: GetContext,
): Promise<ReadReport> {
  const read = await openObject(manifest, range, context);
  const hash = range ? undefined : createHash("sha256");
  for await (const part of read.body) {
    hash?.update(part);
    await write(part);
    context.onBytes?.(part.length);
  }
  const actual = hash?.digest("hex");
  if (actual === undefined || actual === manifest.sha256) return read.report;
  throw new AgaroseError(
    "OBJECT_CORRUPT",
    `${JSON.stringify(manifest.key)} decodes to SHA-256 ${actual}, its manifest says ${manifest.sha256}: run \`agarose verify\``,
    { key: manifest.key, expected: manifest.sha256, actual },
  );
}

/** Opens a read of `range`, or of the whole object. Throws as `openRead` does. */
export function openObject(
  manifest: Manifest,
  range: ByteRange | undefined,
  { stores, codec, signal, clock = systemClock, random = Math.random }: GetContext,
): Promise<ObjectRead> {
  return openRead({
    manifest,
    sources: sourcesOf(manifest, stores, clock),
    codec,
    clock,
    sha256: nodeSha256,
    random,
    signal,
    ...(range && { range }),
  });
}

/** One source per region that holds chunks of the object. Each learns its latency during the read. */
function sourcesOf(manifest: Manifest, stores: readonly Store[], clock: Clock): RegionSource[] {
  const fetch = storeFetch(stores);
  return [...new Set(manifest.placement)].map((name) => {
    let latency: LatencyEstimate | undefined;
    return new RegionSource({
      manifest,
      region: { name, url: storeUrl(name) },
      latency: () => latency ?? LATENCY_UNKNOWN,
      fetch,
      clock,
      onLatency: (ms) => {
        if (Number.isFinite(ms)) latency = observeLatency(latency, ms);
      },
    });
  });
}
