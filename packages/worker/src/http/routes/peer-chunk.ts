/**
 * `GET /v1/chunk/<key>?version=&stripe=&chunk=`: one shard from this PoP's cache, for other PoPs and their clients. It is not
 * counted as a request for the object: that it is at the PoP that was asked.
 */
import { AgaroseError, PEER_CHUNK_PREFIX, errorAnswer, keyInPath } from "@agarose/core";
import type { Context } from "hono";
import { isPrivate } from "../access.ts";
import { mayRead, pathOf, type AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { isFromPeer } from "../../peers/peer-reading.ts";

export async function peerChunk(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PEER_CHUNK_PREFIX) ?? "";
  const wanted = parseQuery(new URL(c.req.url).searchParams);
  const invocation = new Invocation(c.env, c.executionCtx);
  const { settings } = invocation.isolate;
  const needsProof = isPrivate(key, settings.access);
  if (needsProof && !(await isFromPeer(c.req.raw, settings, Date.now()))) await mayRead(c, key, settings);
  const shard = await cachedShard(key, wanted, invocation);
  if (!shard) return missing(key, wanted);
  return new Response(shard, {
    headers: {
      "content-type": "application/octet-stream",
      "content-length": String(shard.length),
      "cache-control": "no-store",
    },
  });
}

interface Wanted {
  readonly version: string;
  readonly stripe: number;
  readonly chunk: number;
}

async function cachedShard(
  key: string,
  { version, stripe, chunk }: Wanted,
  invocation: Invocation,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const cached = (await invocation.configuration()).cached[version];
  if (!cached?.chunks.includes(chunk) || stripe >= cached.stripes) return undefined;
  // The version of one key must not open the chunks of another one, which may be private.
  if (cached.key !== key && (await invocation.manifest(key)).version !== version) return undefined;
  const { frames } = await invocation.isolate.cache.read(version, stripe, cached.chunks, invocation.cacheContext);
  return frames.find((frame) => frame.chunk === chunk)?.payload as Uint8Array<ArrayBuffer> | undefined;
}

function missing(key: string, { stripe, chunk }: Wanted): Response {
  const { headers, body } = errorAnswer(
    new AgaroseError(
      "CHUNK_MISSING",
      `chunk ${chunk} of stripe ${stripe} of ${JSON.stringify(key)} is not cached here`,
      {
        stripe,
        chunk,
      },
    ),
  );
  return new Response(body, { status: 404, headers });
}

function parseQuery(query: URLSearchParams): Wanted {
  const version = query.get("version") ?? "";
  const stripe = query.get("stripe") ?? "";
  const chunk = query.get("chunk") ?? "";
  if (/^[\da-f]{32}$/.test(version) && /^\d{1,15}$/.test(stripe) && /^\d{1,3}$/.test(chunk)) {
    return { version, stripe: Number(stripe), chunk: Number(chunk) };
  }
  throw new AgaroseError(
    "REQUEST_INVALID",
    "a chunk is asked for by ?version=<32 hex digits>&stripe=<index>&chunk=<index>",
  );
}
