/**
 * The plan of one key, and `GET /v1/plans?key=&key=`: the plans of several objects in one answer, for a page that knows
 * what it will need. Each readable key gets a plan frame, whose stripe field is the key's place in the request, as soon
 * as its plan is known; then comes the end frame. Without `bodies=1` the route reads nothing from the chunk cache, and
 * it counts no requests. With it, small objects follow their plans, from the cache or from the buckets.
 *
 * A batch takes a lease of the memory for reads, and ends when its client stalls. Without room for bodies it has plans
 * alone; without room for plans it is empty.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import type { Secrets } from "@agarose/core/encryption";
import {
  BUNDLE_CONTENT_TYPE,
  encodeFrame,
  encodePlan,
  FRAME_HEADER_BYTES,
  parseKey,
  stripeShape,
  toBase64,
  type Manifest,
} from "@agarose/core/format";
import { isSmall, SMALL_BYTES_MAX } from "@agarose/core/read";
import type { Context } from "hono";
import type { Invocation } from "../../runtime/invocation.ts";
import type { MemoryBudget, MemoryLease } from "../../read/limits/memory-budget.ts";
import { pacedBody } from "../../read/limits/paced-body.ts";
import { readDataShards } from "../../read/object-read.ts";
import { planOf, type KnownManifest, type ServedPlan } from "../../read/plan.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import { invocationOf, checkReader, type AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";

/**
 * Each key takes two of an invocation's 1,000 Cache API calls, and a key that is not found at once takes several GETs.
 */
const PLANNED_KEYS_MAX = 100;
/** More lookups would wait inside the runtime for one of six connections, and the Cache API has 200 ms. */
const KEYS_AT_ONCE = 6;
/** After so many keys without an object the batch ends: each costs a request to every region. */
const MISSES_MAX = 10;
/** The manifest of a larger plan comes with the read of its key. */
const PLAN_BYTES_MAX = 64 * 1024;
/** Plans and bodies of one batch together. */
const BATCH_BYTES_MAX = 2 * 1024 * 1024;
/** Memory of a body while it is read, as a multiple of its bytes: chunks, the decoded object, and its frames. */
const BODY_MEMORY = 2;
/** An object that takes more GETs is read faster by the client: a batch has six connections to the buckets. */
const BODY_GETS_MAX = 4;
const EMPTY = new Uint8Array(0);

interface ClientPlan extends ServedPlan {
  /** By which it may read a private key. */
  readonly token: string | undefined;
}

/**
 * Resolves to the plan for the client that asks. Rejects with FORBIDDEN where it may not read the key, and as `planOf`
 * does.
 */
export async function planFor(
  c: Context<AppEnv>,
  invocation: Invocation,
  key: string,
  known?: KnownManifest,
): Promise<ClientPlan> {
  const token = await checkReader(c, key);
  const served = await planOf(invocation, key, known);
  const secret = token !== undefined && {
    private: true,
    ...(await dataKeyIn(served.manifest, settingsOf(c.env).access.secrets)),
  };
  return { ...served, plan: { ...served.plan, ...secret }, token };
}

/** The data key of an encrypted object, where the PoP has its secret: else the client may have it. */
async function dataKeyIn(manifest: Manifest, secrets: Secrets): Promise<{ readonly dataKey?: string }> {
  const dataKey = manifest.encryption && (await secrets.dataKeyOf(manifest).catch(() => undefined));
  return dataKey ? { dataKey: toBase64(dataKey) } : {};
}

/** Answers with a bundle of plans. Throws REQUEST_INVALID or KEY_INVALID. */
export function plans(c: Context<AppEnv>): Response {
  const { searchParams } = new URL(c.req.url);
  const keys = searchParams.getAll("key");
  if (keys.length === 0 || keys.length > PLANNED_KEYS_MAX) {
    throw new AgaroseError("REQUEST_INVALID", `${keys.length} keys: give ?key=… 1 to ${PLANNED_KEYS_MAX} times`, {
      keys: keys.length,
      max: PLANNED_KEYS_MAX,
    });
  }
  if (new Set(keys).size < keys.length) throw new AgaroseError("REQUEST_INVALID", "give each key once");
  for (const key of keys) parseKey(key);
  const headers = { "content-type": BUNDLE_CONTENT_TYPE, "cache-control": "no-store" };
  if (c.req.raw.method === "HEAD") return new Response(null, { headers });
  const invocation = invocationOf(c);
  const { headers: asked, signal } = c.req.raw;
  const { clock, memory } = invocation.isolate;
  const wantsBodies = searchParams.get("bodies") === "1";
  const { lease, hasBodies } = leaseOf(memory, keys.length, wantsBodies, clientAddress(asked));
  const body = hasBodies ? (manifest: Manifest) => readDataShards(invocation, manifest, signal) : undefined;
  const count = wantsBodies ? (key: string, token?: string) => invocation.count(key, token) : undefined;
  const frames = planFrames(lease ? keys : [], { plan: (key) => planFor(c, invocation, key), body, count });
  const next = async (): Promise<Uint8Array | undefined> => (await frames.next()).value;
  return new Response(pacedBody({ next, lease, signal, clock }), { headers });
}

/** Returns the lease of a batch, and whether it covers bodies. A batch shares nothing with other reads. */
function leaseOf(
  memory: MemoryBudget,
  keys: number,
  wantsBodies: boolean,
  client: string | undefined,
): { readonly lease: MemoryLease | undefined; readonly hasBodies: boolean } {
  const bodies = BODY_MEMORY * Math.min(BATCH_BYTES_MAX, keys * SMALL_BYTES_MAX);
  const withBodies = wantsBodies ? memory.tryAcquire({ bytes: bodies, client }) : undefined;
  if (withBodies) return { lease: withBodies, hasBodies: true };
  const bytes = Math.min(KEYS_AT_ONCE, keys) * PLAN_BYTES_MAX;
  return { lease: memory.tryAcquire({ bytes, client }), hasBodies: false };
}

interface KeyFrames {
  readonly index: number;
  readonly frames: readonly Uint8Array[];
  /** Counts a read of the key, when the client is ready for these frames. */
  readonly count?: (() => void) | undefined;
  /** The later frames of the key. */
  readonly rest?: Promise<KeyFrames> | undefined;
}

interface BatchPorts {
  readonly plan: (key: string) => Promise<ClientPlan>;
  /** Reads the data shards of a small object; undefined for plans only. */
  readonly body: ((manifest: Manifest) => Promise<Uint8Array[]>) | undefined;
  /** Counts a read of a key; undefined if the client only looks ahead. */
  readonly count: ((key: string, token?: string) => void) | undefined;
}

/** Yields the frames of a batch, each made when the client is ready for it; then the end frame. */
async function* planFrames(
  keys: readonly string[],
  { plan, body, count }: BatchPorts,
): AsyncGenerator<Uint8Array, undefined> {
  const waiting = [...keys.entries()];
  const inFlight = new Map<number, Promise<KeyFrames>>();
  let looking = 0;
  let bytesLeft = BATCH_BYTES_MAX;
  const absent: string[] = [];
  let isFirst = true;
  const framesOf = async (index: number, key: string): Promise<KeyFrames> => {
    try {
      const { plan: planned, manifest, token } = await plan(key);
      const { cached } = planned;
      const bodyBytes = smallBodyBytes(manifest, cached.length);
      const isSent = body !== undefined && bodyBytes <= bytesLeft;
      // A client asks once more for what the plan says is cached, and that request counts.
      const counts = isSent || cached.length === 0 ? () => count?.(key, token) : undefined;
      if (isSent) bytesLeft -= bodyBytes;
      // Nothing of an inline object is read from a region, and the client knows them by another plan.
      const regions = manifest.inline && !isFirst ? [] : planned.regions;
      isFirst = false;
      const frame = encodePlan({ ...planned, regions }, isSent ? manifest.k : 0, index);
      // A plan without its body is asked for once more, so its size must not keep it from coming with one.
      if (frame.length > bytesLeft || (frame.length > PLAN_BYTES_MAX && !isSent)) return { index, frames: [] };
      bytesLeft -= frame.length;
      return {
        index,
        frames: [frame],
        ...(isSent ? { rest: bodyOf(index, manifest, body, counts) } : { count: counts }),
      };
    } catch (error) {
      // A read of the key reports its error, which must not keep the other keys from their plans.
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") absent.push(key);
      return { index, frames: [] };
    }
  };
  for (;;) {
    while (looking < KEYS_AT_ONCE && waiting.length > 0 && absent.length < MISSES_MAX) {
      const [index, key] = waiting.shift()!;
      looking++;
      inFlight.set(
        index,
        framesOf(index, key).finally(() => looking--),
      );
    }
    if (inFlight.size === 0) break;
    const { index, frames, count: counts, rest } = await Promise.race(inFlight.values());
    inFlight.delete(index);
    if (rest) inFlight.set(index, rest);
    counts?.();
    yield* frames;
  }
  yield encodeFrame("end", 0, 0, EMPTY);
}

/**
 * The frames of an object that may follow its plan, in bytes. Infinite for one that is long, not in chunks, or takes
 * many GETs, given how many of its chunks are cached.
 */
function smallBodyBytes(manifest: Manifest, cached: number): number {
  const { k, bytes } = manifest;
  // A larger object gains less from the saved request than it costs the others of its batch to wait for it.
  if (!isSmall(manifest) || bytes === 0 || k - cached > BODY_GETS_MAX) return Number.POSITIVE_INFINITY;
  return k * (FRAME_HEADER_BYTES + stripeShape(manifest, 0).shardBytes);
}

/** The data shards as frames; misses when they cannot be read, so that the client asks the buckets itself. */
async function bodyOf(
  index: number,
  manifest: Manifest,
  body: (manifest: Manifest) => Promise<Uint8Array[]>,
  count: (() => void) | undefined,
): Promise<KeyFrames> {
  try {
    const shards = await body(manifest);
    return { index, count, frames: shards.map((shard, chunk) => encodeFrame("chunk", index, chunk, shard)) };
  } catch {
    const chunks = Array.from({ length: manifest.k }, (_, chunk) => chunk);
    return { index, count, frames: chunks.map((chunk) => encodeFrame("miss", index, chunk, EMPTY)) };
  }
}
