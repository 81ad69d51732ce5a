/** Reads and decodes an object at the edge, for clients without a service worker. */
import { AgaroseError, systemSha256 } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import type { OpenedObject } from "@agarose/core/content";
import { CHUNKS_MAX, stripeShape, type Manifest } from "@agarose/core/format";
import type { ByteRange, ObjectAnswer } from "@agarose/core/http";
import {
  isSmall,
  openRead,
  piecesOf,
  readKind,
  serverTiming,
  wholeName,
  type ObjectRead,
  type Piece,
  type RequestRecord,
  type StripeData,
  type StripeSharing,
} from "@agarose/core/read";
import { RegionSource, type ChunkSource } from "@agarose/core/sources";
import { recoveredChunks } from "@agarose/solver/planner";
import { notePeer } from "../peers/peer-reading.ts";
import { log } from "../runtime/log.ts";
import { traceFields } from "../runtime/trace.ts";
import type { NoteTaken } from "../popularity/weighed-read.ts";
import { latencyOf, shardBytes } from "../regions/region-latency.ts";
import type { Configuration } from "../cache/configuration.ts";
import { EdgeSource } from "./edge-source.ts";
import type { Invocation } from "../runtime/invocation.ts";
import { keepAlive, pacedBody } from "./limits/paced-body.ts";
import { costOf, readCost, withinReach, type ReadCost } from "./limits/subrequest-budget.ts";

/** Two stripes of the default size, within the room that the other reads of this isolate leave. */
const WINDOW_BYTES = 8 * 1024 * 1024;
/** Memory of a stripe while it is read, as a multiple of its data: more chunks than k, and the decoded stripe. */
const STRIPE_MEMORY = 1.5;
/** Objects of tiny stripes must not queue thousands of requests. */
const WINDOW_STRIPES = 16;
/** How long the end of a read may take to abort its requests. */
const CANCEL_MS = 1_000;

/** The client that a read is for. */
export interface ClientOfRead {
  /** The platform aborts it when the client leaves. */
  readonly signal: AbortSignal;
  /** The client's address, or undefined where the platform does not report one. */
  readonly client: string | undefined;
  /** Called with what it has taken of the object. */
  readonly onTaken: NoteTaken;
}

/**
 * Resolves to the response when the first stripe has been read, so that a read which cannot succeed gets an error
 * status. Rejects with NOT_ENOUGH_CHUNKS, OBJECT_TOO_LARGE, BUSY or ABORTED.
 *
 * @param wanted status, headers and range of the answer; the range must not be empty.
 * @param opened decrypts or inflates what is stored: `wanted` has a range of the content.
 */
export async function readObject(
  invocation: Invocation,
  manifest: Manifest,
  wanted: ObjectAnswer,
  { signal, client, onTaken }: ClientOfRead,
  opened?: OpenedObject,
): Promise<Response> {
  const { clock, memory, settings, traffic } = invocation.isolate;
  const placed = await locate(invocation, manifest);
  // The stored bytes are hardly more than the content: the subrequests that are omitted pay for the difference.
  const { status, headers, range } = withinReach(
    wanted,
    opened?.shown ?? manifest,
    placed.cost,
    settings.subrequestsMax,
  );
  const stored = opened?.stored(range!) ?? range!;
  const pieces = piecesOf(manifest, stored);
  const pieceBytes = pieces?.reduce((sum, { stripe }) => sum + manifest.k * stripe.shardBytes, 0);
  const bytes = STRIPE_MEMORY * (pieceBytes ?? Math.min(manifest.stripeBytes, manifest.bytes));
  const lease = await memory.acquire({ version: manifest.version, bytes, client }, signal);
  const opening = open(invocation, manifest, placed, { range: stored, units: () => lease.units(), signal });
  const read = await keepAlive(lease, clock, opening).catch((error: unknown) => {
    lease.release();
    throw error;
  });
  traffic.opened(read.report);
  const reader = (opened?.content(range!, read.body) ?? read.body).getReader();
  const body = pacedBody({
    next: async () => (await reader.read()).value,
    length: range!.end - range!.start,
    lease,
    signal,
    clock,
    onTaken,
    onEnd(error) {
      traffic.decodedShards += read.report.decoding.shards;
      invocation.waitUntil(orUndefined(reader.cancel(error), CANCEL_MS, clock));
      // The status is sent, so the only way to report the error is to cut the body off. A client that left is not a
      // failure.
      if (error instanceof AgaroseError && error.code !== "ABORTED") {
        const { key, version } = manifest;
        log("warn", "read cut off", { key, version, error, ...traceFields(invocation.trace) });
      }
    },
  });
  return new Response(ofFixedLength(body, range!.end - range!.start, invocation), {
    status,
    headers: {
      ...headers,
      "server-timing": serverTiming(read.report).join(", "),
      "x-agarose-read": readKind(read.report),
    },
  });
}

/** At Cloudflare, only such a stream makes an answer with a length. Other hosts take it from the header. */
export function ofFixedLength(
  body: ReadableStream<Uint8Array>,
  length: number,
  { waitUntil }: Invocation,
): ReadableStream<Uint8Array> {
  if (typeof FixedLengthStream === "undefined") return body;
  const fixed = new FixedLengthStream(length);
  waitUntil(body.pipeTo(fixed.writable).catch(() => {}));
  return fixed.readable;
}

/**
 * Resolves to the data shards of an object of one stripe, as its reader would decode them. Rejects as `openRead` does.
 * For objects so small that they need no memory lease: the isolate remembers them (`isSmall`). It
 * hedges, but starts with k requests: others of its batch wait for the connections.
 */
export async function readDataShards(
  invocation: Invocation,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  const bytes = stripeShape(manifest, 0).shardBytes;
  const placed = await locate(invocation, manifest);
  const range = { start: 0, end: manifest.bytes };
  const read = await open(invocation, manifest, placed, { range, units: () => 1, delta: 0, signal });
  invocation.isolate.traffic.opened(read.report);
  const whole = await padded(read, manifest.k * bytes);
  return Array.from({ length: manifest.k }, (_, i) => whole.subarray(i * bytes, (i + 1) * bytes));
}

/** Resolves to the verified blocks of a piece, for which the caller has a lease. Rejects as `openRead` does. */
export async function readPiece(
  invocation: Invocation,
  manifest: Manifest,
  { start, stripe }: Piece,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const placed = await locate(invocation, manifest);
  const range = { start, end: Math.min(start + stripe.shardBytes, stripe.start + stripe.dataBytes) };
  const read = await open(invocation, manifest, placed, { range, units: () => 1, signal });
  invocation.isolate.traffic.opened(read.report);
  return padded(read, stripe.shardBytes);
}

/** The body of a read, and behind it the zeros that pad a stripe. */
async function padded({ body }: ObjectRead, bytes: number): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes);
  whole.set(new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer()));
  return whole;
}

/** Where the chunks of an object are. */
interface Located {
  readonly configuration: Configuration;
  readonly cached: readonly number[];
  readonly peers: readonly ChunkSource[];
  readonly cost: ReadCost;
}

async function locate(invocation: Invocation, manifest: Manifest): Promise<Located> {
  const configuration = await invocation.configuration();
  const { chunks: cached } = await invocation.cachedChunks(manifest);
  const peers = await invocation.peerSources(manifest, cached);
  const rows = Array.from({ length: peers.length > 0 ? CHUNKS_MAX : 0 }, (_, chunk) => chunk);
  const atPeers = rows.filter((chunk) => peers.some((peer) => peer.has(0, chunk)));
  const { delta } = invocation.isolate.settings;
  const cost = readCost(manifest, { delta, cached: cached.length, atPeers: atPeers.length });
  return { configuration, cached, peers, cost };
}

async function open(
  invocation: Invocation,
  manifest: Manifest,
  { configuration, cached, peers, cost }: Located,
  {
    range,
    units,
    delta,
    signal,
  }: { readonly range: ByteRange; readonly units: () => number; readonly delta?: number; readonly signal: AbortSignal },
): Promise<ObjectRead> {
  const { settings, blocks, cache, clock, codec, coalescing, fetched, traffic } = invocation.isolate;
  const { version } = manifest;
  // The chunk cache remembers what it holds: kept as blocks, too, it would take the room of what only they can keep.
  const isInCache = isSmall(manifest) && cached.length >= manifest.k;
  const end = Math.ceil(range.end / manifest.stripeBytes);
  const regions = popRegionSources(invocation, manifest, configuration);
  const recovered = recoveredChunks(manifest, cached, configuration.regions);
  const edge = new EdgeSource({
    pop: settings.pop,
    version,
    chunks: cached,
    cache,
    context: invocation.cacheContext,
  });
  const share: StripeSharing = async (stripe, readOwn, ofStripe) => {
    const known = cache.verified(version, stripe, cached);
    if (known) {
      traffic.recoveredChunks += recovered.filter((chunk) => chunk < manifest.k).length;
      return fromMemory(known, { stripe, source: settings.pop, nowMs: clock.now() });
    }
    const read = async (shared: AbortSignal): Promise<StripeData> => {
      const data = await readOwn(shared);
      const isFetched = data.made?.().some(({ kind, outcome }) => kind === "region" && outcome === "used");
      if (isFetched) fetched.note(version, stripe, data.data, invocation.cacheContext);
      return data;
    };
    // A read that leads some stripes and follows at others repeats its GETs each time, so it must be able to pay for
    // them.
    const isAffordable = invocation.subrequests.allows(cost.span + costOf(cost, end - stripe));
    const own = await (isAffordable
      ? coalescing.read({ version, stripe, read, signal: ofStripe, waitUntil: invocation.waitUntil })
      : read(ofStripe));
    cache.noteVerified(version, stripe, cached, own.data);
    return own;
  };
  const policy = {
    delta: delta ?? settings.delta,
    windowBytes: () => Math.min(WINDOW_BYTES, Math.min(WINDOW_STRIPES, units()) * manifest.stripeBytes),
  };
  const kept = isInCache && !blocks.holds([wholeName(manifest)]) ? {} : { memory: blocks };
  return openRead(
    { manifest, range, sources: [edge, ...peers, ...regions], signal, share },
    { codec, clock, sha256: systemSha256, random: Math.random, ...kept },
    policy,
    {
      onRequest(record) {
        const { kind, outcome, chunk } = record;
        if (kind === "edge" && outcome === "used" && recovered.includes(chunk)) traffic.recoveredChunks++;
        noteRequest(record, invocation, version, cached);
      },
    },
  );
}

/** A stripe whose data shards the chunk cache has in memory, verified. */
function fromMemory(
  data: readonly Uint8Array[],
  { stripe, source, nowMs }: { readonly stripe: number; readonly source: string; readonly nowMs: number },
): StripeData {
  const record = { stripe, source, kind: "edge", startMs: nowMs, endMs: nowMs, outcome: "used" } as const;
  const made = data.map(({ length }, chunk): RequestRecord => ({ ...record, chunk, bytes: length }));
  return { data, made: () => made, decoding: { ms: 0, shards: 0 } };
}

/** The buckets as sources, in the PoP's own order. */
export function popRegionSources(
  { isolate, fetch }: Invocation,
  manifest: Manifest,
  configuration: Configuration,
): RegionSource[] {
  const { settings, breakers } = isolate;
  return settings.regions.map(
    ({ name, popUrl }) =>
      new RegionSource({
        manifest,
        region: { name, url: popUrl },
        latency: () => latencyOf(configuration.regions, name, breakers.isOpen(name), shardBytes(manifest)),
        fetch: breakers.guard(name, fetch),
      }),
  );
}

function noteRequest(
  record: RequestRecord,
  { isolate, cacheContext, waitUntil }: Invocation,
  version: string,
  cached: readonly number[],
): void {
  const { kind, source, stripe, outcome, error, bytes, startMs, endMs } = record;
  const { breakers, traffic, counter, cache } = isolate;
  notePeer(record, breakers);
  if (kind === "region" && outcome !== "pending") traffic.bucketRequest(source, outcome);
  if (kind === "peer" && outcome !== "pending") traffic.peerRequest(source, outcome);
  if (kind === "region" && endMs !== undefined && (outcome === "used" || outcome === "unused")) {
    counter.observe({ region: source, ms: Math.max(1, endMs - startMs), bytes }, waitUntil);
  }
  if (kind !== "edge" || error !== "CHUNK_CORRUPT") return;
  waitUntil(cache.reportCorrupt(version, stripe, cached, cacheContext));
}
