/**
 * `GET /v1/plans?key=&key=`: the plans of several objects in one answer, for a page that knows what it will need. For each key
 * that can be read a plan frame, whose stripe field says which of the keys it is, as soon as its plan is there; then the end
 * frame. What else becomes of a key says a read of it. Nothing is read from the chunk cache, and nothing counts as a request.
 */
import { AgaroseError, BUNDLE_CONTENT_TYPE, encodeFrame, parseKey } from "@agarose/core";
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { inParallel } from "../../platform/parallel.ts";
import { planFor } from "../../read/plan.ts";

/** Of the 1,000 Cache API calls of an invocation each takes two, and a look into the buckets that does not find it at once several requests. */
const KEYS_MAX = 100;
/** More would wait inside the runtime for one of six connections, and the data center's cache is given 200 ms. */
const KEYS_AT_ONCE = 6;
const EMPTY = new Uint8Array(0);

export function plans(c: Context<AppEnv>): Response {
  const keys = new URL(c.req.url).searchParams.getAll("key");
  if (keys.length === 0 || keys.length > KEYS_MAX) {
    throw new AgaroseError("REQUEST_INVALID", `${keys.length} keys: ?key=… is taken 1 to ${KEYS_MAX} times`, {
      keys: keys.length,
      max: KEYS_MAX,
    });
  }
  for (const key of keys) parseKey(key);
  const invocation = new Invocation(c.env, c.executionCtx);
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = async ([index, key]: [number, string]): Promise<void> => {
        // What is wrong with one key is told by its own read, and must not keep the others from theirs.
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
