/**
 * The routes for other PoPs and their clients: `POST /v1/peers` takes messages, `GET /v1/chunk/<key>` delivers one
 * cached shard.
 */
import { AgaroseError } from "@agarose/core";
import { errorAnswer, keyInPath } from "@agarose/core/http";
import { PEER_CHUNK_PREFIX } from "@agarose/core/sources";
import type { Context } from "hono";
import { peerState } from "../../peers/cooperation.ts";
import { openMessage } from "../../peers/exchange.ts";
import { isFromPeer } from "../../peers/peer-reading.ts";
import { isolateOf } from "../../runtime/isolate.ts";
import type { Invocation } from "../../runtime/invocation.ts";
import { isPrivate } from "../access.ts";
import { invocationOf, checkReader, pathOf, type AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";

/**
 * Answers 204 to news. Throws FORBIDDEN unless a peer has signed the message, REQUEST_INVALID for an old or wrong one.
 */
export async function peerExchange(c: Context<AppEnv>): Promise<Response> {
  const { settings, peers: known } = isolateOf(c.env);
  const { pop, peers } = settings;
  if (!peers) throw new AgaroseError("FORBIDDEN", "this PoP has no peers: PEERS or PEER_KEY is not set");
  const message = await openMessage(c.req.raw, pop, peers);
  const inForce = await peerState(c.env).receive(message);
  if (inForce) {
    // This isolate need not wait until KV shows it.
    known.set(inForce);
    return new Response(null, { status: 204 });
  }
  const { node, epoch, statedMs } = message.cache;
  throw new AgaroseError(
    "REQUEST_INVALID",
    `message ${statedMs} of ${node} is not new: it or a later one has been received`,
    { from: node, epoch, sequence: statedMs },
  );
}

/**
 * `GET /v1/chunk/<key>?version=&stripe=&chunk=`: one shard from this PoP's cache. It does not count as a request for
 * the object: the PoP that the client asked counts it.
 */
export async function peerChunk(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PEER_CHUNK_PREFIX) ?? "";
  const wanted = parseChunkQuery(new URL(c.req.url).searchParams);
  const settings = settingsOf(c.env);
  const isOpen = !isPrivate(key, settings.access) || (await isFromPeer(c.req.raw, settings, Date.now()));
  if (!isOpen) await checkReader(c, key);
  const shard = await cachedShard(key, wanted, invocationOf(c));
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
  const cached = (await invocation.configuration()).cached.get(version);
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
      { stripe, chunk },
    ),
  );
  return new Response(body, { status: 404, headers });
}

function parseChunkQuery(query: URLSearchParams): Wanted {
  const version = query.get("version") ?? "";
  const stripe = query.get("stripe") ?? "";
  const chunk = query.get("chunk") ?? "";
  if (/^[\da-f]{32}$/.test(version) && /^\d{1,15}$/.test(stripe) && /^\d{1,3}$/.test(chunk)) {
    return { version, stripe: Number(stripe), chunk: Number(chunk) };
  }
  throw new AgaroseError("REQUEST_INVALID", "name a chunk by ?version=<32 hex digits>&stripe=<index>&chunk=<index>");
}
