/**
 * A strong read of a manifest: what a majority of the regions hold, tombstones included.
 *
 * A writer reports success once a majority holds its manifest, and never undoes what a majority may hold. Any two
 * majorities share a region. So once a read has returned a version, or a write of it was acknowledged, no later read of
 * this kind returns an older one.
 */
import { AgaroseError, toAgaroseError } from "../errors.ts";
import { parseKey } from "../format/key.ts";
import { isTombstone, parseManifest, type Manifest, type ManifestRecord } from "../format/manifest/index.ts";
import { hedgeAfterMs } from "../latency.ts";
import { deniedByMost, fetchRecord, isUnusable } from "./manifest-source.ts";
import type { FindManifestOptions, ManifestSourceRegion } from "./manifest-source.ts";
import type { FetchPort } from "../ports.ts";
import { UNWANTED } from "./source.ts";
import type { FailedAttempt } from "./staggered-race.ts";

/** Where and how to look for what a majority holds. */
export interface MajorityReadOptions extends Omit<FindManifestOptions, "generationMin"> {
  /** Names that manifests may use for regions, if they are more than those of `regions`: former names. */
  readonly names?: readonly string[];
  /** A manifest that regions sent before. One that still has those bytes answers 304, without sending them again. */
  readonly known?: TaggedManifest | undefined;
  /**
   * Called with the first sound manifest, before a majority has confirmed it. A reader may request chunks by it, but
   * must not show any byte of them yet.
   */
  readonly onFirst?: (manifest: Manifest) => void;
  /** Called for each request that ends, also because it was given up, with the time that it took. */
  readonly onRequest?: (region: string, ms: number, isAnswered: boolean) => void;
}

/** A manifest that the caller has, with the entity tags that regions gave it, by their URL. */
export interface TaggedManifest {
  readonly manifest: Manifest;
  readonly tags: ReadonlyMap<string, string>;
}

/** The record that a majority of the regions holds. */
export interface MajorityRead {
  /** A manifest or a tombstone; undefined when a majority has never heard of the key. */
  readonly record: ManifestRecord | undefined;
  /** Regions that answered with something older. Not all regions are asked, so there may be more. */
  readonly behind: readonly string[];
  /** The strong entity tags of the copies of `record`, by the URL of their regions. */
  readonly tags?: TaggedManifest["tags"];
}

/** The time that all regions together may take by default. */
const TIMEOUT_MS_DEFAULT = 10_000;
/**
 * Once a majority has answered without agreeing, or none can answer, each of the others gets its expected time, and all
 * together at most this.
 */
const DOUBT_MS_MAX = 1_000;

/** A weak tag does not stand for the bytes, and an empty one for nothing. */
const STRONG_TAG = /^"[^"]+"$/;

/** A region's answer that can be counted. */
interface Vote {
  readonly region: string;
  readonly record: ManifestRecord | undefined;
  /** Undefined also for a region that has what the caller has. */
  readonly bytes: Uint8Array | undefined;
  readonly tag: readonly [url: string, tag: string] | undefined;
  /** Of a region that says 403 for what is absent. */
  readonly isDenied: boolean;
}

/**
 * Reads what a majority of the regions hold under the manifest of `key`. It asks as many regions as a majority has, the
 * nearest first, and another one for each that fails, is late or disagrees.
 *
 * @throws NO_QUORUM when fewer than a majority answer, READ_UNCERTAIN when those that answer disagree, so that nobody
 * can know which version was acknowledged (`details.behind`: who lacks the newest one that was seen), NO_SOURCE when
 * all that is absent is denied (403), the manifest's own error when every copy found is unusable, CREDENTIALS_REFUSED,
 * KEY_INVALID, KEY_TOO_LONG, ABORTED.
 */
export async function readMajority(key: string, options: MajorityReadOptions): Promise<MajorityRead> {
  const { regions, clock, signal, timeoutMs = TIMEOUT_MS_DEFAULT, onFirst, onRequest } = options;
  parseKey(key);
  const needed = Math.floor(regions.length / 2) + 1;
  const names = new Set(options.names ?? regions.map(({ name }) => name));
  const waiting = regions.toSorted((a, b) => a.latency.meanMs - b.latency.meanMs);
  const running = new Set<ManifestSourceRegion>();
  /** Those of them that were replaced because they are late. If the replacement fails, it needs another one. */
  const late = new Set<ManifestSourceRegion>();
  const votes: Vote[] = [];
  const failures: FailedAttempt[] = [];
  const stop = new AbortController();
  const cancels: (() => void)[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<readonly Vote[]>();
  let doubtedMs: number | undefined;
  let cancelDoubt = (): void => {};
  let doubtEndMs = Number.NEGATIVE_INFINITY;

  const giveUp = (): void => reject(verdict(key, needed, regions, votes, failures));
  const onAbort = (): void => reject(toAgaroseError(signal!.reason, "ABORTED"));
  /** Gives up once `awaited` have had their expected time, and no sooner than before. */
  const waitFor = (awaited: Iterable<ManifestSourceRegion>): void => {
    if (doubtedMs === undefined) return;
    const expectedMs = Math.max(0, ...[...awaited].map(({ latency }) => hedgeAfterMs(latency)));
    const endMs = Math.min(doubtedMs + DOUBT_MS_MAX, clock.now() + expectedMs);
    if (endMs <= doubtEndMs) return;
    cancelDoubt();
    doubtEndMs = endMs;
    cancelDoubt = clock.after(Math.max(0, endMs - clock.now()), giveUp);
  };
  const start = (): void => {
    const region = waiting.shift();
    if (!region) return;
    running.add(region);
    waitFor([region]);
    const startedMs = clock.now();
    const cancelHedge = clock.after(hedgeAfterMs(region.latency), () => {
      late.add(region);
      start();
    });
    cancels.push(cancelHedge);
    vote(region)
      .finally(cancelHedge)
      .then(
        (own) => {
          onRequest?.(region.name, clock.now() - startedMs, true);
          votes.push(own);
          if (own.record && !isTombstone(own.record) && votes.filter(isManifest).length === 1) onFirst?.(own.record);
          settle(region);
        },
        (cause: unknown) => {
          const error = toAgaroseError(cause, "SOURCE_FAILED");
          onRequest?.(region.name, clock.now() - startedMs, isUnusable(error));
          if (isUnusable(error)) options.onUnusable?.(region.name, error);
          failures.push({ name: region.name, error });
          settle(region);
        },
      );
  };
  const vote = async (region: ManifestSourceRegion): Promise<Vote> => {
    const known = options.known?.tags.get(region.url);
    let tag = known;
    let isKnown = false;
    const fetch: FetchPort = async (url, init) => {
      const response = await options.fetch(url, known ? { ...init, headers: { "if-none-match": known } } : init);
      isKnown = known !== undefined && response.status === 304;
      if (!isKnown) tag = response.headers.get("etag") ?? undefined;
      return response;
    };
    const own = { region: region.name, isDenied: false };
    const tagOf = (): Vote["tag"] => (tag && STRONG_TAG.test(tag) ? [region.url, tag] : undefined);
    try {
      const bytes = await fetchRecord(key, region, { ...options, fetch, signal: stop.signal });
      // Bytes that another region has sent need not be checked twice.
      const same = votes.find((other) => other.bytes && areEqual(other.bytes, bytes));
      const record = same?.record ?? (await parseManifest(bytes, { ...options, key, regions: names }));
      return { ...own, record, bytes, tag: tagOf() };
    } catch (cause) {
      if (isKnown) return { ...own, record: options.known!.manifest, bytes: undefined, tag: tagOf() };
      const error = toAgaroseError(cause, "SOURCE_FAILED");
      if (error.code !== "OBJECT_NOT_FOUND") throw error;
      return { ...own, record: undefined, bytes: undefined, tag: undefined, isDenied: error.details["status"] === 403 };
    }
  };
  const settle = (region: ManifestSourceRegion): void => {
    running.delete(region);
    late.delete(region);
    const most = largestGroup(votes);
    if (most.length >= needed) return resolve(most);
    const hopes = running.size + waiting.length;
    const isHopeless = most.length + hopes < needed;
    if (hopes === 0) return giveUp();
    const atOnce = isHopeless ? regions.length : needed - most.length;
    while (waiting.length > 0 && running.size - late.size < atOnce) start();
    if (doubtedMs !== undefined || (!isHopeless && votes.length + unusable(failures).length < needed)) return;
    doubtedMs = clock.now();
    waitFor(running);
  };

  signal?.addEventListener("abort", onAbort, { once: true });
  cancels.push(clock.after(timeoutMs, giveUp));
  if (signal?.aborted) onAbort();
  else for (let n = 0; n < needed; n++) start();
  try {
    return agreed(key, await promise, votes, regions);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    waiting.length = 0;
    for (const cancel of [...cancels, cancelDoubt]) cancel();
    stop.abort(UNWANTED);
  }
}

/** Throws where all that is absent is denied: nothing says that the object does not exist. */
function agreed(
  key: string,
  most: readonly Vote[],
  votes: readonly Vote[],
  regions: readonly ManifestSourceRegion[],
): MajorityRead {
  const { record } = most[0]!;
  if (!record && most.every(({ isDenied }) => isDenied)) throw deniedByMost(key, most.length, regions);
  const behind = votes.filter((vote) => generationOf(vote.record) < generationOf(record));
  const tags = new Map(most.flatMap(({ tag }) => (tag ? [tag] : [])));
  return { record, behind: behind.map(({ region }) => region), ...(record && { tags }) };
}

/** The votes for what most regions have voted for. Of two that are as large, the newer one. */
function largestGroup(votes: readonly Vote[]): readonly Vote[] {
  const groups = [...Map.groupBy(votes, ({ record }) => identityOf(record)).values()];
  const isBetter = (a: readonly Vote[], b: readonly Vote[]): number =>
    b.length - a.length || generationOf(b[0]!.record) - generationOf(a[0]!.record);
  return groups.toSorted(isBetter)[0] ?? [];
}

/** Equal for copies of one write. Others share a generation only where a store ignores conditions. */
function identityOf(record: ManifestRecord | undefined): string {
  if (!record) return "";
  const upload = isTombstone(record) ? "" : record.upload;
  return `${record.generation} ${upload}`;
}

/** Below all generations for what is absent. */
function generationOf(record: ManifestRecord | undefined): number {
  return record?.generation ?? -1;
}

function isManifest({ record }: Vote): boolean {
  return record !== undefined && !isTombstone(record);
}

function unusable(failures: readonly FailedAttempt[]): readonly FailedAttempt[] {
  return failures.filter(({ error }) => isUnusable(error));
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** Why no majority agrees. */
function verdict(
  key: string,
  needed: number,
  regions: readonly ManifestSourceRegion[],
  votes: readonly Vote[],
  failures: readonly FailedAttempt[],
): AgaroseError {
  const refused = failures.find(({ error }) => error.code === "CREDENTIALS_REFUSED");
  const [newest] = votes.toSorted((a, b) => generationOf(b.record) - generationOf(a.record));
  const broken = unusable(failures);
  const answered = votes.length + broken.length;
  const silent = regions.map(({ name }) => name).filter((name) => !votes.some(({ region }) => region === name));
  const way = "`--consistency eventual` takes the first sound copy, which may be an old one";
  if (answered < needed) {
    if (refused) return refused.error;
    return new AgaroseError(
      "NO_QUORUM",
      `${answered} of ${regions.length} regions answered for the manifest of ${JSON.stringify(key)}, ${needed} are ` +
        `needed to know the newest version: retry once ${silent.join(", ")} answer; ${way}`,
      { key, answered, needed, regions: silent },
      failures[0]?.error,
    );
  }
  if (broken[0] && !newest?.record) return broken[0].error;
  const generation = generationOf(newest?.record);
  const behind = votes.filter(({ record }) => generationOf(record) < generation).map(({ region }) => region);
  const holders = votes.filter(({ record }) => identityOf(record) === identityOf(newest?.record)).length;
  return new AgaroseError(
    "READ_UNCERTAIN",
    `${holders} of ${answered} regions that answered hold generation ${generation} of ${JSON.stringify(key)}, the ` +
      `newest, and ${needed} of ${regions.length} are needed to know that it was acknowledged: retry` +
      `${silent.length > 0 ? ` once ${silent.join(", ")} answer` : ""}, or run \`agarose repair\`; ${way}`,
    { key, generation, holders, needed, answered, behind, regions: silent, unusable: broken.map(({ name }) => name) },
    broken[0]?.error,
  );
}
