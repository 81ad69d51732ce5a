/**
 * The plan of one key, and `GET /v1/plans?key=&key=`: the plans of several objects in one answer, for a page that knows what
 * it will need. Each readable key gets a plan frame, whose stripe field is the key's place in the request, as soon as its plan
 * is known; then comes the end frame. The route reads nothing from the chunk cache, and it counts no requests.
 */
import { AgaroseError, BUNDLE_CONTENT_TYPE, encodeFrame, parseKey } from "@agarose/core";
import type { Context } from "hono";
import { inParallel } from "../../platform/async.ts";
import { Invocation } from "../../read/invocation.ts";
import { planOf, type ServedPlan } from "../../read/plan.ts";
import { checkReader, type AppEnv } from "../http.ts";
import { telemetryToken } from "./telemetry.ts";

/** Each key takes two of an invocation's 1,000 Cache API calls, and a key that is not found at once takes several GETs. */
const KEYS_MAX = 100;
/** More lookups would wait inside the runtime for one of six connections, and the Cache API has 200 ms. */
const KEYS_AT_ONCE = 6;
const EMPTY = new Uint8Array(0);

/**
 * Resolves to the plan for the client that asks. Rejects with FORBIDDEN where it may not read the key, and as `planOf` does.
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
  for (const key of keys) parseKey(key);
  const invocation = new Invocation(c.env, c.executionCtx);
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = async ([index, key]: [number, string]): Promise<void> => {
        // A read of the key reports its error, which must not keep the other keys from their plans.
        const planned = await planFor(c, invocation, key).catch(() => undefined);
        if (!planned) return;
        controller.enqueue(encodeFrame("plan", index, 0, new TextEncoder().encode(JSON.stringify(planned.plan))));
      };
      await inParallel(KEYS_AT_ONCE, [...keys.entries()], send);
      controller.enqueue(encodeFrame("end", 0, 0, EMPTY));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": BUNDLE_CONTENT_TYPE, "cache-control": "no-store" } });
}
