/** What isolates know of the peers: which of their chunks a read may ask for. One KV value, written by `PeerState`. */
import type { Clock } from "@agarose/core";
import { Broadcast } from "../platform/kv-snapshot.ts";

export interface PeersInForce {
  /** Grows with each publication. */
  readonly epoch: number;
  /** Those that answer. */
  readonly peers: readonly PeerInForce[];
}

export interface PeerInForce {
  readonly name: string;
  /** Time to deliver one chunk from its cache. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** Chunks by version. */
  readonly held: Readonly<Record<string, readonly number[]>>;
}

export const PEERS_NAME = "peers";
export const PEERS_EMPTY: PeersInForce = { epoch: 0, peers: [] };

export class PeersBroadcast extends Broadcast<PeersInForce> {
  constructor(clock: Clock) {
    super(clock, { name: PEERS_NAME, empty: PEERS_EMPTY, parse: parsePeersInForce });
  }
}

/** Undefined for a malformed value: then what was known before stays. */
export function parsePeersInForce(text: string): PeersInForce | undefined {
  try {
    const json = JSON.parse(text) as PeersInForce;
    return Number.isSafeInteger(json.epoch) && Array.isArray(json.peers) && json.peers.every(isPeer) ? json : undefined;
  } catch {
    return undefined;
  }
}

function isPeer({ name, meanMs, sdMs, held }: PeerInForce): boolean {
  return (
    typeof name === "string" &&
    [meanMs, sdMs].every(Number.isFinite) &&
    Object.values(held).every((chunks) => Array.isArray(chunks) && chunks.every(Number.isSafeInteger))
  );
}
