/**
 * Finds the manifest of a key in the buckets, nearest region first, asking the next one when a region fails or is late.
 */
import { AgaroseError, toAgaroseError } from "./errors.ts";
import { manifestName, objectUrl, parseKey } from "./key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "./latency.ts";
import { parseManifest, refuseTooLarge, type Manifest } from "./manifest.ts";
import type { Clock, FetchedResponse, FetchPort } from "./ports.ts";

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
}

/**
 * The manifest of `key` from the first region that has a sound one.
 *
 * @throws OBJECT_NOT_FOUND when a majority of the regions say so, NO_SOURCE when too few answer, the manifest's own
 *   error when every copy found is unusable, KEY_INVALID, KEY_TOO_LONG, ABORTED.
 */
export async function findManifest(key: string, options: FindManifestOptions): Promise<Manifest> {
  parseKey(key);
  const { clock, signal } = options;
  const regions = options.regions.toSorted((a, b) => a.latency.meanMs - b.latency.meanMs);
  const names = new Set(regions.map(({ name }) => name));
  const result = Promise.withResolvers<Manifest>();
  const abort = new AbortController();
  const onAbort = (): void => {
    abort.abort(signal?.reason);
    result.reject(toAgaroseError(signal?.reason, "ABORTED"));
  };
  const failures: { region: string; error: AgaroseError }[] = [];
  let started = 0;
  let cancelTimer: (() => void) | undefined;

  const startNext = (): void => {
    cancelTimer?.();
    const region = regions[started];
    if (!region || abort.signal.aborted) return;
    started++;
    cancelTimer = clock.after(hedgeAfterMs(region.latency), startNext);
    fetchManifest(key, region, names, options.fetch, abort.signal).then(result.resolve, (error: unknown) => {
      failures.push({ region: region.name, error: toAgaroseError(error, "SOURCE_FAILED") });
      if (failures.length === regions.length) result.reject(verdict(key, failures));
      else startNext();
    });
  };

  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort);
  try {
    if (regions.length === 0) throw new AgaroseError("CONFIG_INVALID", "no region is configured: at least 1 is needed");
    startNext();
    return await result.promise;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    cancelTimer?.();
    abort.abort();
  }
}

async function fetchManifest(
  key: string,
  region: ManifestSourceRegion,
  names: ReadonlySet<string>,
  fetch: FetchPort,
  signal: AbortSignal,
): Promise<Manifest> {
  const response = await fetch(objectUrl(region.url, manifestName(key)), { signal });
  if (response.status === 404) {
    await response.body?.cancel();
    throw new AgaroseError("OBJECT_NOT_FOUND", `region ${region.name} has no object ${JSON.stringify(key)}`, { key });
  }
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new AgaroseError("SOURCE_FAILED", `region ${region.name} answered ${response.status} for a manifest`, {
      region: region.name,
      status: response.status,
    });
  }
  return parseManifest(await readCapped(response), { key, regions: names });
}

/** The body of a manifest, refused as soon as it is known to be too large. */
async function readCapped(response: FetchedResponse): Promise<Uint8Array> {
  refuseTooLarge(Number(response.headers.get("content-length") ?? 0));
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early, as by throwing, cancels the body.
  for await (const part of response.body ?? []) {
    bytes += part.length;
    refuseTooLarge(bytes);
    parts.push(part);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function verdict(key: string, failures: readonly { region: string; error: AgaroseError }[]): AgaroseError {
  const absent = failures.filter(({ error }) => error.code === "OBJECT_NOT_FOUND").length;
  const unusable = failures.find(({ error }) => error.code.startsWith("MANIFEST_") || error.code === "REGION_UNKNOWN");
  if (unusable) return unusable.error;
  const all = failures.length;
  // A put leaves its manifest in at least m + 1 regions and aims for all, so a majority that knows nothing settles it.
  if (absent * 2 > all) {
    return new AgaroseError(
      "OBJECT_NOT_FOUND",
      `no object ${JSON.stringify(key)} (${absent} of ${all} regions say so): check the key with \`agarose ls\``,
      { key, absent, regions: all },
    );
  }
  return new AgaroseError(
    "NO_SOURCE",
    `no manifest of ${JSON.stringify(key)}: ${all - absent} of ${all} regions failed ` +
      `(${failures.map(({ region, error }) => `${region} ${error.code}`).join(", ")}): retry once they answer`,
    { key, failures: failures.map(({ region, error }) => ({ region, code: error.code })) },
  );
}
