/**
 * The writes of a period: evicts, fills stripe by stripe with verified chunks, and records its progress in the ledger.
 * It starts nothing that it has no time, operations or money for.
 */
import { inParallel } from "@agarose/core/async";
import type { Manifest } from "@agarose/core/format";
import { BlockMemory } from "@agarose/core/read";
import type { ObjectShape, RegionEstimate } from "@agarose/solver/planner";
import { withTimeout } from "../runtime/async.ts";
import { OPERATIONS_MAX } from "../runtime/budget.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { Spending } from "./spending.ts";
import { advance, fetchedBytes, fetchedBytesPerStripe, type CacheChange } from "./cache-change.ts";
import type { PeriodBooks, PeriodContext } from "./period-context.ts";
import { fillParts, fillStripe } from "./stripe-fill.ts";

interface CacheWriterOptions {
  readonly estimates: readonly RegionEstimate[];
  /** Resolves to the manifest of an object to fill, or to undefined when its key names another version now. */
  readonly manifestOf: (object: ObjectShape) => Promise<Manifest | undefined>;
  /** On the clock: the writer starts nothing new after that. */
  readonly untilMs: number;
}

type WriterContext = Pick<PeriodContext, "settings" | "state" | "cache" | "system">;

/** The work done, in stripes; `reconstructed` in chunks. */
export type WriteCounts = ReturnType<typeof noWrites>;

/** Returns the counts before anything is done. */
export function noWrites() {
  return {
    written: 0,
    evicted: 0,
    reconstructed: 0,
    /** Bytes that fills have fetched, and those of them, or computed from them, that they have written. */
    fetchedBytes: 0,
    filledBytes: 0,
    /** Not done, for lack of time or budget or because of an error. */
    left: 0,
    /** Those of them that the egress budget has refused. */
    refused: 0,
  };
}

const KV_DEADLINE_MS = 10_000;
/** Stripes that are filled at once: they keep all connections busy and fit into 128 MB. */
const STRIPES_AT_ONCE = 6;
/** Stripes between two records of progress. */
const RECORD_EVERY = 50;
/** Operations kept for recording progress and publishing. */
const OPERATIONS_RESERVED = 20;
/** Pages of hashes that the stripes of one object share. */
const PAGES_BYTES_MAX = 4 * 1024 * 1024;

/** Writes one change. */
export class CacheWriter {
  readonly counts = noWrites();
  readonly #context: WriterContext;
  readonly #books: PeriodBooks;
  readonly #options: CacheWriterOptions;
  readonly #pages: BlockMemory;
  #kvFailed = false;

  constructor(context: WriterContext, books: PeriodBooks, options: CacheWriterOptions) {
    this.#context = context;
    this.#books = books;
    this.#options = options;
    this.#pages = new BlockMemory(PAGES_BYTES_MAX, context.system.clock);
  }

  /** Returns the most that `apply` will spend. */
  atMost({ evict, fill }: CacheChange): Spending {
    const { writeBudget } = this.#books;
    const deletes = evict.reduce((sum, { stripes }) => sum + stripes, 0);
    const fills = fill.reduce((sum, { entry }) => sum + entry.stripes - entry.done, 0);
    const writes = Math.min(deletes + fills, writeBudget.writesLeft, OPERATIONS_MAX);
    return writeBudget.priceOf(writes, Math.min(fills, writes));
  }

  /** Returns the most bytes that `apply` will fetch from the regions while they are sound. */
  fetchesAtMost({ fill }: CacheChange): number {
    const bytes = fill.reduce((sum, job) => sum + fetchedBytes(job), 0);
    return Math.min(bytes, this.#books.egressBudget.left);
  }

  /** Applies `change` within time and budget. Rejects when the ledger cannot be written. */
  async apply(change: CacheChange): Promise<void> {
    const { state } = this.#context;
    const { ledger } = this.#books;
    await state.record(change.announce);
    for (const entry of change.announce) ledger.set(entry.version, entry);
    await this.#evict(change);
    await this.#fill(change);
  }

  async #evict({ evict }: CacheChange): Promise<void> {
    const { state, cache, system } = this.#context;
    const { ledger, writeBudget } = this.#books;
    for (const entry of evict) {
      let removed = 0;
      const stripes = Array.from({ length: entry.stripes }, (_, stripe) => stripe);
      await inParallel(STRIPES_AT_ONCE, stripes, async (stripe) => {
        if (!this.#mayStart(1)) return;
        system.budget.spend();
        writeBudget.spend({ writes: 1 });
        if (await this.#kv(() => cache.chunks.evict(entry.version, stripe, cache.kv))) removed++;
      });
      this.counts.evicted += removed;
      this.counts.left += entry.stripes - removed;
      if (removed < entry.stripes) continue;
      await state.remove([entry.version]);
      system.budget.spend();
      ledger.delete(entry.version);
    }
  }

  async #fill({ fill }: CacheChange): Promise<void> {
    const { egressBudget } = this.#books;
    const jobs = fill.flatMap((job) => {
      const { entry, plan } = job;
      const bytes = fetchedBytesPerStripe(job);
      return Array.from({ length: entry.stripes - entry.done }, (_, i) => {
        return { entry, plan, bytes, stripe: entry.done + i };
      });
    });
    const done = new Map<string, Set<number>>(fill.map(({ entry }) => [entry.version, new Set()]));
    const manifests = new Map<string, Promise<Manifest | undefined>>();
    const manifestOf = (object: ObjectShape): Promise<Manifest | undefined> => {
      const known = manifests.get(object.version);
      if (known) return known;
      const found = this.#options.manifestOf(object).catch((error: unknown) => void this.#books.onError(error));
      manifests.set(object.version, found);
      return found;
    };
    let unrecorded = 0;
    await inParallel(STRIPES_AT_ONCE, jobs, async ({ entry, plan: { object }, bytes, stripe }) => {
      // In the worst case no chunk comes from its region or a peer, and a rebuild tries all other chunks.
      const sources = this.#context.cache.peers ? 2 : 1;
      const operations = sources * (entry.target.length + object.k + object.m) + 4;
      const isRefused = egressBudget.left <= 0 || egressBudget.left < bytes;
      if (isRefused) this.counts.refused++;
      const isDone =
        !isRefused &&
        this.#mayStart(operations) &&
        (await this.#holding({ operations, bytes }, async () => {
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

  /** Runs a task that may take so many operations, one KV write and so many bytes of the regions. */
  #holding<T>(
    { operations, bytes }: { readonly operations: number; readonly bytes: number },
    task: () => Promise<T>,
  ): Promise<T> {
    const { egressBudget, writeBudget } = this.#books;
    return this.#context.system.budget.hold(operations, () =>
      writeBudget.hold(1, () => egressBudget.hold(bytes, task)),
    );
  }

  /** Records how far each object is, so that the next period continues where a killed one stopped. */
  async #recordProgress(fill: CacheChange["fill"], done: ReadonlyMap<string, ReadonlySet<number>>): Promise<void> {
    const advanced = fill.flatMap(({ entry }) => {
      const stripes = done.get(entry.version)!;
      let reached = entry.done;
      while (stripes.has(reached)) reached++;
      return reached > (this.#books.ledger.get(entry.version)?.done ?? 0) ? [advance(entry, reached)] : [];
    });
    if (advanced.length === 0) return;
    this.#context.system.budget.spend();
    for (const entry of advanced) this.#books.ledger.set(entry.version, entry);
    await this.#context.state.record(advanced);
  }

  async #fillStripe(entry: LedgerEntry, manifest: Manifest, stripe: number): Promise<boolean> {
    const { cache, system } = this.#context;
    const { writeBudget } = this.#books;
    try {
      system.budget.spend();
      writeBudget.spend({ reads: 1 });
      const stored = await withTimeout(
        cache.chunks.load(entry.version, stripe, cache.kv),
        KV_DEADLINE_MS,
        system.clock,
        "a KV read",
      );
      const filled = await fillStripe({
        ...fillParts(this.#context, this.#books, this.#options.estimates, { manifest, stripe }),
        manifest,
        stripe,
        wanted: entry.target,
        stored,
        peers: await cache.peers?.sourcesOf(manifest),
        memory: this.#pages,
      });
      this.counts.reconstructed += filled.reconstructed;
      this.counts.fetchedBytes += filled.fetchedBytes;
      if (filled.unchanged) return true;
      system.budget.spend();
      writeBudget.spend({ writes: 1 });
      const isWritten = await this.#kv(() => cache.chunks.write(entry.version, stripe, filled.chunks, cache.kv));
      if (isWritten) {
        this.counts.written++;
        this.counts.filledBytes += filled.filledBytes;
      }
      return isWritten;
    } catch (error) {
      this.#books.onError(error);
      return false;
    }
  }

  /**
   * Returns whether time, budget and money suffice for `operations`, one of them a write. After a failure of KV nothing
   * more starts.
   */
  #mayStart(operations: number): boolean {
    const { budget, clock } = this.#context.system;
    const { writeBudget } = this.#books;
    const { untilMs } = this.#options;
    if (this.#kvFailed || clock.now() >= untilMs || writeBudget.writesLeft < 1) return false;
    return budget.allows(operations + OPERATIONS_RESERVED);
  }

  async #kv(change: () => Promise<void>): Promise<boolean> {
    try {
      await withTimeout(change(), KV_DEADLINE_MS, this.#context.system.clock, "a KV write");
      return true;
    } catch (error) {
      this.#kvFailed = true;
      this.#books.onError(error);
      return false;
    }
  }
}
