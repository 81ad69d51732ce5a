/**
 * The writes of a period: evicts, fills stripe by stripe with verified chunks, and notes in the ledger how far it is. Nothing is
 * started that there is no time, operation or money for.
 */
import type { ChunkSource, Clock, Codec, FetchPort, Manifest, Sha256 } from "@agarose/core";
import { OPERATIONS_MAX, type Budget } from "../platform/operation-budget.ts";
import { advance, type CacheChange } from "./cache-change.ts";
import type { CacheContext, ChunkCache } from "../read/chunk-cache.ts";
import type { RegionEstimate } from "../state/configuration.ts";
import { withTimeout } from "../platform/async.ts";
import type { Region } from "../http/settings.ts";
import { inParallel } from "../platform/parallel.ts";
import type { ObjectShape } from "./planner/object-shape.ts";
import type { LedgerEntry } from "../state/pop-state.ts";
import type { Purse, Spending } from "./write-budget.ts";
import { fillStripe } from "./stripe-fill.ts";

export interface CacheWriterOptions {
  readonly state: {
    record(entries: readonly LedgerEntry[]): Promise<void>;
    remove(versions: readonly string[]): Promise<void>;
  };
  /** By version; kept up to date. */
  readonly ledger: Map<string, LedgerEntry>;
  readonly cache: ChunkCache;
  readonly context: CacheContext;
  readonly regions: readonly Region[];
  readonly estimates: readonly RegionEstimate[];
  readonly fillPeers?: FillPeers | undefined;
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
  /** Of an object that is to be filled; undefined when its key names another version by now. */
  readonly manifestOf: (object: ObjectShape) => Promise<Manifest | undefined>;
  readonly budget: Budget;
  readonly purse: Purse;
  /** On the clock: nothing new is started after that. */
  readonly untilMs: number;
  readonly onError: (error: unknown) => void;
}

/** Peers as sources of what is written here. */
export interface FillPeers {
  /** Those that hold chunks of an object and are not known to fail. */
  sourcesOf(manifest: Manifest): Promise<readonly ChunkSource[]>;
  /** Notes whether one has delivered what it should. */
  note(name: string, isGood: boolean): void;
}

/** In stripes, but `reconstructed` in chunks. */
export interface WriteCounts {
  written: number;
  evicted: number;
  reconstructed: number;
  /** Not done for lack of time or budget, or because it failed. */
  left: number;
}

const KV_DEADLINE_MS = 10_000;
/** Stripes filled at once: enough to keep all connections busy, little enough for 128 MB. */
const STRIPES_AT_ONCE = 6;
/** Stripes between two notes of how far a period is. */
const RECORD_EVERY = 50;
/** Kept for recording and publishing what was done. */
const OPERATIONS_RESERVED = 20;

export class CacheWriter {
  readonly counts: WriteCounts = { written: 0, evicted: 0, reconstructed: 0, left: 0 };
  readonly #options: CacheWriterOptions;
  #kvFailed = false;

  constructor(options: CacheWriterOptions) {
    this.#options = options;
  }

  /** What `apply` will spend at most. */
  atMost({ evict, fill }: CacheChange): Spending {
    const { purse } = this.#options;
    const deletes = evict.reduce((sum, { stripes }) => sum + stripes, 0);
    const fills = fill.reduce((sum, { entry }) => sum + entry.stripes - entry.done, 0);
    const writes = Math.min(deletes + fills, purse.writesLeft, OPERATIONS_MAX);
    return purse.priceOf(writes, Math.min(fills, writes));
  }

  /** Makes the cache what `change` says, as far as time and budget go. Rejects when the ledger cannot be written. */
  async apply(change: CacheChange): Promise<void> {
    const { state, ledger } = this.#options;
    await state.record(change.announce);
    for (const entry of change.announce) ledger.set(entry.version, entry);
    await this.#evict(change);
    await this.#fill(change);
  }

  async #evict({ evict }: CacheChange): Promise<void> {
    const { budget, cache, context, ledger, state, purse } = this.#options;
    for (const entry of evict) {
      let removed = 0;
      const stripes = Array.from({ length: entry.stripes }, (_, stripe) => stripe);
      await inParallel(STRIPES_AT_ONCE, stripes, async (stripe) => {
        if (!this.#mayStart(1)) return;
        budget.spend();
        purse.spend({ writes: 1 });
        if (await this.#kv(() => cache.evict(entry.version, stripe, context))) removed++;
      });
      this.counts.evicted += removed;
      this.counts.left += entry.stripes - removed;
      if (removed < entry.stripes) continue;
      await state.remove([entry.version]);
      budget.spend();
      ledger.delete(entry.version);
    }
  }

  async #fill({ fill }: CacheChange): Promise<void> {
    const jobs = fill.flatMap(({ entry, plan }) =>
      Array.from({ length: entry.stripes - entry.done }, (_, i) => ({ entry, plan, stripe: entry.done + i })),
    );
    const done = new Map<string, Set<number>>(fill.map(({ entry }) => [entry.version, new Set()]));
    const manifests = new Map<string, Promise<Manifest | undefined>>();
    const manifestOf = (object: ObjectShape): Promise<Manifest | undefined> => {
      const known = manifests.get(object.version);
      if (known) return known;
      const found = this.#options.manifestOf(object).catch((error: unknown) => void this.#options.onError(error));
      manifests.set(object.version, found);
      return found;
    };
    let unrecorded = 0;
    await inParallel(STRIPES_AT_ONCE, jobs, async ({ entry, plan: { object }, stripe }) => {
      // At worst no chunk comes from its own region, nor from a peer, and all others are tried to rebuild them.
      const sources = this.#options.fillPeers ? 2 : 1;
      const operations = sources * (entry.target.length + object.k + object.m) + 2;
      const isDone =
        this.#mayStart(operations) &&
        (await this.#holding(operations, async () => {
          const manifest = await manifestOf(object);
          return manifest !== undefined && this.#fillStripe(entry, manifest, stripe);
        }));
      if (!isDone) {
        this.counts.left++;
        return;
      }
      done.get(entry.version)!.add(stripe);
      if (++unrecorded < RECORD_EVERY) return;
      unrecorded = 0;
      await this.#recordProgress(fill, done);
    });
    await this.#recordProgress(fill, done);
  }

  /** Runs a task that may take so many operations and one write of KV. */
  #holding<T>(operations: number, task: () => Promise<T>): Promise<T> {
    const { budget, purse } = this.#options;
    return budget.hold(operations, () => purse.hold(1, task));
  }

  /** Tells the ledger how far each object is, so that a killed period is not begun again from its start. */
  async #recordProgress(fill: CacheChange["fill"], done: ReadonlyMap<string, ReadonlySet<number>>): Promise<void> {
    const advanced = fill.flatMap(({ entry }) => {
      const stripes = done.get(entry.version)!;
      let reached = entry.done;
      while (stripes.has(reached)) reached++;
      return reached > (this.#options.ledger.get(entry.version)?.done ?? 0) ? [advance(entry, reached)] : [];
    });
    if (advanced.length === 0) return;
    this.#options.budget.spend();
    for (const entry of advanced) this.#options.ledger.set(entry.version, entry);
    await this.#options.state.record(advanced);
  }

  async #fillStripe(entry: LedgerEntry, manifest: Manifest, stripe: number): Promise<boolean> {
    const { cache, context, regions, estimates, fetch, clock, sha256, codec, purse, fillPeers } = this.#options;
    try {
      this.#options.budget.spend();
      purse.spend({ reads: 1 });
      const stored = await withTimeout(cache.load(entry.version, stripe, context), KV_DEADLINE_MS, clock, "a KV read");
      const filled = await fillStripe({
        manifest,
        stripe,
        wanted: entry.target,
        stored,
        regions,
        estimates: new Map(estimates.map((estimate) => [estimate.name, estimate])),
        peers: await fillPeers?.sourcesOf(manifest),
        onPeer: fillPeers?.note.bind(fillPeers),
        fetch,
        clock,
        sha256,
        codec,
      });
      this.counts.reconstructed += filled.reconstructed;
      if (filled.unchanged) return true;
      this.#options.budget.spend();
      purse.spend({ writes: 1 });
      const isWritten = await this.#kv(() => cache.write(entry.version, stripe, filled.chunks, context));
      if (isWritten) this.counts.written++;
      return isWritten;
    } catch (error) {
      this.#options.onError(error);
      return false;
    }
  }

  /** Whether there is time, budget and money to start something of `operations`, one of them a write. After a failure of KV nothing more is started. */
  #mayStart(operations: number): boolean {
    const { budget, clock, purse, untilMs } = this.#options;
    if (this.#kvFailed || clock.now() >= untilMs || purse.writesLeft < 1) return false;
    return budget.allows(operations + OPERATIONS_RESERVED);
  }

  async #kv(change: () => Promise<void>): Promise<boolean> {
    try {
      await withTimeout(change(), KV_DEADLINE_MS, this.#options.clock, "a KV write");
      return true;
    } catch (error) {
      this.#kvFailed = true;
      this.#options.onError(error);
      return false;
    }
  }
}
