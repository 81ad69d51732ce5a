/**
 * Finds the manifest of a key in the buckets, nearest region first, asking the next one when a region fails or is late.
 */
import { readChecked } from "./body.ts";
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";
import { staggeredRace, type FailedAttempt } from "./staggered-race.ts";
import { manifestName, objectUrl, parseKey } from "../format/key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "../latency.ts";
import { parseManifest, refuseTooLarge, type Manifest } from "../format/manifest.ts";
import type { Clock, FetchPort } from "../ports.ts";

export interface ManifestSourceRegion {
  readonly name: string;
  readonly url: string;
  readonly latency: LatencyEstimate;
}

export interface FindManifestOptions {
  readonly regions: readonly ManifestSourceRegion[];
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Default 10,000 ms. */
  readonly timeoutMs?: number;
}

/** So long may all regions together take, unless told otherwise. */
const TIMEOUT_MS_DEFAULT = 10_000;
/** So long a majority that knows nothing of a key waits at most for the others to disagree. */
const DOUBT_MS_MAX = 1_000;

/**
 * The manifest of `key` from the first region that has a sound one.
 *
 * @throws OBJECT_NOT_FOUND when a majority of the regions say so and no other disagrees in its expected time,
 *   NO_SOURCE when too few answer, the manifest's own error when every copy found is unusable, KEY_INVALID,
 *   KEY_TOO_LONG, ABORTED.
 */
export async function findManifest(key: string, options: FindManifestOptions): Promise<Manifest> {
  const { regions, fetch, clock, signal, timeoutMs = TIMEOUT_MS_DEFAULT } = options;
  parseKey(key);
  const names = new Set(regions.map(({ name }) => name));
  const stop = new AbortController();
  let failed: readonly FailedAttempt[] = [];
  const giveUp = (): void => stop.abort(verdict(key, regions, failed));
  const cancelDeadline = clock.after(timeoutMs, giveUp);
  let cancelDoubt: (() => void) | undefined;
  const attempts = regions
    .toSorted((a, b) => a.latency.meanMs - b.latency.meanMs)
    .map((region) => ({
      name: region.name,
      patienceMs: hedgeAfterMs(region.latency),
      start: (own: AbortSignal) => fetchManifest(key, region, names, fetch, own),
    }));
  try {
    return await staggeredRace(attempts, {
      clock,
      signal: AbortSignal.any([stop.signal, ...(signal ? [signal] : [])]),
      afterFailure: ({ code }, failures) => {
        failed = failures;
        if (code !== "OBJECT_NOT_FOUND") return "next";
        if (countAbsent(failures) * 2 > regions.length) cancelDoubt ??= clock.after(doubtMs(regions, failures), giveUp);
        // Most likely there is no such object, and asking one region after the other would only delay saying so.
        return "all";
      },
      allFailed: (failures) => verdict(key, regions, failures),
    });
  } finally {
    cancelDeadline();
    cancelDoubt?.();
    stop.abort();
  }
}

/**
 * How long the silent regions get once a majority knows nothing: their expected time, so that a dead one delays
 * nobody.
 */
function doubtMs(regions: readonly ManifestSourceRegion[], failures: readonly FailedAttempt[]): number {
  const silent = regions.filter((region) => !failures.some(({ name }) => name === region.name));
  return Math.min(DOUBT_MS_MAX, Math.max(0, ...silent.map(({ latency }) => hedgeAfterMs(latency))));
}

async function fetchManifest(
  key: string,
  region: ManifestSourceRegion,
  names: ReadonlySet<string>,
  fetch: FetchPort,
  signal: AbortSignal,
): Promise<Manifest> {
  const response = await fetch(objectUrl(region.url, manifestName(key)), { signal });
  const { status, body } = response;
  if (status === 200) return parseManifest(await readChecked(response, refuseTooLarge), { key, regions: names });
  await body?.cancel();
  // A bucket that anyone may read but not list hides what is absent behind a 403.
  const code = status === 404 || status === 403 ? "OBJECT_NOT_FOUND" : "SOURCE_FAILED";
  throw new AgaroseError(
    code,
    HAS_MESSAGES && `region ${region.name} answered ${status} for the manifest of ${JSON.stringify(key)}`,
    {
      region: region.name,
      status,
    },
  );
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
  const absent = countAbsent(failures);
  // A put leaves its manifest in at least m + 1 regions and aims for all, so a majority that knows nothing settles it.
  if (absent * 2 > all) {
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

/** Whether it says that a copy of the manifest was there but could not be used. */
export function isUnusable({ code }: AgaroseError): boolean {
  return /^(MANIFEST_\w+|REGION_UNKNOWN|CODE_INVALID)$/.test(code);
}

function countAbsent(failures: readonly FailedAttempt[]): number {
  return failures.filter(({ error }) => error.code === "OBJECT_NOT_FOUND").length;
}
