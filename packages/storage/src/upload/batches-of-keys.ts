/** Many keys that are written one by one, claimed a batch at a time. */
import { toAgaroseError } from "@agarose/core";
import {
  BATCH_KEYS_MAX,
  claimBatch,
  type Batch,
  type BatchClaim,
  type BatchKey,
  type BatchLease,
} from "../commit/batches.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { listedSurvey } from "../listing/listed-object.ts";
import { emptySurvey } from "../regions/region-survey.ts";
import { ClaimRemovals } from "../commit/claim-removals.ts";
import type { DeploymentParts } from "../parts.ts";

/** With fewer keys, a claim to each takes no more requests. */
const BATCH_KEYS_MIN = 10;

/** A key, and the ETag by which all regions listed it. */
export type ListedKey = Omit<BatchKey, "survey">;

interface Slice {
  readonly keys: readonly ListedKey[];
  /** How many of them are not done with. */
  left: number;
  seen?: Promise<readonly BatchKey[]>;
  claimed?: Promise<Batch | undefined>;
}

/** Claims keys a batch at a time, the next one while those of the last one are written. */
export class Batches {
  readonly #slices: readonly Slice[];
  /** The slice of each key that has not begun. */
  readonly #indices = new Map<string, number>();
  readonly #context: WriteContext;

  constructor(keys: readonly ListedKey[], context: WriteContext) {
    const unique = keys.length < BATCH_KEYS_MIN ? [] : [...new Map(keys.map((one) => [one.key, one])).values()];
    for (const [at, { key }] of unique.entries()) this.#indices.set(key, Math.floor(at / BATCH_KEYS_MAX));
    this.#slices = Array.from({ length: Math.ceil(unique.length / BATCH_KEYS_MAX) }, (_, index) => {
      const own = unique.slice(index * BATCH_KEYS_MAX, (index + 1) * BATCH_KEYS_MAX);
      return { keys: own, left: own.length };
    });
    this.#context = context;
  }

  /** Writes a key, under the right to it where a batch has one. The last key of a batch ends it. */
  async write<R>(key: string, action: (claim: BatchClaim | undefined) => Promise<R>): Promise<R> {
    const index = this.#indices.get(key);
    if (index === undefined) return action(undefined);
    this.#indices.delete(key);
    const slice = this.#slices[index]!;
    let isTaken = false;
    const take = async (): Promise<BatchLease | undefined> => {
      const batch = await this.#claim(index);
      void this.#claim(index + 1);
      const lease = batch?.take(key);
      isTaken = lease !== undefined;
      return lease;
    };
    try {
      const seen = (await this.#see(slice)).find((one) => one.key === key);
      return await action(seen && { survey: seen.survey, take });
    } catch (error) {
      // A batch looks for other writers before the first of its keys is written, so more of them come between.
      if (!isTaken || toAgaroseError(error).code !== "REPLACED_MEANWHILE") throw error;
      return await action(undefined);
    } finally {
      if (--slice.left === 0) await (await slice.claimed)?.end();
    }
  }

  /** Ends the batches of keys that were not begun. */
  async end(): Promise<void> {
    for (const { left, claimed } of this.#slices) if (left > 0) await (await claimed)?.end();
  }

  // Each key finds out by itself why there is nothing.
  async #see(slice: Slice): Promise<readonly BatchKey[]> {
    return (slice.seen ??= batchKeys(slice.keys, this.#context).catch(() => []));
  }

  async #claim(index: number): Promise<Batch | undefined> {
    const slice = this.#slices[index];
    if (!slice) return undefined;
    const claim = async (): Promise<Batch | undefined> => {
      const keys = await this.#see(slice);
      return keys.length === 0 ? undefined : claimBatch(keys, this.#context);
    };
    return (slice.claimed ??= claim().catch(() => undefined));
  }
}

/** Runs `work` with batches of `keys`, and with parts that remove claims many at a time. */
export async function withBatches<R, C extends DeploymentParts>(
  keys: readonly ListedKey[],
  context: C,
  work: (batches: Batches, parts: C) => Promise<R>,
): Promise<R> {
  const parts = { ...context, claimRemovals: new ClaimRemovals(context) };
  const batches = new Batches(keys, context);
  try {
    return await work(batches, parts);
  } finally {
    await batches.end();
    await parts.claimRemovals.flush();
  }
}

/** The manifests of keys, by one request for each listed one. It omits those that no region sends. */
export async function batchKeys(keys: readonly ListedKey[], context: WriteContext): Promise<readonly BatchKey[]> {
  const read = async ({ key, etag }: ListedKey): Promise<BatchKey[]> => {
    const survey = etag === undefined ? emptySurvey(context.stores) : await listedSurvey(etag, key, context);
    return survey ? [{ key, etag, survey }] : [];
  };
  return (await Promise.all(keys.map(read))).flat();
}
