/**
 * The receiving side of C2P (ICDCN 2015, section 3.3): what all peers hold and read, and from it OiC, "object in cache": the
 * fraction of an object's chunks that are cached anywhere.
 *
 * Departures: the paper counts OiC down from 1 with every replaced segment; ours is counted from what the peers state they
 * hold, so that it is right again after a lost message. A chunk that two peers hold counts once. The global hit count is the
 * sum of the peers' hits, decayed when it is asked for.
 *
 * The table is a join: whatever the order in which messages come, and however often, the same set of them gives the
 * same table. It keeps the latest epoch of each node, in it the latest statement of each object, nothing from before the
 * node's latest complete message, and of what is left the `objectsMax` stated last.
 */

import { asInteger, asNumber } from "./checks.ts";
import type { CacheMessage, CacheStatement } from "./cache-message.ts";
import { decayedHits } from "./hit-decay.ts";

interface Stated {
  readonly statedMs: number;
  readonly statement: CacheStatement;
}

interface Node {
  epoch: number;
  /** Statements from before this moment are void. */
  completeMs: number;
  readonly objects: Map<string, Stated>;
}

export class ObjectsInCache {
  readonly #objectsMax: number;
  readonly #nodes = new Map<string, Node>();

  /** Remembers `objectsMax` objects of each node. */
  constructor(objectsMax = 100_000) {
    this.#objectsMax = asInteger(objectsMax, "objectsMax", 1);
  }

  /** Takes a message in, as `parseCacheMessage` returns it; true when it said anything new. */
  merge(message: CacheMessage): boolean {
    let node = this.#nodes.get(message.node);
    if (!node || message.epoch > node.epoch) {
      node = { epoch: message.epoch, completeMs: -Infinity, objects: new Map() };
      this.#nodes.set(message.node, node);
    } else if (message.epoch < node.epoch) return false;
    let isNews = false;
    for (const statement of message.statements) if (put(node, message.statedMs, statement)) isNews = true;
    if (message.isComplete && message.statedMs > node.completeMs) {
      node.completeMs = message.statedMs;
      for (const [key, { statedMs }] of node.objects) if (statedMs < node.completeMs) node.objects.delete(key);
      isNews = true;
    }
    this.#truncate(node);
    return isNews;
  }

  /** The peer is gone: what it held cannot be had. A message of it that comes later counts again. */
  forget(node: string): void {
    this.#nodes.delete(node);
  }

  /** What each peer holds of the object; peers that hold nothing are left out. */
  holdersOf(key: string): ReadonlyMap<string, readonly number[]> {
    const holders = new Map<string, readonly number[]>();
    for (const [name, { objects }] of this.#nodes) {
      const chunks = objects.get(key)?.statement.chunks ?? [];
      if (chunks.length > 0) holders.set(name, chunks);
    }
    return holders;
  }

  /** All that one peer holds. */
  *heldBy(node: string): Iterable<readonly [key: string, chunks: readonly number[]]> {
    for (const [key, { statement }] of this.#nodes.get(node)?.objects ?? []) {
      if (statement.chunks.length > 0) yield [key, statement.chunks];
    }
  }

  /** Object in cache, 0 to 1: how many of the k chunks that a read needs are held by the peers and in `own`. */
  oic(key: string, k: number, own: readonly number[] = []): number {
    const needed = asInteger(k, "k", 1);
    const cached = new Set(own);
    for (const { chunks } of this.#statementsOf(key)) for (const chunk of chunks) cached.add(chunk);
    return Math.min(1, cached.size / needed);
  }

  /** Hits at all peers, decayed until now. */
  hits(key: string, nowMs: number): number {
    const now = asNumber(nowMs, "nowMs");
    let sum = 0;
    for (const { hits, readMs } of this.#statementsOf(key)) sum += decayedHits(hits, readMs, now);
    return sum;
  }

  /** When a peer last read the object; -Infinity when none is known to. A peer whose clock is ahead cannot read later than now. */
  readMs(key: string, nowMs: number): number {
    const now = asNumber(nowMs, "nowMs");
    let latest = -Infinity;
    for (const { hits, readMs } of this.#statementsOf(key)) if (hits > 0) latest = Math.max(latest, readMs);
    return Math.min(latest, now);
  }

  *#statementsOf(key: string): Iterable<CacheStatement> {
    for (const { objects } of this.#nodes.values()) {
      const stated = objects.get(key);
      if (stated) yield stated.statement;
    }
  }

  /** What is cut off was stated before all that is kept, so it would be cut off in any other order too. */
  #truncate({ objects }: Node): void {
    if (objects.size <= this.#objectsMax) return;
    const latest = [...objects].toSorted(([a, x], [b, y]) => y.statedMs - x.statedMs || (a < b ? -1 : 1));
    for (const [key] of latest.slice(this.#objectsMax)) objects.delete(key);
  }
}

function put(node: Node, statedMs: number, statement: CacheStatement): boolean {
  if (statedMs < node.completeMs) return false;
  const known = node.objects.get(statement.key);
  if (known && !isLater(statedMs, statement, known)) return false;
  node.objects.set(statement.key, { statedMs, statement });
  return true;
}

/** Of two statements of the same moment, which an honest node does not make, any fixed order of them will do. */
function isLater(statedMs: number, statement: CacheStatement, known: Stated): boolean {
  if (statedMs !== known.statedMs) return statedMs > known.statedMs;
  return textOf(statement) > textOf(known.statement);
}

function textOf({ chunks, hits, readMs }: CacheStatement): string {
  return JSON.stringify([chunks, hits, readMs]);
}
