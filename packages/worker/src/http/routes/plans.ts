/**
 * The plan of one key, and `GET /v1/plans?key=&key=`: the plans of several objects in one answer, for a page that knows
 * what it will need. Each readable key gets a plan frame, whose stripe field is the key's place in the request, as soon
 * as its plan is known; then comes the end frame. Without `bodies=1` the route reads nothing from the chunk cache, and
 * it counts no requests. With it, small objects follow their plans, from the cache or from the buckets.
 */
import {
  AgaroseError,
  BUNDLE_CONTENT_TYPE,
  encodeFrame,
  parseKey,
  stripeCount,
  toAgaroseError,
  type Manifest,
} from "@agarose/core";
import type { Context } from "hono";
import type { Invocation } from "../../read/invocation.ts";
import { pacedBody } from "../../read/limits/paced-body.ts";
import { readDataShards } from "../../read/object-read.ts";
import { planOf, type ServedPlan } from "../../read/plan.ts";
import { invocationOf, checkReader, type AppEnv } from "../http.ts";
import { telemetryToken } from "./telemetry.ts";

/**
 * Each key takes two of an invocation's 1,000 Cache API calls, and a key that is not found at once takes several GETs.
 */
const KEYS_MAX = 100;
/** More lookups would wait inside the runtime for one of six connections, and the Cache API has 200 ms. */
const KEYS_AT_ONCE = 6;
/** After so many keys without an object the batch ends: each costs a request to every region. */
const MISSES_MAX = 10;
/** The manifest of a larger plan comes with the read of its key. */
const PLAN_BYTES_MAX = 64 * 1024;
/** Plans and bodies of one batch together. */
const BATCH_BYTES_MAX = 2 * 1024 * 1024;
/** A larger object gains less from the saved request than it costs the others of its batch to wait for it. */
const BODY_BYTES_MAX = 128 * 1024;
const EMPTY = new Uint8Array(0);

/**
 * Resolves to the plan for the client that asks. Rejects with FORBIDDEN where it may not read the key, and as `planOf`
 * does.
 *
 * @param knownVersion the version that the client has a manifest of: the plan then leaves its manifest out.
 */
export async function planFor(
  c: Context<AppEnv>,
  invocation: Invocation,
  key: string,
  knownVersion?: string,
): Promise<ServedPlan> {
  const isPrivate = await checkReader(c, key);
  const served = await planOf(invocation, key, knownVersion);
  const token = await telemetryToken(invocation, c.req.raw.headers);
  return { ...served, plan: { ...served.plan, ...(isPrivate && { private: true }), ...token } };
}

/** Answers with a bundle of plans. Throws REQUEST_INVALID or KEY_INVALID. */
export function plans(c: Context<AppEnv>): Response {
  const { searchParams } = new URL(c.req.url);
  const keys = searchParams.getAll("key");
  if (keys.length === 0 || keys.length > KEYS_MAX) {
    throw new AgaroseError("REQUEST_INVALID", `${keys.length} keys: give ?key=… 1 to ${KEYS_MAX} times`, {
      keys: keys.length,
      max: KEYS_MAX,
    });
  }
  if (new Set(keys).size < keys.length) throw new AgaroseError("REQUEST_INVALID", "give each key once");
  for (const key of keys) parseKey(key);
  const headers = { "content-type": BUNDLE_CONTENT_TYPE, "cache-control": "no-store" };
  if (c.req.raw.method === "HEAD") return new Response(null, { headers });
  const invocation = invocationOf(c);
  const { signal } = c.req.raw;
  const body =
    searchParams.get("bodies") === "1"
      ? (key: string, manifest: Manifest) => {
          invocation.count(key);
          return readDataShards(invocation, manifest, signal);
        }
      : undefined;
  const next = planFrames(keys, (key) => planFor(c, invocation, key), body);
  return new Response(pacedBody({ next, lease: undefined, signal, clock: invocation.isolate.clock }), { headers });
}

/** What a key adds to the batch. */
interface KeyFrames {
  readonly index: number;
  readonly frames: readonly Uint8Array[];
  /** What is still to come for the key. */
  readonly rest?: Promise<KeyFrames> | undefined;
}

/**
 * Returns a function for the frames of a batch, each made when the client is ready for it; then the end frame.
 *
 * @param body reads the data shards of a small object; undefined for plans alone.
 */
function planFrames(
  keys: readonly string[],
  plan: (key: string) => Promise<ServedPlan>,
  body: ((key: string, manifest: Manifest) => Promise<Uint8Array[]>) | undefined,
): () => Promise<Uint8Array | undefined> {
  const waiting = [...keys.entries()];
  const inFlight = new Map<number, Promise<KeyFrames>>();
  let looking = 0;
  const ready: Uint8Array[] = [];
  let bytesLeft = BATCH_BYTES_MAX;
  const absent: string[] = [];
  let hasEnded = false;
  const framesOf = async (index: number, key: string): Promise<KeyFrames> => {
    try {
      const { plan: planned, manifest } = await plan(key);
      const isSent = body !== undefined && hasSmallBody(manifest) && manifest.bytes <= bytesLeft;
      if (isSent) bytesLeft -= manifest.bytes;
      const chunks = Array.from({ length: isSent ? manifest.k : 0 }, (_, chunk) => chunk);
      const text = encode(isSent ? { ...planned, cached: chunks, delta: 0 } : planned);
      const frame = encodeFrame("plan", index, chunks.length, text);
      // A plan without its body is asked for once more, so its size must not keep it from coming with one.
      if (frame.length > bytesLeft || (text.length > PLAN_BYTES_MAX && !isSent)) return { index, frames: [] };
      bytesLeft -= frame.length;
      return { index, frames: [frame], rest: isSent ? bodyOf(index, key, manifest, body) : undefined };
    } catch (error) {
      // A read of the key reports its error, which must not keep the other keys from their plans.
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") absent.push(key);
      return { index, frames: [] };
    }
  };
  return async () => {
    for (;;) {
      if (ready.length > 0) return ready.shift();
      while (looking < KEYS_AT_ONCE && waiting.length > 0 && absent.length < MISSES_MAX) {
        const [index, key] = waiting.shift()!;
        looking++;
        inFlight.set(
          index,
          framesOf(index, key).finally(() => looking--),
        );
      }
      if (hasEnded) return undefined;
      if (inFlight.size === 0) {
        hasEnded = true;
        return encodeFrame("end", 0, 0, EMPTY);
      }
      const { index, frames, rest } = await Promise.race(inFlight.values());
      inFlight.delete(index);
      if (rest) inFlight.set(index, rest);
      ready.push(...frames);
    }
  };
}

/** Whether an object may follow its plan: one stripe in chunks, short enough. */
function hasSmallBody(manifest: Manifest): boolean {
  return stripeCount(manifest) === 1 && manifest.inline === undefined && manifest.bytes <= BODY_BYTES_MAX;
}

/** The data shards as frames; misses when they cannot be read, so that the client asks the buckets itself. */
async function bodyOf(
  index: number,
  key: string,
  manifest: Manifest,
  body: (key: string, manifest: Manifest) => Promise<Uint8Array[]>,
): Promise<KeyFrames> {
  try {
    const shards = await body(key, manifest);
    return { index, frames: shards.map((shard, chunk) => encodeFrame("chunk", index, chunk, shard)) };
  } catch {
    const chunks = Array.from({ length: manifest.k }, (_, chunk) => chunk);
    return { index, frames: chunks.map((chunk) => encodeFrame("miss", index, chunk, EMPTY)) };
  }
}

function encode(plan: ServedPlan["plan"]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(plan));
}
