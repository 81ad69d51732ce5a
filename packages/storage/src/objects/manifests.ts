/** Manifests through the stores. */
import { AgaroseError, toAgaroseError, type FetchPort } from "@agarose/core";
import { isTombstone, type Manifest } from "@agarose/core/format";
import { findManifest, LATENCY_UNKNOWN, readMajority, type MajorityRead } from "@agarose/core/sources";
import { regionsByName, regionsOf } from "../buckets/region-names.ts";
import { storeFetch, storeUrl } from "../buckets/stores.ts";
import { surveyRegions } from "../regions/region-survey.ts";
import { pause, type WriteContext } from "../commit/write-context.ts";
import type { KnownRegions } from "../regions/known-regions.ts";
import { completeNewest, LOOKS } from "../regions/settled.ts";
import { nodeSha256 } from "./sha256.ts";

/**
 * Which version a read returns.
 *
 * - `strong`: the newest that was acknowledged before the read began, or a later one. A majority must answer.
 * - `eventual`: the first sound one. A region that missed a write may show the version before.
 */
export type Consistency = "strong" | "eventual";

/** How a manifest is read. */
export interface ReadHow {
  /** Default: `strong`. */
  readonly consistency?: Consistency | undefined;
  /** Of an eventual read: the newest generation that the caller has seen. */
  readonly generationMin?: number;
  /**
   * Whether a strong read that cannot know whether the newest version was acknowledged fails, in place of giving it its
   * own generation. Default: false.
   */
  readonly isReadOnly?: boolean;
  /** Knowledge from earlier reads. Default: none. */
  readonly knownRegions?: KnownRegions;
  /** Receives the first sound manifest, before a majority has confirmed it. */
  readonly onFirst?: (manifest: Manifest) => void;
}

/**
 * Reads the current manifest of a key.
 *
 * @throws OBJECT_NOT_FOUND; of a strong read NO_QUORUM, READ_UNCERTAIN; of an eventual one NO_SOURCE; MANIFEST_...,
 *   CREDENTIALS_REFUSED, KEY_INVALID, KEY_TOO_LONG, ABORTED.
 */
export async function readManifest(key: string, context: WriteContext, how: ReadHow = {}): Promise<Manifest> {
  if (how.consistency === "eventual") return readFirst(key, context, how);
  const { record } = await readRecord(key, context, how);
  if (record && !isTombstone(record)) return record;
  const { length } = context.stores;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    record
      ? `object ${JSON.stringify(key)} was removed (generation ${record.generation})`
      : `no object ${JSON.stringify(key)} (according to a majority of ${length} regions): check the key with \`agarose ls\``,
    { key, regions: length, ...(record && { generation: record.generation }) },
  );
}

/** The manifest or tombstone of a majority for a key. It throws as a strong `readManifest` does. */
export async function readRecord(key: string, context: WriteContext, how: ReadHow = {}): Promise<MajorityRead> {
  for (let attempt = 1; ; attempt++) {
    try {
      const read = await askMajority(key, context, how);
      how.knownRegions?.found(key, read);
      return read;
    } catch (cause) {
      const error = toAgaroseError(cause);
      if (error.code !== "READ_UNCERTAIN") throw error;
      // A put that is under way settles it soon.
      if (attempt < LOOKS) await pause(attempt, context);
      else if (attempt > LOOKS || how.isReadOnly) throw error;
      else {
        const record = await complete(key, error, context);
        if (record) return { record, behind: [] };
      }
    }
  }
}

/** Gives the newest version its own generation. Throws `uncertain`, with the cause, where that fails. */
async function complete(key: string, uncertain: AgaroseError, context: WriteContext) {
  try {
    return await completeNewest(await surveyRegions(key, context), context);
  } catch (error) {
    context.signal.throwIfAborted();
    const { code, message } = toAgaroseError(error);
    const { message: what, details } = uncertain;
    const text = `${what}. To complete it failed with ${code}: ${message}`;
    throw new AgaroseError("READ_UNCERTAIN", text, { ...details, cause: code }, error);
  }
}

async function askMajority(key: string, context: WriteContext, how: ReadHow): Promise<MajorityRead> {
  const { stores, signal, trust, clock } = context;
  const { knownRegions: known, onFirst } = how;
  return readMajority(key, {
    regions: stores.map(({ region: { name } }) => ({
      name,
      url: storeUrl(name),
      latency: known?.latencyOf(name) ?? LATENCY_UNKNOWN,
    })),
    names: regionsByName(regionsOf(stores)).map(({ name }) => name),
    fetch: storeFetch(stores),
    clock,
    sha256: nodeSha256,
    trust,
    signal,
    ...(onFirst && { onFirst }),
    ...(known && { onRequest: (region, ms, isAnswered) => known.learn(region, ms, isAnswered) }),
  });
}

/** The first sound manifest, and none older than `generationMin` unless a majority has nothing newer. */
async function readFirst(
  key: string,
  { stores, signal, trust, clock }: WriteContext,
  { generationMin = 0 }: ReadHow,
): Promise<Manifest> {
  let refused: AgaroseError | undefined;
  const fetch: FetchPort = storeFetch(stores);
  const known = regionsByName(regionsOf(stores));
  try {
    return await findManifest(key, {
      regions: known.map(({ name }) => ({ name, url: storeUrl(name), latency: LATENCY_UNKNOWN })),
      fetch: (url, init) =>
        fetch(url, init).catch((error: unknown) => {
          const cause = toAgaroseError(error, "SOURCE_FAILED");
          if (cause.code === "CREDENTIALS_REFUSED") refused ??= cause;
          throw cause;
        }),
      clock,
      sha256: nodeSha256,
      trust,
      signal,
      generationMin,
    });
  } catch (error) {
    throw toAgaroseError(error).code === "NO_SOURCE" && refused ? refused : error;
  }
}
