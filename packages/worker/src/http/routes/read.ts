/**
 * `GET /v1/read/<key>?version=&from=&to=`: the bundle, which is the read plan and the chunks cached here.
 */
import {
  AgaroseError,
  BUNDLE_CONTENT_TYPE,
  encodeFrame,
  encodePlan,
  keyInPath,
  stripeCount,
  type Plan,
} from "@agarose/core";
import type { Context } from "hono";
import type { CachedStripe } from "../../read/chunk-cache.ts";
import { shardBytes } from "../../state/configuration.ts";
import { pathOf, type AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import type { ReadShare } from "../../read/memory-budget.ts";
import { planFor } from "../../read/plan.ts";

const PREFIX = "/v1/read/";
/** Stripes being read from the cache, or read and waiting for the client, as far as other reads leave room. */
const STRIPES_AHEAD = 3;
const EMPTY = new Uint8Array(0);

export async function read(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const query = parseQuery(new URL(c.req.url).searchParams);
  const invocation = new Invocation(c.env, c.executionCtx);
  const { plan: planned, manifest, oic } = await planFor(c, invocation, key, query.version);
  invocation.count(key);
  const { cache, memory } = invocation.isolate;
  const wanted = Math.max(0, Math.min(query.to, stripeCount(manifest) - 1) - query.from + 1);
  const hasChunks = planned.cached.length > 0 && wanted > 0;
  const share = hasChunks ? memory.tryEnter(manifest.version, planned.cached.length * shardBytes(manifest)) : undefined;
  // Without room for them, chunks that are cached are not promised: the buckets have them too.
  const plan = hasChunks && !share ? { ...planned, cached: [] } : planned;
  const body = bundle(plan, query.from, share ? wanted : 0, share, (stripe) =>
    cache.read(manifest.version, stripe, plan.cached, invocation.cacheContext),
  );
  return new Response(body, {
    headers: {
      "content-type": BUNDLE_CONTENT_TYPE,
      "cache-control": "no-store",
      "x-agarose-oic": oic.toFixed(2),
    },
  });
}

interface Query {
  readonly version: string | undefined;
  readonly from: number;
  readonly to: number;
}

function parseQuery(query: URLSearchParams): Query {
  const from = stripeIndex(query, "from") ?? 0;
  const to = stripeIndex(query, "to") ?? Number.MAX_SAFE_INTEGER;
  if (from > to) {
    throw new AgaroseError("REQUEST_INVALID", `stripes from=${from} to=${to} are none: from must not be above to`, {
      from,
      to,
    });
  }
  return { version: query.get("version") ?? undefined, from, to };
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

/** The plan at once, then stripe after stripe as fast as the client takes them, then the end. */
function bundle(
  plan: Plan,
  from: number,
  stripes: number,
  share: ReadShare | undefined,
  readStripe: (stripe: number) => Promise<CachedStripe>,
): ReadableStream<Uint8Array> {
  const end = from + stripes;
  const ahead: Promise<CachedStripe>[] = [];
  let next = from;
  let stripe = from;
  // What is being sent is held too, until the next one is asked for.
  const readAhead = (sending: 0 | 1): void => {
    const most = Math.min(STRIPES_AHEAD, (share?.units() ?? 0) - sending);
    while (ahead.length < most && next < end) ahead.push(readStripe(next++));
  };
  readAhead(0);
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(encodePlan(plan)),
      async pull(controller) {
        readAhead(0);
        const reading = ahead.shift();
        if (!reading) {
          controller.enqueue(encodeFrame("end", 0, 0, EMPTY));
          controller.close();
          share?.release();
          return;
        }
        const value = await reading;
        readAhead(1);
        for (const part of partsOf(value, stripe++, plan.cached)) controller.enqueue(part);
      },
      cancel: () => share?.release(),
    },
    { highWaterMark: 0 },
  );
}

/** A stored value as it is when it holds what was promised; else its promised frames, and a miss for each that lacks. */
function partsOf({ value, frames }: CachedStripe, stripe: number, promised: readonly number[]): Uint8Array[] {
  const exact = frames.length === promised.length && frames.every((frame, i) => frame.chunk === promised[i]);
  if (exact) return [value];
  return promised.map((chunk) => {
    const frame = frames.find((candidate) => candidate.chunk === chunk);
    return frame ? encodeFrame("chunk", stripe, chunk, frame.payload) : encodeFrame("miss", stripe, chunk, EMPTY);
  });
}
