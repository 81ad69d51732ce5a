/**
 * What a PoP knows of its peers, from their messages alone. Pure.
 *
 * Merging is a join: the same messages give the same book in whatever order they come, and however often. What counts as
 * later is said by the sender (epoch and time of `CacheMessage`), so no two clocks are ever compared.
 */
import { ObjectsInCache } from "@agarose/solver";
import type { Outlook, PeerMessage } from "./peer-message.ts";
import type { Ticket } from "./turns.ts";

export interface PeerRecord {
  readonly epoch: number;
  /** Of the newest message. */
  readonly statedMs: number;
  readonly turn: number;
  readonly configuration: number;
  /** Of the newest digest. */
  readonly outlook: Outlook | undefined;
  readonly outlookMs: number;
  /** When the newest message came, on our clock. */
  readonly heardMs: number;
}

const UNHEARD: PeerRecord = {
  epoch: -1,
  statedMs: Number.NEGATIVE_INFINITY,
  turn: 0,
  configuration: 0,
  outlook: undefined,
  outlookMs: Number.NEGATIVE_INFINITY,
  heardMs: Number.NEGATIVE_INFINITY,
};

/** A PoP that has said nothing for three periods counts as gone, until it says something. */
export const SILENT_AFTER_MS = 200_000;

export class PeerBook {
  readonly cache = new ObjectsInCache();
  readonly #records = new Map<string, PeerRecord>();

  /** Takes a message in; false when it says nothing new: replayed, or overtaken by a later one. */
  merge(message: PeerMessage, nowMs: number): boolean {
    const { cache, turn, configuration, outlook } = message;
    const { node, epoch, statedMs } = cache;
    const isNews = this.cache.merge(cache);
    const known = this.#records.get(node) ?? UNHEARD;
    // A ticket never shrinks, not even with the memory of the one who holds it.
    const turns = { turn: Math.max(turn, known.turn) };
    if (epoch < known.epoch) {
      this.#records.set(node, { ...known, ...turns });
      return false;
    }
    const before = known.epoch === epoch ? known : { ...UNHEARD, epoch };
    const isNewest = statedMs > before.statedMs;
    const isOutlook = outlook !== undefined && statedMs > before.outlookMs;
    this.#records.set(node, {
      ...before,
      ...turns,
      ...(isNewest ? { statedMs, configuration, heardMs: nowMs } : {}),
      ...(isOutlook ? { outlook, outlookMs: statedMs } : {}),
    });
    return isNews || isNewest || isOutlook;
  }

  record(pop: string): PeerRecord | undefined {
    return this.#records.get(pop);
  }

  isSilent(pop: string, nowMs: number): boolean {
    return nowMs - (this.#records.get(pop) ?? UNHEARD).heardMs > SILENT_AFTER_MS;
  }

  /** Tickets of those of `pops` that are not silent. */
  tickets(pops: readonly string[], nowMs: number): Ticket[] {
    return pops.filter((pop) => !this.isSilent(pop, nowMs)).map((pop) => ({ pop, turn: this.#records.get(pop)!.turn }));
  }

  forget(pop: string): void {
    this.cache.forget(pop);
    this.#records.delete(pop);
  }
}
