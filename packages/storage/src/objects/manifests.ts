/**
 * Manifests through the stores.
 */
import {
  acceptUnsigned,
  AgaroseError,
  findManifest,
  isTombstone,
  LATENCY_UNKNOWN,
  readMajority,
  systemClock,
  toAgaroseError,
  type FetchPort,
  type MajorityRead,
  type Manifest,
} from "@agarose/core";
import { regionsByName, regionsOf } from "../buckets/region-names.ts";
import { storeFetch, storeUrl } from "../buckets/stores.ts";
import type { Breaker } from "../regions/ask-regions.ts";
import { surveyRegions } from "../regions/region-survey.ts";
import { pause, writeContextOf, type WriteContext, type WriteOptions } from "../commit/write-context.ts";
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

/** What a read of a manifest works with. */
export interface ReadContext extends Pick<WriteOptions, "stores" | "signal" | "trust" | "clock" | "random"> {
  /** Default: `strong`. */
  readonly consistency?: Consistency | undefined;
  /** Of an eventual read: the newest generation that the caller has seen. */
  readonly generationMin?: number;
  /**
   * With it, a strong read that cannot know whether the newest version was acknowledged gives it a generation of its
   * own. Without it, such a read fails.
   */
  readonly config?: WriteOptions["config"] | undefined;
  readonly sign?: WriteOptions["sign"] | undefined;
  readonly breaker?: Breaker;
  /** The time of day. Default: the system's. */
  readonly nowMs?: () => number;
  /** What earlier reads have learned. Default: nothing. */
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
export async function readManifest(key: string, context: ReadContext): Promise<Manifest> {
  if (context.consistency === "eventual") return readFirst(key, context);
  const { record } = await readRecord(key, context);
  if (record && !isTombstone(record)) return record;
  const { length } = context.stores;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    record
      ? `object ${JSON.stringify(key)} was removed (generation ${record.generation})`
      : `no object ${JSON.stringify(key)} (a majority of ${length} regions say so): check the key with \`agarose ls\``,
    { key, regions: length, ...(record && { generation: record.generation }) },
  );
}

/** What a majority holds under a key, a tombstone included. It throws as a strong `readManifest` does. */
export async function readRecord(key: string, context: ReadContext): Promise<MajorityRead> {
  const { sign, config, nowMs = Date.now, ...reading } = context;
  const writing = writeContextOf({ ...reading, ...(sign && { sign }), config: config!, nowMs });
  for (let attempt = 1; ; attempt++) {
    try {
      const read = await askMajority(key, context, writing);
      context.knownRegions?.found(key, read);
      return read;
    } catch (cause) {
      const error = toAgaroseError(cause);
      if (error.code !== "READ_UNCERTAIN") throw error;
      // A put that is under way settles it soon.
      if (attempt < LOOKS) await pause(attempt, writing);
      else if (attempt > LOOKS || !context.config) throw error;
      else {
        const record = await complete(key, error, writing);
        if (record) return { record, behind: [] };
      }
    }
  }
}

/** Gives the newest version a generation of its own. Throws `uncertain`, with the cause, where that fails. */
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

async function askMajority(key: string, context: ReadContext, { clock }: WriteContext): Promise<MajorityRead> {
  const { stores, signal, trust = acceptUnsigned, knownRegions: known, onFirst } = context;
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
  { stores, signal, trust = acceptUnsigned, clock = systemClock, generationMin = 0 }: ReadContext,
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
