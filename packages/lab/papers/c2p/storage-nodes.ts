/**
 * The paper's own setting (C2P, section 4.2): storage nodes cache the segments that they store, and clients read one
 * whole object at a time. An object is a hit when all its segments are; a single missing one makes it wait for a disk.
 *
 * The paper does not print four things, which are chosen here: the power law (Zipf), how uneven the placement is (every
 * node gets a weight from 0.5 to 1.5), Algorithm 1's threshold, and the duration of a read: 5 MB at the 9 MB/s of a hit
 * or the 4 MB/s of a miss (Fig. 8b). A node counts an object as whole until statements about its latest read can have
 * arrived, as the paper sets OiC to 1 on each read.
 */
import { cumulate, sampleIndex, seededRandom } from "@agarose/solver/random";
import { CacheEvents } from "@agarose/solver/internal/cooperation/cache-events";
import type { CacheMessage } from "@agarose/solver/internal/cooperation/cache-message";
import { decayedHits } from "@agarose/solver/internal/cooperation/hit-decay";
import { ObjectsInCache } from "@agarose/solver/internal/cooperation/objects-in-cache";
import { chooseVictim, compareC2p, compareLru } from "@agarose/solver/internal/cooperation/replacement";
import type { ReplacementCandidate } from "@agarose/solver/internal/cooperation/replacement";
import { CountedOic } from "./counted-oic.ts";

export interface StorageNodesStudy {
  /**
   * `lru` by time only, `algorithm-1` as printed for single nodes, `c2p` by what all nodes hold, `c2p-counted` by an
   * OiC that counts events, as the paper does.
   */
  readonly replacement: "lru" | "algorithm-1" | "c2p" | "c2p-counted";
  readonly seed: number;
  /** Clients that read at the same time. */
  readonly clients: number;
  readonly zipfExponent: number;
  /** How long a message travels after the node gathered it. */
  readonly delayMs: number;
  readonly segmentsPerNode?: number;
  readonly objects?: number;
  readonly reads?: number;
}

export interface StorageNodesResult {
  /** Object reads by how many of their segments were cached: all, some, none. */
  readonly hits: number;
  readonly partialMisses: number;
  readonly completeMisses: number;
  /** Segments read from disks. */
  readonly diskReads: number;
  readonly messagesPerSecond: number;
  /** Mean time from an event to its arrival at a peer. */
  readonly messageMs: number;
}

const NODES = 8;
const HIT_MS = (1000 * 5) / 9;
const MISS_MS = (1000 * 5) / 4;

/** Simulates the study. Equal seeds give the same placement and reads for every replacement. */
export function simulateStorageNodes(study: StorageNodesStudy): StorageNodesResult {
  const cluster = new Cluster(study);
  const { clients, reads = 2000, objects = 500, zipfExponent } = study;
  const ranks = Array.from({ length: objects }, (_, rank) => (rank + 1) ** -zipfExponent);
  const popularity = cumulate(ranks);
  const random = seededRandom(study.seed).fork(2);
  const freeAt = Array.from({ length: clients }, (_, client) => client * 100);
  const counts = { hits: 0, partialMisses: 0, completeMisses: 0, diskReads: 0 };
  for (let read = 0; read < reads; read++) {
    const client = freeAt.indexOf(Math.min(...freeAt));
    const missing = cluster.read(sampleIndex(popularity, random), freeAt[client]!);
    counts.diskReads += missing;
    if (missing === 0) counts.hits++;
    else if (missing < cluster.segments) counts.partialMisses++;
    else counts.completeMisses++;
    freeAt[client]! += missing === 0 ? HIT_MS : MISS_MS;
  }
  const { sent, waitedMs } = cluster;
  return {
    ...counts,
    messagesPerSecond: (1000 * sent) / Math.max(...freeAt),
    messageMs: sent === 0 ? 0 : waitedMs / sent,
  };
}

interface Segment {
  readonly object: number;
  readonly index: number;
  hits: number;
  readMs: number;
}

interface StorageNode {
  /** By object x segments + index, least recently read first. */
  readonly cached: Map<number, Segment>;
  readonly events: CacheEvents;
  readonly table: ObjectsInCache;
  readonly counted: CountedOic;
}

class Cluster {
  readonly segments = 5;
  sent = 0;
  waitedMs = 0;
  readonly #study: StorageNodesStudy;
  readonly #capacity: number;
  readonly #nodes: StorageNode[];
  /** Node of each segment, by object x segments + index. */
  readonly #placement: Int32Array;
  readonly #lastReadMs: Float64Array;
  #travelling: { readonly arrivesMs: number; readonly to: number; readonly message: CacheMessage }[] = [];

  constructor(study: StorageNodesStudy) {
    const { objects = 500, segmentsPerNode = 128 } = study;
    this.#study = study;
    this.#capacity = segmentsPerNode;
    const random = seededRandom(study.seed).fork(1);
    this.#nodes = Array.from({ length: NODES }, (_, n) => ({
      cached: new Map(),
      events: new CacheEvents(String(n)),
      table: new ObjectsInCache(),
      counted: new CountedOic(this.segments),
    }));
    const shares = cumulate(this.#nodes.map(() => 0.5 + random.next()));
    this.#placement = Int32Array.from({ length: objects * this.segments }, () => sampleIndex(shares, random));
    this.#lastReadMs = new Float64Array(objects).fill(-Infinity);
  }

  /** Reads all segments of an object; returns how many came from disks. */
  read(object: number, nowMs: number): number {
    this.#exchange(nowMs);
    this.#lastReadMs[object] = nowMs;
    let missing = 0;
    const touched = new Set<number>();
    for (let index = 0; index < this.segments; index++) {
      const id = object * this.segments + index;
      const at = this.#placement[id]!;
      const { cached } = this.#nodes[at]!;
      touched.add(at);
      const known = cached.get(id);
      if (known) {
        cached.delete(id);
        known.hits = decayedHits(known.hits, known.readMs, nowMs) + 1;
        known.readMs = nowMs;
        cached.set(id, known);
        continue;
      }
      missing++;
      if (cached.size >= this.#capacity) this.#evict(at, nowMs);
      cached.set(id, { object, index, hits: 1, readMs: nowMs });
      this.#announce(at, object, nowMs);
    }
    for (const at of touched) {
      this.#nodes[at]!.events.recordRead(String(object), nowMs);
      this.#nodes[at]!.counted.read(object);
    }
    return missing;
  }

  #evict(at: number, nowMs: number): void {
    const node = this.#nodes[at]!;
    const { replacement } = this.#study;
    if (replacement === "lru") {
      const [[id, { object }]] = node.cached as unknown as [[number, Segment]];
      node.cached.delete(id);
      return this.#announce(at, object, nowMs);
    }
    const compare = replacement === "algorithm-1" ? compareLru : compareC2p;
    const oic = replacement === "algorithm-1" ? () => 1 : this.#oicAt(at, nowMs);
    const candidates: (ReplacementCandidate & { readonly id: number; readonly object: number })[] = [];
    for (const [id, { object, hits, readMs }] of node.cached) {
      candidates.push({ id, object, oic: oic(object), hits: decayedHits(hits, readMs, nowMs), readMs });
    }
    const victim = chooseVictim(candidates, AFFINITY_MS, compare)!;
    node.cached.delete(victim.id);
    node.counted.replaced(victim.object, 1);
    this.#announce(at, victim.object, nowMs);
  }

  /** OiC by the node's knowledge, computed once per object. */
  #oicAt(at: number, nowMs: number): (object: number) => number {
    const known = new Map<number, number>();
    const patienceMs = GATHER_MS + this.#study.delayMs;
    return (object) => {
      if (nowMs - this.#lastReadMs[object]! <= patienceMs) return 1;
      let oic = known.get(object);
      if (oic === undefined) {
        const { table, counted } = this.#nodes[at]!;
        const isCounted = this.#study.replacement === "c2p-counted";
        oic = isCounted ? counted.oicOf(object) : table.oic(String(object), this.segments, this.#heldAt(at, object));
        known.set(object, oic);
      }
      return oic;
    };
  }

  #heldAt(at: number, object: number): number[] {
    const { cached } = this.#nodes[at]!;
    const held: number[] = [];
    for (let index = 0; index < this.segments; index++)
      if (cached.has(object * this.segments + index)) held.push(index);
    return held;
  }

  #announce(at: number, object: number, nowMs: number): void {
    this.#nodes[at]!.events.recordHeld(String(object), this.#heldAt(at, object), nowMs);
  }

  #exchange(nowMs: number): void {
    if (!this.#study.replacement.startsWith("c2p")) return;
    for (const { events } of this.#nodes) {
      while (events.dueMs <= nowMs) this.#send(events.take(events.dueMs)!);
    }
    const arrived = this.#travelling.filter(({ arrivesMs }) => arrivesMs <= nowMs);
    this.#travelling = this.#travelling.filter(({ arrivesMs }) => arrivesMs > nowMs);
    for (const { to, message } of arrived) {
      this.#count(this.#nodes[to]!, message);
      this.#nodes[to]!.table.merge(message);
    }
  }

  /** Takes a message as the events that it gathers: reads, and replaced segments. */
  #count({ table, counted }: StorageNode, { node, statements }: CacheMessage): void {
    for (const { key, chunks, readMs } of statements) {
      const lost = (table.replicasOf(key).get(node) ?? []).filter((chunk) => !chunks.includes(chunk)).length;
      if (lost > 0) counted.replaced(Number(key), lost);
      if (readMs > table.readMs(key, readMs)) counted.read(Number(key));
    }
  }

  /** Sends to the nodes that store other segments of an object in the message (peer node discovery). */
  #send(message: CacheMessage): void {
    for (const to of this.#nodes.keys()) {
      if (String(to) === message.node || !message.statements.some(({ key }) => this.#stores(to, Number(key)))) continue;
      this.sent++;
      this.waitedMs += GATHER_MS / 2 + this.#study.delayMs;
      this.#travelling.push({ arrivesMs: message.statedMs + this.#study.delayMs, to, message });
    }
  }

  #stores(node: number, object: number): boolean {
    return this.#placement.subarray(object * this.segments, (object + 1) * this.segments).includes(node);
  }
}

const GATHER_MS = 200;
const AFFINITY_MS = 30_000;
