/** Many files at a time: as many as the stores take, or as the caller says. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { ClaimRemovals } from "../commit/claim-removals.ts";
import { layoutOf } from "../layout/object-layout.ts";
import { mapAdaptive } from "../listing/adaptive-pool.ts";
import type { PutObject, PutResult } from "../objects/put-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { completeLate } from "../repair/late-regions.ts";
import { Batches } from "./batches-of-keys.ts";
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

/** The facts about the key of a file. */
export type KnownKey = Pick<PutObject, "isAbsent" | "etag" | "claim">;

/** How files are stored. */
export interface StoreHow<T> {
  readonly transfer: Transfer;
  readonly progress: TransferProgress;
  /** Undefined for a file whose length no one knows. */
  readonly bytesOf: (file: T) => number | undefined;
  /** Whether no region listed a manifest of its key shortly before. */
  readonly isAbsent: (file: T) => boolean;
  /** The ETag by which all regions listed its manifest shortly before. */
  readonly etagOf: (file: T) => string | undefined;
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
  { transfer, progress, bytesOf, isAbsent, etagOf, store, onOutcome }: StoreHow<T>,
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
  const keys = files.filter(isSmall).flatMap((file) => {
    const known = { key: file.key, etag: etagOf(file) };
    return known.etag !== undefined || isAbsent(file) ? [known] : [];
  });
  const batches = new Batches(keys, context);
  const storeOne = async (file: T): Promise<StoreOutcome> => {
    const known = { isAbsent: isAbsent(file), etag: etagOf(file) };
    const stored = batches.write(file.key, (claim) => store(file, parts, { ...known, claim }));
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
