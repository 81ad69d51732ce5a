/** Many files at a time: as many as the stores take, or as the caller says. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { withNewBreaker } from "../commit/write-context.ts";
import { freeDescriptors } from "../files/descriptors.ts";
import { layoutOf } from "../layout/object-layout.ts";
import { AdaptiveWidth, mapAdaptive } from "../listing/adaptive-pool.ts";
import type { PutObject, PutResult } from "../objects/put-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { repairOne } from "../repair/repair-outcome.ts";
import { withBatches } from "./batches-of-keys.ts";

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

interface StoreHow<T> {
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
  const isSmall = (file: T): boolean => (bytesOf(file) ?? Infinity) <= context.config.stripeBytes;
  const keys = files.filter(isSmall).flatMap((file) => {
    const known = { key: file.key, etag: etagOf(file) };
    return known.etag !== undefined || isAbsent(file) ? [known] : [];
  });
  const outcomes = await withBatches(keys, context, (batches, parts) =>
    transfer(files, bytesOf, async (file): Promise<StoreOutcome> => {
      const known = { isAbsent: isAbsent(file), etag: etagOf(file) };
      const stored = batches.write(file.key, (claim) => store(file, parts, { ...known, claim }));
      const outcome = await stored.catch((error: unknown) => {
        if (context.signal.aborted) throw error;
        return { key: file.key, outcome: "failed" as const, error: toAgaroseError(error) };
      });
      await onOutcome?.(outcome);
      return outcome;
    }),
  );
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

/** Small objects that are completed at a time. Each asks all regions several times, so it mostly waits. */
const LATE_JOBS = 16;
/** How much of that a large object takes. */
const LATE_UNITS_MAX = 4;

/** Part of a put's result. */
type Stored = Pick<PutResult, "key" | "bytes" | "placement" | "missing" | "regionsWithoutManifest">;

/**
 * Completes what late regions were left out of. A put does not wait for a region that hangs while the others suffice,
 * and those beside it leave the region out for 30 seconds: one request that took a moment too long would cost a region
 * the chunks of them all.
 *
 * Repairs the objects that lack something in regions which took another object's share, and returns those that lack
 * nothing any more, by key. A region that fails again is left for `agarose repair`, and so is the rest when the caller
 * aborts: the objects are stored, and their results must not get lost.
 */
export async function completeLate(results: readonly Stored[], context: DeploymentParts): Promise<ReadonlySet<string>> {
  const lacking = results.map((result) => ({ ...result, regions: regionsLacking(result) }));
  const waiting = lacking.filter(({ regions }) => regions.size > 0);
  const complete = new Set<string>();
  if (waiting.length === 0) return complete;
  const { regions } = context.config;
  const answering = new Set(
    regions.map(({ name }) => name).filter((name) => lacking.some((other) => !other.regions.has(name))),
  );
  const own = withNewBreaker(context);
  const isWorthATry = (late: ReadonlySet<string>): boolean => [...late].every((name) => answering.has(name));
  const unitsIn = ({ bytes }: Stored): number => Math.min(LATE_UNITS_MAX, unitsOf(bytes));
  try {
    await mapAdaptive(waiting, widthOf(LATE_JOBS), unitsIn, async ({ key, regions: late }) => {
      if (!isWorthATry(late)) return;
      const { outcome } = await repairOne(key, own, { quick: true });
      if (outcome === "repaired" || outcome === "sound") complete.add(key);
      else for (const name of late) answering.delete(name);
    });
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
  return complete;
}

/** Regions without a chunk or without the manifest of an object. */
function regionsLacking({ placement, missing, regionsWithoutManifest }: Stored): ReadonlySet<string> {
  return new Set([
    ...missing.flatMap((chunk) => placement[chunk] ?? []),
    ...regionsWithoutManifest.map(({ region }) => region),
  ]);
}

/**
 * Objects at a time without `jobs`. A large one counts as many, because its stripes are in memory. A region may get two
 * chunks of each: `SOCKETS` of a client are enough for all.
 */
const WIDTH = { start: 16, min: 2, max: 64 };
/** The file, and two connections to each of six regions. */
const DESCRIPTORS = 13;
const UNIT_BYTES = 256 * 1024;
const UNITS_MAX = 12;

/**
 * How many units may be under way: those of `jobs`, or as many as the stores take. Neither is more than this process
 * has `descriptors` for.
 */
function widthOf(jobs: number | undefined, descriptors = freeDescriptors()): AdaptiveWidth {
  const most = Math.max(1, Math.floor(descriptors / DESCRIPTORS));
  const { start, min, max } = jobs === undefined ? WIDTH : { start: jobs, min: jobs, max: jobs };
  return new AdaptiveWidth({ start: Math.min(start, most), min: Math.min(min, most), max: Math.min(max, most) });
}

/** How much of the width a file takes; standard input, whose length no one knows, as a large one. */
function unitsOf(bytes = Infinity): number {
  return Math.min(UNITS_MAX, 1 + Math.floor(bytes / UNIT_BYTES));
}
