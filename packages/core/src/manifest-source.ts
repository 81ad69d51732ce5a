/**
 * Finds the manifest of a key in the buckets, nearest region first, asking the next one when a region fails or is late.
 */
import { readChecked } from "./body.ts";
import { AgaroseError, toAgaroseError, type ErrorCode } from "./errors.ts";
import { manifestName, objectUrl, parseKey } from "./key.ts";
import { hedgeAfterMs, type LatencyEstimate } from "./latency.ts";
import { parseManifest, refuseTooLarge, type Manifest } from "./manifest.ts";
import type { Clock, FetchPort } from "./ports.ts";

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
 * @throws OBJECT_NOT_FOUND when a majority of the regions say so and no other disagrees in its expected time, NO_SOURCE
 *   when too few answer, the manifest's own error when every copy found is unusable, KEY_INVALID, KEY_TOO_LONG, ABORTED.
 */
export async function findManifest(key: string, options: FindManifestOptions): Promise<Manifest> {
  parseKey(key);
  if (options.regions.length === 0) {
    throw new AgaroseError("CONFIG_INVALID", "no region is configured: at least 1 is needed");
  }
  return new ManifestSearch(key, options).run();
}

class ManifestSearch {
  readonly #key: string;
  readonly #options: FindManifestOptions;
  /** Nearest first. */
  readonly #regions: readonly ManifestSourceRegion[];
  readonly #names: ReadonlySet<string>;
  readonly #result = Promise.withResolvers<Manifest>();
  readonly #abort = new AbortController();
  readonly #failures = new Map<string, AgaroseError>();
  #started = 0;
  #cancelHedge = (): void => {};
  #cancelDoubt: (() => void) | undefined;

  constructor(key: string, options: FindManifestOptions) {
    this.#key = key;
    this.#options = options;
    this.#regions = options.regions.toSorted((a, b) => a.latency.meanMs - b.latency.meanMs);
    this.#names = new Set(this.#regions.map(({ name }) => name));
  }

  async run(): Promise<Manifest> {
    const { clock, signal, timeoutMs = TIMEOUT_MS_DEFAULT } = this.#options;
    const onAbort = (): void => this.#result.reject(toAgaroseError(signal?.reason, "ABORTED"));
    signal?.addEventListener("abort", onAbort);
    const cancelDeadline = clock.after(timeoutMs, () => this.#giveUp());
    try {
      if (signal?.aborted) onAbort();
      else this.#startNext();
      return await this.#result.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      cancelDeadline();
      this.#cancelHedge();
      this.#cancelDoubt?.();
      this.#abort.abort();
    }
  }

  #startNext(): void {
    this.#cancelHedge();
    const region = this.#regions[this.#started];
    if (!region) return;
    this.#started++;
    this.#cancelHedge = this.#options.clock.after(hedgeAfterMs(region.latency), () => this.#startNext());
    fetchManifest(this.#key, region, this.#names, this.#options.fetch, this.#abort.signal).then(
      this.#result.resolve,
      (error: unknown) => this.#failed(region, toAgaroseError(error, "SOURCE_FAILED")),
    );
  }

  #failed(region: ManifestSourceRegion, error: AgaroseError): void {
    if (this.#abort.signal.aborted) return;
    this.#failures.set(region.name, error);
    if (this.#failures.size === this.#regions.length) {
      this.#giveUp();
    } else if (error.code === "OBJECT_NOT_FOUND") {
      // Most likely there is no such object, and asking one region after the other would only delay saying so.
      while (this.#started < this.#regions.length) this.#startNext();
      this.#doubt();
    } else {
      this.#startNext();
    }
  }

  /** Gives the silent regions their expected time once a majority knows nothing, so that a dead one delays nobody. */
  #doubt(): void {
    if (this.#cancelDoubt || countAbsent(this.#failures) * 2 <= this.#regions.length) return;
    const silent = this.#regions.filter(({ name }) => !this.#failures.has(name));
    const ms = Math.max(...silent.map(({ latency }) => hedgeAfterMs(latency)));
    this.#cancelDoubt = this.#options.clock.after(Math.min(ms, DOUBT_MS_MAX), () => this.#giveUp());
  }

  #giveUp(): void {
    for (const { name } of this.#regions) {
      if (this.#failures.has(name)) continue;
      this.#failures.set(name, new AgaroseError("READ_TIMEOUT", `region ${name} did not answer in time`));
    }
    this.#result.reject(verdict(this.#key, this.#failures));
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
  // A bucket that anyone may read but not list hides what is absent behind a 403.
  if (response.status === 404 || response.status === 403) {
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
  return parseManifest(await readChecked(response, refuseTooLarge), { key, regions: names });
}

function verdict(key: string, failures: ReadonlyMap<string, AgaroseError>): AgaroseError {
  const unusable = [...failures.values()].find(({ code }) => isUnusable(code));
  if (unusable) return unusable;
  const all = failures.size;
  const absent = countAbsent(failures);
  // A put leaves its manifest in at least m + 1 regions and aims for all, so a majority that knows nothing settles it.
  if (absent * 2 > all) {
    return new AgaroseError(
      "OBJECT_NOT_FOUND",
      `no object ${JSON.stringify(key)} (${absent} of ${all} regions say so): check the key with ` +
        "`agarose ls`, and that the buckets can be read by anyone with `agarose doctor`",
      { key, absent, regions: all },
    );
  }
  const codes = [...failures].map(([region, { code }]) => ({ region, code }));
  return new AgaroseError(
    "NO_SOURCE",
    `no manifest of ${JSON.stringify(key)}: ${all - absent} of ${all} regions failed ` +
      `(${codes.map(({ region, code }) => `${region} ${code}`).join(", ")}): retry once they answer`,
    { key, failures: codes },
  );
}

/** Whether a copy of the manifest was there but could not be used. */
function isUnusable(code: ErrorCode): boolean {
  return code.startsWith("MANIFEST_") || code === "REGION_UNKNOWN" || code === "CODE_INVALID";
}

function countAbsent(failures: ReadonlyMap<string, AgaroseError>): number {
  return [...failures.values()].filter(({ code }) => code === "OBJECT_NOT_FOUND").length;
}
