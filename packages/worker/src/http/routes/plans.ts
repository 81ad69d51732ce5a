/**
 * The plan of one key, and `GET /v1/plans?key=&key=`: the plans of several objects in one answer, for a page that knows
 * what it will need. Each readable key gets a plan frame, whose stripe field is the key's place in the request, as soon
 * as its plan is known; then comes the end frame. The route reads nothing from the chunk cache, and it counts no
 * requests.
 */
import { AgaroseError, BUNDLE_CONTENT_TYPE, encodeFrame, parseKey, toAgaroseError } from "@agarose/core";
import type { Context } from "hono";
import type { Invocation } from "../../read/invocation.ts";
import { pacedBody } from "../../read/limits/paced-body.ts";
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
/** Plans of one batch together. */
const BATCH_BYTES_MAX = 2 * 1024 * 1024;
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
  const keys = new URL(c.req.url).searchParams.getAll("key");
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
  const next = planFrames(keys, (key) => planFor(c, invocation, key));
  const { signal } = c.req.raw;
  return new Response(pacedBody({ next, lease: undefined, signal, clock: invocation.isolate.clock }), { headers });
}

/** Returns a function for the frames of a batch, each made when the client is ready for it; then the end frame. */
function planFrames(
  keys: readonly string[],
  plan: (key: string) => Promise<ServedPlan>,
): () => Promise<Uint8Array | undefined> {
  const waiting = [...keys.entries()];
  const inFlight = new Map<number, Promise<{ index: number; frame: Uint8Array | undefined }>>();
  let bytesLeft = BATCH_BYTES_MAX;
  const absent: string[] = [];
  let hasEnded = false;
  const frameOf = async (index: number, key: string): Promise<{ index: number; frame: Uint8Array | undefined }> => {
    try {
      const text = new TextEncoder().encode(JSON.stringify((await plan(key)).plan));
      return { index, frame: text.length <= PLAN_BYTES_MAX ? encodeFrame("plan", index, 0, text) : undefined };
    } catch (error) {
      // A read of the key reports its error, which must not keep the other keys from their plans.
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") absent.push(key);
      return { index, frame: undefined };
    }
  };
  return async () => {
    for (;;) {
      while (inFlight.size < KEYS_AT_ONCE && waiting.length > 0 && absent.length < MISSES_MAX) {
        const [index, key] = waiting.shift()!;
        inFlight.set(index, frameOf(index, key));
      }
      if (hasEnded) return undefined;
      if (inFlight.size === 0) {
        hasEnded = true;
        return encodeFrame("end", 0, 0, EMPTY);
      }
      const { index, frame } = await Promise.race(inFlight.values());
      inFlight.delete(index);
      if (!frame || frame.length > bytesLeft) continue;
      bytesLeft -= frame.length;
      return frame;
    }
  };
}
