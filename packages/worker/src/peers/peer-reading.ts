/**
 * Reading from peers' caches. Reads do not trust peers: they hash every chunk, and a peer that fails or delivers other
 * bytes opens its circuit breaker and is omitted.
 */
import type { FetchPort } from "@agarose/core";
import type { Manifest } from "@agarose/core/format";
import type { RequestRecord } from "@agarose/core/read";
import { peerSource, type ChunkSource } from "@agarose/core/sources";
import { traceparent, type Trace } from "../runtime/trace.ts";
import type { CircuitBreakers } from "../regions/circuit-breakers.ts";
import type { PopSettings } from "./peer-settings.ts";
import type { PeersInForce } from "./peers-snapshot.ts";
import { claimOf, isSignedBy, signedHeaders } from "./signature.ts";

/** A peer that holds chunks of one version. */
interface Holder {
  readonly name: string;
  readonly chunks: readonly number[];
  readonly meanMs: number;
  readonly sdMs: number;
}

/** A signed request for a chunk is valid for so long, in both directions, because the clocks of PoPs differ. */
const REQUEST_LIFE_MS = 15 * 60_000;

/** Returns the peers that hold chunks of `version` outside `without`, except those whose breaker is open. */
export function holdersOf(
  { peers }: PeersInForce,
  version: string,
  breakers: CircuitBreakers,
  without: readonly number[] = [],
): Holder[] {
  return peers.flatMap(({ name, meanMs, sdMs, held }) => {
    const chunks = (held.get(version) ?? []).filter((chunk) => !without.includes(chunk));
    return chunks.length > 0 && !breakers.isOpen(name) ? [{ name, chunks, meanMs, sdMs }] : [];
  });
}

/** Returns OiC, object in cache: the share (0 to 1) of a read's k chunks at this PoP and its peers (C2P, ICDCN'15). */
export function objectInCache(k: number, chunkSets: readonly (readonly number[])[]): number {
  return Math.min(1, new Set(chunkSets.flat()).size / k);
}

/** The parts of an invocation that reads from peers need. */
interface PeerContext {
  readonly settings: PopSettings;
  readonly breakers: CircuitBreakers;
  readonly fetch: FetchPort;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** The trace that requests to peers continue. Buckets never see it: their signatures cover headers. */
  readonly trace?: Trace | undefined;
}

/** Returns the peers that hold chunks of an object beside those `cached` here, as sources. */
export function peerSources(
  { settings: { pop, peers }, breakers, fetch, now, trace }: PeerContext,
  inForce: PeersInForce,
  manifest: Manifest,
  cached: readonly number[],
): ChunkSource[] {
  if (!peers) return [];
  const { pops, key } = peers;
  const urls = new Map(pops.map(({ name, url }) => [name, url]));
  return holdersOf(inForce, manifest.version, breakers, cached).flatMap((holder) => {
    const { name, chunks } = holder;
    const url = urls.get(name);
    if (url === undefined) return [];
    return peerSource({
      manifest,
      peer: { name, url },
      chunks: () => chunks,
      latency: () => holder,
      fetch: async (address, init) => {
        const path = address.slice(url.length);
        const proof = await signedHeaders({ method: "GET", path, from: pop, to: name, sequence: now(), body: "" }, key);
        return fetch(address, { ...init, headers: { ...proof, ...(trace && { traceparent: traceparent(trace) }) } });
      },
    });
  });
}

/** Notes the outcome of a request to a peer. A chunk that the peer no longer holds is not a failure. */
export function notePeer({ kind, source, outcome, error }: RequestRecord, breakers: CircuitBreakers): void {
  if (kind !== "peer") return;
  if (outcome === "used" || outcome === "unused") breakers.succeeded(source);
  if (outcome === "failed" && error !== "CHUNK_MISSING") breakers.failed(source);
}

/** Returns whether a peer signed this GET within the last 15 minutes. */
export async function isFromPeer(request: Request, { pop, peers }: PopSettings, nowMs: number): Promise<boolean> {
  const claim = claimOf(request.headers);
  if (!claim || !peers?.pops.some(({ name }) => name === claim.from)) return false;
  if (Math.abs(nowMs - claim.sequence) > REQUEST_LIFE_MS) return false;
  const { pathname, search } = new URL(request.url);
  const { from, sequence, signature } = claim;
  const signed = { method: "GET", path: `${pathname}${search}`, from, to: pop, sequence, body: "" };
  return isSignedBy(signed, signature, peers.key);
}
