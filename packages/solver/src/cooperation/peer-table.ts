/**
 * A PoP's knowledge of its peers, only from their messages. Pure.
 *
 * Merging is a join: the same messages give the same table in any order and any number. The sender's epoch and time
 * order its messages (`CacheMessage`), so no two clocks are ever compared.
 */
import { ObjectsInCache } from "./objects-in-cache.ts";
import type { PeerMessage, PopularityDigest } from "./peer-message.ts";
import type { Ticket } from "./turns.ts";

/** The newest statements of one peer. */
export interface PeerRecord {
  readonly epoch: number;
  /** The sender's time of its newest message. */
  readonly statedMs: number;
  readonly turn: number;
  readonly configuration: number;
  /** From the newest digest. */
  readonly popularity: PopularityDigest | undefined;
  readonly popularityMs: number;
  /** From the newest message. */
  readonly base: number | undefined;
  readonly lacksDigest: boolean;
  readonly isNear: boolean;
  /** When the newest message came, on this PoP's clock. */
  readonly receivedMs: number;
}

const UNKNOWN: PeerRecord = {
  epoch: -1,
  statedMs: Number.NEGATIVE_INFINITY,
  turn: 0,
  configuration: 0,
  popularity: undefined,
  popularityMs: Number.NEGATIVE_INFINITY,
  base: undefined,
  lacksDigest: false,
  isNear: false,
  receivedMs: Number.NEGATIVE_INFINITY,
};

/** A PoP without a message for three periods counts as gone, until its next message. */
export const SILENT_AFTER_MS = 200_000;

/** The last message of each peer. */
export class PeerTable {
  readonly cache = new ObjectsInCache();
  readonly #records = new Map<string, PeerRecord>();

  /** Merges a message. Returns false when it says nothing new: a replay, or one that a later message overtook. */
  merge(message: PeerMessage, nowMs: number): boolean {
    const { cache, turn, configuration, popularity, base, lacksDigest = false, isNear = true } = message;
    const { node, epoch, statedMs } = cache;
    const isNews = this.cache.merge(cache);
    const known = this.#records.get(node) ?? UNKNOWN;
    // A ticket never shrinks, even when its holder has lost its memory.
    const turns = { turn: Math.max(turn, known.turn) };
    if (epoch < known.epoch) {
      this.#records.set(node, { ...known, ...turns });
      return false;
    }
    const before = known.epoch === epoch ? known : { ...UNKNOWN, epoch };
    const isNewest = statedMs > before.statedMs;
    const isNewPopularity = popularity !== undefined && statedMs > before.popularityMs;
    this.#records.set(node, {
      ...before,
      ...turns,
      ...(isNewest ? { statedMs, configuration, receivedMs: nowMs, base, lacksDigest, isNear } : {}),
      ...(isNewPopularity ? { popularity, popularityMs: statedMs } : {}),
    });
    return isNews || isNewest || isNewPopularity;
  }

  /** Returns what a peer has said, or undefined before its first message. */
  record(pop: string): PeerRecord | undefined {
    return this.#records.get(pop);
  }

  /** Returns whether the digest that a peer's changes build on has not arrived. */
  lacksDigest(pop: string): boolean {
    const { base } = this.#records.get(pop) ?? UNKNOWN;
    return base !== undefined && this.cache.completeMs(pop) < base;
  }

  /** Returns whether a peer has said within three periods that it counts this PoP among its nearest. */
  isNearFor(pop: string, nowMs: number): boolean {
    return (this.#records.get(pop) ?? UNKNOWN).isNear && !this.isSilent(pop, nowMs);
  }

  /** Returns whether a peer has sent no message for three periods. */
  isSilent(pop: string, nowMs: number): boolean {
    return nowMs - (this.#records.get(pop) ?? UNKNOWN).receivedMs > SILENT_AFTER_MS;
  }

  /** Returns the tickets of those of `pops` that are not silent. */
  tickets(pops: readonly string[], nowMs: number): Ticket[] {
    return pops.filter((pop) => !this.isSilent(pop, nowMs)).map((pop) => ({ pop, turn: this.#records.get(pop)!.turn }));
  }
}
