/**
 * The receiving side of C2P (ICDCN 2015, section 3.3): what all peers hold and read. From that follows OiC, "object in
 * cache": the fraction of an object's chunks that are cached anywhere.
 *
 * Departures: the paper counts OiC down from 1 with every replaced segment. Ours counts what the peers state they hold,
 * so the next message corrects it after a lost one. A chunk that two peers hold counts once. The global hit count is
 * the sum of the peers' hits, decayed until the moment of the question.
 *
 * The table is a join: the same set of messages gives the same table, in any order and with any repetition. It keeps
 * the latest epoch of each node, and in it the latest statement about each object. It drops statements from before the
 * node's latest complete message, and all but the `objectsMax` latest ones.
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

/** The contents and reads of the peers, merged from their messages. */
export class ObjectsInCache {
  readonly #objectsMax: number;
  readonly #nodes = new Map<string, Node>();

  /** Keeps at most `objectsMax` objects of each node, an integer >= 1; throws REQUEST_INVALID otherwise. */
  constructor(objectsMax = 100_000) {
    this.#objectsMax = asInteger(objectsMax, "objectsMax", 1);
  }

  /** Merges a message that `parseCacheMessage` returned; returns whether it said anything new. */
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

  /** Returns the time of the newest complete message of a node, on its clock; -Infinity without one. */
  completeMs(node: string): number {
    return this.#nodes.get(node)?.completeMs ?? -Infinity;
  }

  /** Returns the chunks of the object that each peer holds; omits peers that hold none. */
  replicasOf(key: string): ReadonlyMap<string, readonly number[]> {
    const holders = new Map<string, readonly number[]>();
    for (const [name, { objects }] of this.#nodes) {
      const chunks = objects.get(key)?.statement.chunks ?? [];
      if (chunks.length > 0) holders.set(name, chunks);
    }
    return holders;
  }

  /** Lists all objects that one peer holds, with their chunks. */
  *contentsOf(node: string): Iterable<readonly [key: string, chunks: readonly number[]]> {
    for (const [key, { statement }] of this.#nodes.get(node)?.objects ?? []) {
      if (statement.chunks.length > 0) yield [key, statement.chunks];
    }
  }

  /** Returns OiC, 0 to 1: the share of the k chunks a read needs that the peers or `own` hold. */
  oic(key: string, k: number, own: readonly number[] = []): number {
    const needed = asInteger(k, "k", 1);
    const cached = new Set(own);
    for (const { chunks } of this.#statementsOf(key)) for (const chunk of chunks) cached.add(chunk);
    return Math.min(1, cached.size / needed);
  }

  /** Returns the hits at all peers, decayed until now. */
  hits(key: string, nowMs: number): number {
    const now = asNumber(nowMs, "nowMs");
    let sum = 0;
    for (const { hits, readMs } of this.#statementsOf(key)) sum += decayedHits(hits, readMs, now);
    return sum;
  }

  /** Returns when a peer last read the object, at most `nowMs` although clocks differ; -Infinity if no peer did. */
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

  /**
   * Drops the oldest statements. Every dropped one is older than every kept one, so the order of messages is
   * irrelevant.
   */
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

/** An honest node makes no two statements at the same moment; for those of others any fixed order is good enough. */
function isLater(statedMs: number, statement: CacheStatement, known: Stated): boolean {
  if (statedMs !== known.statedMs) return statedMs > known.statedMs;
  return textOf(statement) > textOf(known.statement);
}

function textOf({ chunks, hits, readMs }: CacheStatement): string {
  return JSON.stringify([chunks, hits, readMs]);
}
