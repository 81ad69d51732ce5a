/**
 * Finds the manifest of a key in the buckets, nearest region first, asking the next one when a region fails or is late.
 */
import { readChecked } from "./body.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { UNWANTED } from "./source.ts";
import { staggeredRace, type FailedAttempt } from "./staggered-race.ts";
import { manifestName, objectUrl, parseKey } from "../format/key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "../latency.ts";
import {
  isTombstone,
  MANIFEST_BYTES_MAX,
  parseManifest,
  refuseTooLarge,
  type Manifest,
} from "../format/manifest/index.ts";
import type { SignatureCheck } from "../format/signature.ts";
import type { Clock, FetchPort, Sha256 } from "../ports.ts";

/** A region to ask for a manifest. */
export interface ManifestSourceRegion {
  readonly name: string;
  readonly url: string;
  readonly latency: LatencyEstimate;
}

/** Where and how to look for a manifest. */
export interface FindManifestOptions {
  readonly regions: readonly ManifestSourceRegion[];
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly sha256: Sha256;
  /** Whose manifests are used. */
  readonly trust: SignatureCheck;
  /**
   * The newest generation that the caller has seen. An older manifest is taken only if a majority of the regions have
   * nothing newer. Default 0.
   */
  readonly generationMin?: number;
  /** Called for each copy that is not used because of what it says: forged, damaged, or of a newer format. */
  readonly onUnusable?: (region: string, error: AgaroseError) => void;
  readonly signal?: AbortSignal;
  /** Default 10,000 ms. */
  readonly timeoutMs?: number;
}

/** The time that all regions together may take by default. */
const TIMEOUT_MS_DEFAULT = 10_000;
/** The most time that the other regions get to disagree when a majority reports no such object. */
const DOUBT_MS_MAX = 1_000;

/**
 * The manifest of `key` from the first region that has a sound one.
 *
 * @throws OBJECT_NOT_FOUND when a majority of the regions say so and no other disagrees in its expected time,
 *   NO_SOURCE when too few answer, the manifest's own error when every copy found is unusable, KEY_INVALID,
 *   KEY_TOO_LONG, ABORTED.
 */
export async function findManifest(key: string, options: FindManifestOptions): Promise<Manifest> {
  const { regions, clock, signal, timeoutMs = TIMEOUT_MS_DEFAULT } = options;
  parseKey(key);
  const names = new Set(regions.map(({ name }) => name));
  const stop = new AbortController();
  let failed: readonly FailedAttempt[] = [];
  const giveUp = (): void => stop.abort(verdict(key, regions, failed));
  const cancelDeadline = clock.after(timeoutMs, giveUp);
  let cancelDoubt: (() => void) | undefined;
  const seen: Seen = { generationMin: options.generationMin ?? 0, older: [] };
  const attempts = regions
    .toSorted((a, b) => a.latency.meanMs - b.latency.meanMs)
    .map((region) => ({
      name: region.name,
      patienceMs: hedgeAfterMs(region.latency),
      start: (own: AbortSignal) =>
        fetchManifest(key, region, names, { ...options, signal: own }, seen).catch((error: AgaroseError) => {
          if (isUnusable(error)) options.onUnusable?.(region.name, error);
          throw error;
        }),
    }));
  try {
    return await staggeredRace(attempts, {
      clock,
      signal: AbortSignal.any([stop.signal, ...(signal ? [signal] : [])]),
      afterFailure: ({ code }, failures) => {
        failed = failures;
        if (code !== "OBJECT_NOT_FOUND") return "next";
        if (isMajority(countAbsent(failures), regions) && failures.every((one) => isAbsent(one) || isStale(one))) {
          cancelDoubt ??= clock.after(doubtMs(regions, failures), giveUp);
        }
        // A region may have missed a put, so a second one is asked. When both say no, all others are asked at once.
        return countAbsent(failures) < 2 ? "next" : "all";
      },
      allFailed: (failures) => verdict(key, regions, failures),
    });
  } catch (error) {
    const [newest] = seen.older.toSorted((a, b) => b.generation - a.generation);
    // A put that was rolled back was seen by some readers, and then a majority knows nothing of it.
    if (newest && !signal?.aborted && isMajority(seen.older.length, regions)) return newest;
    throw error;
  } finally {
    cancelDeadline();
    cancelDoubt?.();
    stop.abort(UNWANTED);
  }
}

/**
 * Returns how many milliseconds the silent regions get when a majority reports no such object: their expected time, so
 * that a dead region does not delay the result.
 */
function doubtMs(regions: readonly ManifestSourceRegion[], failures: readonly FailedAttempt[]): number {
  const silent = regions.filter((region) => !failures.some(({ name }) => name === region.name));
  return Math.min(DOUBT_MS_MAX, Math.max(0, ...silent.map(({ latency }) => hedgeAfterMs(latency))));
}

/** The newest generation according to the answers so far. */
interface Seen {
  generationMin: number;
  /** Sound manifests of older generations. */
  readonly older: Manifest[];
}

async function fetchManifest(
  key: string,
  region: ManifestSourceRegion,
  names: ReadonlySet<string>,
  options: FindManifestOptions & { readonly signal: AbortSignal },
  seen: Seen,
): Promise<Manifest> {
  const record = await parseManifest(await fetchRecord(key, region, options), { ...options, key, regions: names });
  const { generation } = record;
  if (generation < seen.generationMin) {
    if (!isTombstone(record)) seen.older.push(record);
    throw new AgaroseError(
      "MANIFEST_STALE",
      HAS_MESSAGES &&
        `region ${region.name} has generation ${generation} of ${JSON.stringify(key)}, ${seen.generationMin} is known: ` +
          "run `agarose repair`",
      { region: region.name, generation, known: seen.generationMin },
    );
  }
  if (!isTombstone(record)) return record;
  seen.generationMin = generation;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    HAS_MESSAGES && `object ${JSON.stringify(key)} was removed (generation ${generation})`,
    {
      region: region.name,
      generation,
    },
  );
}

/**
 * The bytes that a region holds under the name of a manifest. Rejects with OBJECT_NOT_FOUND, with `details.status` 404
 * or 403, with SOURCE_FAILED or MANIFEST_TOO_LARGE.
 */
export async function fetchRecord(
  key: string,
  region: ManifestSourceRegion,
  { fetch, signal }: Pick<FindManifestOptions, "fetch"> & { readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const response = await fetch(objectUrl(region.url, manifestName(key)), { signal });
  const { status, headers, body } = response;
  const announced = Number(headers.get("content-length"));
  if (status === 200 && announced <= MANIFEST_BYTES_MAX) return readChecked(response, refuseTooLarge);
  await body?.cancel();
  // A region that announces too much is refused before it sends any of it.
  if (status === 200) refuseTooLarge(announced);
  // A bucket that anyone may read but not list hides what is absent behind a 403.
  const code = status === 404 || status === 403 ? "OBJECT_NOT_FOUND" : "SOURCE_FAILED";
  throw new AgaroseError(
    code,
    HAS_MESSAGES && `region ${region.name} answered ${status} for the manifest of ${JSON.stringify(key)}`,
    { region: region.name, status },
  );
}

function isMajority(count: number, regions: readonly unknown[]): boolean {
  return count * 2 > regions.length;
}

function isStale({ error }: FailedAttempt): boolean {
  return error.code === "MANIFEST_STALE";
}

function isAbsent({ error }: FailedAttempt): boolean {
  return error.code === "OBJECT_NOT_FOUND";
}

/** @param failures of the regions that did not stay silent. */
function verdict(
  key: string,
  regions: readonly ManifestSourceRegion[],
  failures: readonly FailedAttempt[],
): AgaroseError {
  const unusable = failures.find(({ error }) => isUnusable(error));
  if (unusable) return unusable.error;
  const all = regions.length;
  const denied = failures.filter(({ error }) => error.details["status"] === 403).length;
  // Where all that is absent is denied, nothing says that the object does not exist: a wrong policy looks the same.
  if (isMajority(denied, regions) && denied === countAbsent(failures)) {
    return deniedByMost(key, denied, regions);
  }
  const tombstone = failures.find((failure) => isAbsent(failure) && failure.error.details["generation"] !== undefined);
  const absent = countAbsent(failures) + (tombstone ? failures.filter(isStale).length : 0);
  // A put leaves its manifest in a majority of the regions, so a majority that knows nothing settles it.
  if (isMajority(absent, regions)) {
    if (tombstone) return tombstone.error;
    return new AgaroseError(
      "OBJECT_NOT_FOUND",
      HAS_MESSAGES &&
        `no object ${JSON.stringify(key)} (${absent} of ${all} regions say so): check the key with ` +
          "`agarose ls`, and that the buckets can be read by anyone with `agarose doctor`",
      { key, absent, regions: all },
    );
  }
  const codes = regions.map((region) => {
    const failure = failures.find(({ name }) => name === region.name);
    return { region: region.name, code: failure?.error.code ?? "READ_TIMEOUT" };
  });
  return new AgaroseError(
    "NO_SOURCE",
    HAS_MESSAGES &&
      `no manifest of ${JSON.stringify(key)}: ${all - absent} of ${all} regions failed ` +
        `(${codes.map(({ region, code }) => `${region} ${code}`).join(", ")}): retry once they answer`,
    { key, failures: codes },
  );
}

/** The error of a read whose every absent copy is a 403: a wrong policy looks the same as an absent object. */
export function deniedByMost(key: string, denied: number, { length: all }: readonly unknown[]): AgaroseError {
  return new AgaroseError(
    "NO_SOURCE",
    HAS_MESSAGES &&
      `no manifest of ${JSON.stringify(key)}: ${denied} of ${all} regions deny access (403): check their policies and ` +
        "credentials with `agarose doctor`, and allow listing so that missing keys answer 404",
    { key, denied, regions: all },
  );
}

/** Whether it says that a copy of the manifest was there but could not be used. */
export function isUnusable({ code }: AgaroseError): boolean {
  return /^(MANIFEST_(?!STALE)\w+|REGION_UNKNOWN|CODE_INVALID|SIGNATURE_UNSUPPORTED)$/.test(code);
}

function countAbsent(failures: readonly FailedAttempt[]): number {
  return failures.filter(isAbsent).length;
}
