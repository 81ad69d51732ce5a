/** Many files at a time: as many as the stores take, or as the caller says. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { BATCH_KEYS_MAX, claimBatch, type Batch, type BatchLease } from "../commit/batches.ts";
import { ClaimRemovals } from "../commit/claim-removals.ts";
import { layoutOf } from "../layout/object-layout.ts";
import { mapAdaptive } from "../listing/adaptive-pool.ts";
import type { PutObject, PutResult } from "../objects/put-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { completeLate } from "../repair/late-regions.ts";
import { unitsOf, widthOf } from "./put-options.ts";

/** Receives counts of bytes: how many there are to do, and how many are done. */
export interface TransferProgress {
  addTotal(bytes: number): void;
  add(bytes: number): void;
}

/** Runs `action` on all items and returns the results in order. Without a length, an item counts as a large one. */
export type Transfer = <T, R>(
  items: readonly T[],
  bytesOf: (item: T) => number | undefined,
  action: (item: T) => Promise<R>,
) => Promise<R[]>;

/** Runs `work` with a queue of `jobs` files at a time. Default: as many as the stores take. Throws USAGE. */
export async function withTransfers<R>(
  jobs: number | undefined,
  { widths }: Pick<DeploymentParts, "widths">,
  work: (transfer: Transfer) => Promise<R>,
): Promise<R> {
  if (jobs !== undefined && !(Number.isSafeInteger(jobs) && jobs > 0)) {
    throw new AgaroseError("USAGE", `\`jobs\` is ${jobs}, and must be a whole number from 1 on`, { jobs });
  }
  const width = widthOf(jobs);
  const transfer: Transfer = (items, bytesOf, action) =>
    mapAdaptive(items, width, (item) => (jobs === undefined ? unitsOf(bytesOf(item)) : 1), action);
  widths.add(width);
  try {
    return await work(transfer);
  } finally {
    widths.delete(width);
  }
}

/** The outcome of one file. */
export type StoreOutcome =
  PutResult | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

/** What is known of the key of a file. */
export type KnownKey = Pick<PutObject, "isAbsent" | "lease">;

/** How files are stored. */
export interface StoreHow<T> {
  readonly transfer: Transfer;
  readonly progress: TransferProgress;
  /** Undefined for a file whose length no one knows. */
  readonly bytesOf: (file: T) => number | undefined;
  /** Whether no region listed a manifest of its key shortly before. */
  readonly isAbsent: (file: T) => boolean;
  /** Stores one file with what it gets: parts that remove claims many at a time, and what is known of its key. */
  readonly store: (file: T, parts: DeploymentParts, known: KnownKey) => Promise<PutResult>;
  /** Receives each outcome as it comes. */
  readonly onOutcome?: (outcome: StoreOutcome) => Promise<void>;
}

/**
 * Stores files, and then completes late regions. A failure is an outcome too. Rejects only when the caller aborts, or
 * with the error of `onOutcome`.
 */
export async function storeFiles<T extends { readonly key: string }>(
  files: readonly T[],
  { transfer, progress, bytesOf, isAbsent, store, onOutcome }: StoreHow<T>,
  context: DeploymentParts,
): Promise<StoreOutcome[]> {
  for (const file of files) {
    const bytes = bytesOf(file);
    if (bytes === undefined) continue;
    // Every byte is hashed once, and n / k of it uploaded.
    const { k, placement } = layoutOf(context.config, file.key, bytes);
    progress.addTotal(Math.round(bytes * (1 + placement.length / k)));
  }
  const parts = { ...context, claimRemovals: new ClaimRemovals(context) };
  const isSmall = (file: T): boolean => (bytesOf(file) ?? Infinity) <= context.config.stripeBytes;
  const keys = files.filter((file) => isSmall(file) && isAbsent(file)).map(({ key }) => key);
  const batches = new Batches(keys, context);
  const storeOne = async (file: T): Promise<StoreOutcome> => {
    const stored = batches.store(file.key, (lease) => store(file, parts, { isAbsent: isAbsent(file), lease }));
    const outcome = await stored.catch((error: unknown) => {
      if (context.signal.aborted) throw error;
      return { key: file.key, outcome: "failed" as const, error: toAgaroseError(error) };
    });
    await onOutcome?.(outcome);
    return outcome;
  };
  let outcomes: StoreOutcome[];
  try {
    outcomes = await transfer(files, bytesOf, storeOne);
  } finally {
    await batches.end();
  }
  await parts.claimRemovals.flush();
  const complete = await completeLate(
    outcomes.filter((outcome) => outcome.outcome !== "failed"),
    context,
  );
  return outcomes.map((outcome) =>
    outcome.outcome !== "failed" && complete.has(outcome.key)
      ? { ...outcome, missing: [], regionsWithoutManifest: [] }
      : outcome,
  );
}

/** With fewer keys, a claim to each takes no more requests. */
const BATCH_KEYS_MIN = 10;

interface Slice {
  readonly keys: readonly string[];
  /** How many of their files are not done with. */
  left: number;
  claimed?: Promise<Batch | undefined>;
}

/** Claims keys a batch at a time, the next one while the files of the last one are stored. */
class Batches {
  readonly #slices: readonly Slice[];
  /** The slice of each key whose file has not begun. */
  readonly #indices = new Map<string, number>();
  readonly #context: DeploymentParts;

  constructor(keys: readonly string[], context: DeploymentParts) {
    const unique = keys.length < BATCH_KEYS_MIN ? [] : [...new Set(keys)];
    for (const [at, key] of unique.entries()) this.#indices.set(key, Math.floor(at / BATCH_KEYS_MAX));
    this.#slices = Array.from({ length: Math.ceil(unique.length / BATCH_KEYS_MAX) }, (_, index) => {
      const own = unique.slice(index * BATCH_KEYS_MAX, (index + 1) * BATCH_KEYS_MAX);
      return { keys: own, left: own.length };
    });
    this.#context = context;
  }

  /** Stores the file of a key, under the right to it where a batch has one. The last file of a batch ends it. */
  async store<R>(key: string, action: (lease: BatchLease | undefined) => Promise<R>): Promise<R> {
    const index = this.#indices.get(key);
    if (index === undefined) return action(undefined);
    this.#indices.delete(key);
    const slice = this.#slices[index]!;
    try {
      const batch = await this.#claim(index);
      void this.#claim(index + 1);
      const lease = batch?.take(key);
      try {
        return await action(lease);
      } catch (error) {
        // A batch looks for other writers before the first of its files is sent, so more of them come between.
        if (!lease || toAgaroseError(error).code !== "REPLACED_MEANWHILE") throw error;
        return await action(undefined);
      }
    } finally {
      if (--slice.left === 0) await (await slice.claimed)?.end();
    }
  }

  /** Ends the batches of files that were not begun. */
  async end(): Promise<void> {
    for (const { left, claimed } of this.#slices) if (left > 0) await (await claimed)?.end();
  }

  async #claim(index: number): Promise<Batch | undefined> {
    const slice = this.#slices[index];
    if (!slice) return undefined;
    // Each file finds out by itself why there is none.
    return (slice.claimed ??= claimBatch(slice.keys, this.#context).catch(() => undefined));
  }
}
