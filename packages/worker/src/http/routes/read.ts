/** `GET /v1/read/<key>?version=&generation=&from=&to=&range=`: the bundle of a plan and the chunks cached here. */
import { AgaroseError } from "@agarose/core";
import { shownBytes, storedRangeOf } from "@agarose/core/content";
import {
  BUNDLE_CONTENT_TYPE,
  encodeFrame,
  encodePlan,
  stripeCount,
  type Manifest,
  type Plan,
} from "@agarose/core/format";
import { keyInPath, parseRange, type ByteRange } from "@agarose/core/http";
import { BRIEF_BYTES_MAX, piecesOf, type Piece } from "@agarose/core/read";
import { recoveredChunks } from "@agarose/solver/planner";
import type { Context } from "hono";
import type { CachedStripe } from "../../read/chunk-cache.ts";
import type { KnownManifest } from "../../read/plan.ts";
import { pieceFrames } from "../../read/piece-frames.ts";
import { insteadOfUnknown } from "../../read/origin-object.ts";
import type { MemoryLease } from "../../read/limits/memory-budget.ts";
import { pacedBody } from "../../read/limits/paced-body.ts";
import { shardBytes } from "../../regions/region-latency.ts";
import type { NoteTaken } from "../../popularity/weighed-read.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import { invocationOf, pathOf, type AppEnv } from "../http.ts";
import { planFor } from "./plans.ts";

const PREFIX = "/v1/read/";
/** Stripes that are read ahead of the client, within the room that other reads leave. */
const STRIPES_AHEAD = 3;
const EMPTY = new Uint8Array(0);

/** Answers with the bundle. Throws REQUEST_INVALID for stripes that are none; rejects as `planFor` does. */
export async function read(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const query = parseReadQuery(new URL(c.req.url).searchParams);
  const invocation = invocationOf(c);
  const { headers: asked, signal } = c.req.raw;
  const client = clientAddress(asked);
  const {
    plan: planned,
    manifest,
    oic,
    token,
  } = await planFor(c, invocation, key, query.known).catch(async (error: unknown) => {
    await insteadOfUnknown(error, key, true, { signal, client }, invocation);
    throw new AgaroseError("OBJECT_PLAIN", `${JSON.stringify(key)} is only at the origin: read it by /o/`, { key });
  });
  const headers = {
    "content-type": BUNDLE_CONTENT_TYPE,
    "cache-control": "no-store",
    "x-agarose-oic": oic.toFixed(2),
  };
  // Hono drops the body of HEAD, so there must be none to begin with.
  if (c.req.raw.method === "HEAD") return new Response(null, { headers });
  const { cache, memory, clock, traffic } = invocation.isolate;
  const range = rangeOf(query.range, manifest);
  const pieces = range && piecesOf(manifest, range);
  const from = range ? Math.floor(range.start / manifest.stripeBytes) : query.from;
  const last = range ? Math.floor((range.end - 1) / manifest.stripeBytes) : query.to;
  const stripes = stripeCount(manifest);
  const wanted = Math.max(0, Math.min(last, stripes - 1) - from + 1);
  const onTaken = invocation.weigh(key, manifest.bytes, token);
  const askedBytes = range ? range.end - range.start : (wanted / Math.max(1, stripes)) * manifest.bytes;
  const hasChunks = planned.cached.length > 0 && wanted > 0;
  const pieceBytes = pieces && !query.leaves && range!.end - range!.start <= BRIEF_BYTES_MAX ? lengthOf(pieces) : 0;
  // Where a region is down, k blocks replace one.
  const bytes = Math.max(planned.cached.length * shardBytes(manifest), manifest.k * pieceBytes);
  const lease =
    hasChunks || pieceBytes > 0 ? memory.tryAcquire({ version: manifest.version, bytes, client }) : undefined;
  // Without memory for them, the plan promises no cached chunks: the buckets have them too.
  const plan = { ...planned, ...(hasChunks && !lease && { cached: [], probable: [] }) };
  const recovered = lease ? recoveredChunks(manifest, plan.cached, (await invocation.configuration()).regions) : [];
  const readStripe = async (stripe: number): Promise<CachedStripe> => {
    const found = await cache.read(manifest.version, stripe, plan.cached, invocation.cacheContext);
    traffic.recoveredChunks += found.frames.filter(({ chunk }) => recovered.includes(chunk)).length;
    return found;
  };
  const sendsAll = lease !== undefined && pieceBytes > 0;
  const parts = pieces
    ? pieceParts(
        encodePlan(plan, sendsAll ? manifest.k : 0),
        pieceFrames({ invocation, manifest, pieces, cached: plan.cached, sendsAll, signal }),
        () => onTaken(askedBytes),
      )
    : bundleParts(plan, { from, stripes: lease ? wanted : 0, lease, readStripe, onTaken, askedBytes });
  const next = async (): Promise<Uint8Array | undefined> => (await parts.next()).value;
  return new Response(pacedBody({ next, lease, signal, clock }), { headers });
}

interface Query {
  readonly known: KnownManifest | undefined;
  readonly from: number;
  readonly to: number;
  /** A `Range` header, which says more than the stripes. */
  readonly range: string | null;
  /** Whether a small range wants only what is cached, and the leaves. */
  readonly leaves: boolean;
}

function parseReadQuery(query: URLSearchParams): Query {
  const from = stripeIndex(query, "from") ?? 0;
  const to = stripeIndex(query, "to") ?? Number.MAX_SAFE_INTEGER;
  if (from > to) {
    throw new AgaroseError("REQUEST_INVALID", `stripes from=${from} to=${to} are empty: from must not be above to`, {
      from,
      to,
    });
  }
  const version = query.get("version");
  return {
    known: version === null ? undefined : { version, generation: Number(query.get("generation") ?? Infinity) },
    from,
    to,
    range: query.get("range"),
    leaves: query.get("leaves") === "true",
  };
}

/** The stored bytes that a range asks for; undefined for none, and for one that the object cannot satisfy. */
function rangeOf(range: string | null, manifest: Manifest): ByteRange | undefined {
  const bytes = shownBytes(manifest);
  try {
    const asked = bytes > 0 ? parseRange(range, bytes) : undefined;
    return asked && storedRangeOf(manifest, asked);
  } catch {
    return undefined;
  }
}

function stripeIndex(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new AgaroseError(
    "REQUEST_INVALID",
    `${name}=${text.slice(0, 50)} is not the index of a stripe: use 0, 1, 2, …`,
    {
      [name]: text.slice(0, 50),
    },
  );
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { stripe }) => sum + stripe.shardBytes, 0);
}

/** Yields the parts of the bundle of a small range. It calls `onTaken` when the client has taken all of it. */
async function* pieceParts(
  plan: Uint8Array,
  frames: AsyncGenerator<Uint8Array>,
  onTaken: () => void,
): AsyncGenerator<Uint8Array, undefined> {
  // The regions are asked while the plan is on its way.
  const ahead = frames.next();
  // A client that leaves never awaits it.
  ahead.catch(() => {});
  yield plan;
  for (let step = await ahead; !step.done; step = await frames.next()) yield step.value;
  onTaken();
  yield encodeFrame("end", 0, 0, EMPTY);
}

/** The rest of a bundle after its plan. */
interface BundleStripes {
  readonly from: number;
  /** How many stripes it brings cached chunks of. */
  readonly stripes: number;
  readonly lease: MemoryLease | undefined;
  readonly readStripe: (stripe: number) => Promise<CachedStripe>;
  /**
   * Called with the share of `askedBytes` that each stripe has, once the client has taken that. Without cached chunks,
   * the client takes the plan and asks the buckets, which no PoP sees: then it is what the client asks for.
   */
  readonly onTaken: NoteTaken;
  readonly askedBytes: number;
}

/** Yields the parts of a bundle: the plan, then stripe after stripe, then the end frame. */
async function* bundleParts(
  plan: Plan,
  { from, stripes, lease, readStripe, onTaken, askedBytes }: BundleStripes,
): AsyncGenerator<Uint8Array, undefined> {
  const end = from + stripes;
  const ahead: Promise<CachedStripe>[] = [];
  let next = from;
  // The stripe that is being sent counts too, until the client pulls the next one.
  const readAhead = (sending: 0 | 1): void => {
    const most = Math.min(STRIPES_AHEAD, (lease?.units() ?? 0) - sending);
    while (ahead.length < most && next < end) ahead.push(readStripe(next++));
  };
  readAhead(0);
  yield encodePlan(plan);
  // The consumer pulls the next frame when it has read everything before.
  if (stripes === 0) onTaken(askedBytes);
  for (let stripe = from; ; stripe++) {
    if (stripe > from) onTaken(askedBytes / stripes);
    readAhead(0);
    const reading = ahead.shift();
    if (!reading) break;
    const value = await reading;
    readAhead(1);
    yield* partsOf(value, stripe, plan.cached);
  }
  yield encodeFrame("end", 0, 0, EMPTY);
}

/**
 * Returns a stored value that holds the promised frames as it is; else the promised frames, with a miss for each gap.
 */
function partsOf({ value, frames }: CachedStripe, stripe: number, promised: readonly number[]): Uint8Array[] {
  const exact = frames.length === promised.length && frames.every((frame, i) => frame.chunk === promised[i]);
  if (exact) return [value];
  return promised.map((chunk) => {
    const frame = frames.find((candidate) => candidate.chunk === chunk);
    return frame ? encodeFrame("chunk", stripe, chunk, frame.payload) : encodeFrame("miss", stripe, chunk, EMPTY);
  });
}
