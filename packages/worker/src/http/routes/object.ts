/**
 * `GET|HEAD /o/<key>`: the object, decoded here, for whoever has no service worker.
 */
import {
  AgaroseError,
  CHUNKS_MAX,
  keyInPath,
  objectAnswer,
  openRead,
  readKind,
  RegionSource,
  serverTiming,
  systemSha256,
  isOutdated,
  type ByteRange,
  type Manifest,
  type ObjectAnswer,
  type ObjectRead,
  type PeerSource,
} from "@agarose/core";
import type { Context } from "hono";
import { shardBytes, type Configuration } from "../../state/configuration.ts";
import { EdgeSource } from "../../read/edge-source.ts";
import { mayRead, pathOf, type AppEnv } from "../http.ts";
import { Invocation, latencyOf } from "../../read/isolate.ts";
import { log } from "../../platform/log.ts";
import type { ReadShare } from "../../read/memory-budget.ts";
import { notePeer, peerSources } from "../../peers/peer-reading.ts";
import { costOf, readCost, withinReach, type ReadCost } from "../../read/subrequest-budget.ts";

const PREFIX = "/o/";
/** Two stripes of the default size, as far as the other reads of this isolate leave room. */
const WINDOW_BYTES = 8 * 1024 * 1024;
/** What a stripe takes while it is read, as a multiple of its data: more chunks than k, and what is decoded. */
const STRIPE_MEMORY = 1.5;
/** Objects of tiny stripes must not have thousands of requests queue. */
const WINDOW_STRIPES = 16;

export async function object(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const invocation = new Invocation(c.env, c.executionCtx);
  const isPrivate = await mayRead(c, key, invocation.isolate.settings);
  const { method: requested, signal } = c.req.raw;
  const method = requested === "HEAD" ? "HEAD" : "GET";
  const answerOf = (found: Manifest): ObjectAnswer => {
    const answer = objectAnswer(found, c.req.raw.headers, method);
    return isPrivate ? unshared(answer) : answer;
  };
  const manifest = await invocation.manifest(key);
  const answer = answerOf(manifest);
  if (method === "HEAD" || !answer.range) return bodiless(answer);
  invocation.count(key);
  try {
    return await decoded(invocation, manifest, answer, signal);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    // The manifest in memory may name a version that is gone: what the buckets say now decides.
    const current = await invocation.manifest(key, { refetch: true });
    if (current.version === manifest.version) throw error;
    const again = answerOf(current);
    return again.range ? decoded(invocation, current, again, signal) : bodiless(again);
  }
}

/** For the client only: no cache that others share may keep it, and its own asks again each time. */
function unshared(answer: ObjectAnswer): ObjectAnswer {
  return { ...answer, headers: { ...answer.headers, "cache-control": "private, no-cache" } };
}

function bodiless({ status, headers }: ObjectAnswer): Response {
  return new Response(null, { status, headers });
}

/** Answers once the first stripe is there, so that a read which cannot succeed gets an error status. */
async function decoded(
  invocation: Invocation,
  manifest: Manifest,
  wanted: ObjectAnswer,
  signal: AbortSignal,
): Promise<Response> {
  const { memory, settings, traffic } = invocation.isolate;
  const known = await knownOf(invocation, manifest);
  const { status, headers, range } = withinReach(wanted, manifest, known.cost, settings.subrequestsMax);
  const share = await memory.enter(
    manifest.version,
    STRIPE_MEMORY * Math.min(manifest.stripeBytes, manifest.bytes),
    signal,
  );
  const read = await open(invocation, manifest, known, range!, share).catch((error: unknown) => {
    share.release();
    throw error;
  });
  traffic.opened(read.report);
  const body = new FixedLengthStream(range!.end - range!.start);
  const sent = read.body.pipeTo(body.writable).catch((error: unknown) => {
    // The status is sent, so all that is left is to cut the body off; a client that went away is no failure.
    if (error instanceof AgaroseError && error.code !== "ABORTED") {
      log("warn", "read cut off", { key: manifest.key, version: manifest.version, error });
    }
  });
  invocation.waitUntil(sent.finally(() => share.release()));
  return new Response(body.readable, {
    status,
    headers: {
      ...headers,
      "server-timing": serverTiming(read.report).join(", "),
      "x-agarose-read": readKind(read.report),
    },
  });
}

/** What is known of where the chunks of an object are. */
interface Known {
  readonly configuration: Configuration;
  readonly cached: readonly number[];
  readonly peers: readonly PeerSource[];
  readonly cost: ReadCost;
}

async function knownOf(invocation: Invocation, manifest: Manifest): Promise<Known> {
  const configuration = await invocation.configuration();
  const cached = configuration.cached[manifest.version]?.chunks ?? [];
  const peers = await peerSources(invocation, manifest, cached);
  const rows = Array.from({ length: CHUNKS_MAX }, (_, chunk) => chunk);
  const atPeers = rows.filter((chunk) => peers.some((peer) => peer.has(0, chunk)));
  const { delta } = invocation.isolate.settings;
  return {
    configuration,
    cached,
    peers,
    cost: readCost(manifest, { delta, cached: cached.length, atPeers: atPeers.length }),
  };
}

async function open(
  invocation: Invocation,
  manifest: Manifest,
  { configuration, cached: cachedChunks, peers, cost }: Known,
  range: ByteRange,
  share: ReadShare,
): Promise<ObjectRead> {
  const { settings, cache, clock, codec, flights, breakers, traffic, telemetry } = invocation.isolate;
  const { version } = manifest;
  const end = Math.ceil(range.end / manifest.stripeBytes);
  const regions = settings.regions.map((region) => {
    return new RegionSource({
      manifest,
      region: { name: region.name, url: region.popUrl },
      latency: () => latencyOf(configuration, region.name, breakers.isOpen(region.name), shardBytes(manifest)),
      fetch: breakers.guard(region.name, invocation.fetch),
      clock,
    });
  });
  const edge = new EdgeSource({
    pop: settings.pop,
    version,
    chunks: cachedChunks,
    cache,
    context: invocation.cacheContext,
  });
  return openRead({
    manifest,
    range,
    sources: [edge, ...peers, ...regions],
    codec,
    clock,
    sha256: systemSha256,
    random: Math.random,
    delta: settings.delta,
    windowBytes: () => Math.min(WINDOW_BYTES, Math.min(WINDOW_STRIPES, share.units()) * manifest.stripeBytes),
    share: (stripe, read, signal) => {
      // Whoever leads some stripes and follows at others begins its GETs anew each time: as long as there is enough for that.
      const isAffordable = invocation.subrequests.allows(cost.span + costOf(cost, end - stripe));
      return isAffordable
        ? flights.read({ version, stripe, read, signal, waitUntil: invocation.waitUntil })
        : read(signal);
    },
    onRequest(record) {
      const { kind, source, stripe, outcome, error, bytes, startMs, endMs } = record;
      notePeer(record, breakers);
      if (kind === "region" && outcome !== "pending") traffic.bucketRequest(source, outcome);
      if (kind === "peer" && outcome !== "pending") traffic.peerRequest(source, outcome);
      if (kind === "region" && endMs !== undefined && (outcome === "used" || outcome === "unused")) {
        const sample = { region: source, ms: Math.max(1, endMs - startMs), bytes };
        telemetry.observe(sample, invocation.env, invocation.waitUntil);
      }
      if (kind !== "edge" || error !== "CHUNK_CORRUPT") return;
      invocation.waitUntil(cache.reportCorrupt(version, stripe, cachedChunks, invocation.cacheContext));
    },
  });
}
