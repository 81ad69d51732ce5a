/**
 * Reading from peers' caches. A peer is believed in nothing: what it delivers is hashed like everything else, and one that
 * fails, or delivers something else, opens its circuit breaker and is left out.
 */
import { PeerSource, type Manifest, type RequestRecord } from "@agarose/core";
import type { CircuitBreakers } from "../region-manager/circuit-breakers.ts";
import type { Settings } from "../http/settings.ts";
import type { Invocation } from "../read/isolate.ts";
import type { PeersInForce } from "./peers-snapshot.ts";
import { claimOf, isSigned, signedHeaders } from "./signature.ts";

/** A peer that holds chunks of one version. */
export interface Holder {
  readonly name: string;
  readonly chunks: readonly number[];
  readonly meanMs: number;
  readonly sdMs: number;
}

/** A request for a chunk is good for so long, however far the clocks of two PoPs are apart within it. */
const REQUEST_LIFE_MS = 15 * 60_000;

/** Who holds chunks of `version` and is not known to fail, with those of them that are not in `without`. */
export function holdersOf(
  { peers }: PeersInForce,
  version: string,
  breakers: CircuitBreakers,
  without: readonly number[] = [],
): Holder[] {
  return peers.flatMap(({ name, meanMs, sdMs, held }) => {
    const chunks = (held[version] ?? []).filter((chunk) => !without.includes(chunk));
    return chunks.length > 0 && !breakers.isOpen(name) ? [{ name, chunks, meanMs, sdMs }] : [];
  });
}

/** Object in cache: how much of what a read needs is cached at this PoP and its peers, 0 to 1 (C2P, ICDCN'15). */
export function objectInCache(k: number, chunkSets: readonly (readonly number[])[]): number {
  return Math.min(1, new Set(chunkSets.flat()).size / k);
}

/** The peers that hold chunks of an object, as sources. */
export async function peerSources(
  invocation: Invocation,
  manifest: Manifest,
  cached: readonly number[],
): Promise<PeerSource[]> {
  const { settings, breakers } = invocation.isolate;
  if (!settings.peers) return [];
  const { pops, key } = settings.peers;
  const urls = new Map(pops.map(({ name, url }) => [name, url]));
  return holdersOf(await invocation.peers(), manifest.version, breakers, cached).flatMap((holder) => {
    const { name, chunks } = holder;
    const url = urls.get(name);
    if (url === undefined) return [];
    return new PeerSource({
      manifest,
      peer: { name, url },
      chunks: () => chunks,
      latency: () => holder,
      fetch: invocation.fetch,
      proof: (path) =>
        signedHeaders({ method: "GET", path, from: settings.pop, to: name, sequence: Date.now(), body: "" }, key),
    });
  });
}

/** Notes what came of a request to a peer. A chunk that it no longer holds is no failure. */
export function notePeer({ kind, source, outcome, error }: RequestRecord, breakers: CircuitBreakers): void {
  if (kind !== "peer") return;
  if (outcome === "used" || outcome === "unused") breakers.succeeded(source);
  if (outcome === "failed" && error !== "CHUNK_MISSING") breakers.failed(source);
}

/** Whether a GET is signed by a peer, lately. */
export async function isFromPeer(request: Request, { pop, peers }: Settings, nowMs: number): Promise<boolean> {
  const claim = claimOf(request.headers);
  if (!claim || !peers?.pops.some(({ name }) => name === claim.from)) return false;
  if (Math.abs(nowMs - claim.sequence) > REQUEST_LIFE_MS) return false;
  const { pathname, search } = new URL(request.url);
  const { from, sequence, signature } = claim;
  const signed = { method: "GET", path: `${pathname}${search}`, from, to: pop, sequence, body: "" };
  return isSigned(signed, signature, peers.key);
}
