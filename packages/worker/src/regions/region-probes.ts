/**
 * Probes: whether each region answers a real GET and how long that takes. Every fifth period a probe also reads part of
 * a chunk, which shows the transfer rate.
 */
import type { Clock, FetchPort } from "@agarose/core";
import { chunkBytes, chunkName, manifestName, objectUrl, type Manifest } from "@agarose/core/format";
import { Connections } from "../runtime/connections.ts";
import { timedMs } from "../runtime/async.ts";
import type { RegionProbe } from "./region-estimates.ts";
import type { ConfiguredRegion } from "./region-settings.ts";

/** Probes of each region in a period. */
export const PROBES_PER_PERIOD = 3;
const PROBE_TIMEOUT_MS = 10_000;
/** The key need not exist: "not found" comes from the bucket itself and takes as long as any other answer. */
const PROBE_KEY = "agarose-probe";

/** Bytes that a sized probe reads of a chunk: 14 GB of egress a year and region. */
const SIZED_BYTES = 128 * 1024;
/** Sized probes run once in so many periods, because egress costs money. */
export const SIZED_EVERY = 5;
/** Smaller reads show no more than a probe does. */
const SIZED_BYTES_MIN = 64 * 1024;
/** Objects that are looked at for chunks to read. */
const SIZED_OBJECTS_MAX = 5;

/** The beginning of a chunk. */
interface SizedTarget {
  readonly name: string;
  readonly bytes: number;
}

interface ProbeOptions {
  readonly regions: readonly ConfiguredRegion[];
  /** By region, what to read beside the probes. */
  readonly sized?: ReadonlyMap<string, SizedTarget>;
  readonly fetch: FetchPort;
  readonly clock: Clock;
}

/** Probes each region several times, as many at once as there are connections. Never rejects. */
export async function probeRegions(options: ProbeOptions): Promise<RegionProbe[]> {
  // A probe that waits for its connection would count the wait as the region's.
  const connections = new Connections();
  const rounds = Array.from({ length: PROBES_PER_PERIOD }, () =>
    Promise.all(options.regions.map((region) => connections.run(() => probe(region, options)))),
  );
  const results = await Promise.all(rounds);
  // Transfers come last, so that no probe shares their bandwidth.
  const sized = await Promise.all(
    options.regions.map((region, i) => {
      const answers = results.some((round) => Number.isFinite(round[i]));
      return answers ? connections.run(() => sizedProbe(region, options)) : undefined;
    }),
  );
  return options.regions.map(({ name }, i) => {
    const transfer = sized[i];
    return { region: name, ms: results.map((round) => round[i]!), ...(transfer && { sized: transfer }) };
  });
}

/** Returns for each region a chunk to read part of, from the first of `keys` with large chunks there. Never rejects. */
export async function sizedTargets(
  keys: readonly string[],
  findManifest: (key: string) => Promise<Manifest>,
): Promise<Map<string, SizedTarget>> {
  const targets = new Map<string, SizedTarget>();
  for (const key of keys.slice(0, SIZED_OBJECTS_MAX)) {
    const manifest = await findManifest(key).catch(() => undefined);
    if (!manifest) continue;
    const bytes = Math.min(SIZED_BYTES, chunkBytes(manifest));
    if (bytes < SIZED_BYTES_MIN) continue;
    for (const [chunk, region] of manifest.placement.entries()) {
      if (!targets.has(region)) targets.set(region, { name: chunkName(key, manifest.upload, chunk), bytes });
    }
  }
  return targets;
}

async function sizedProbe(
  region: ConfiguredRegion,
  options: ProbeOptions,
): Promise<{ bytes: number; ms: number } | undefined> {
  const target = options.sized?.get(region.name);
  if (!target) return undefined;
  const { bytes, name } = target;
  return { bytes, ms: await timed(region, name, { range: `bytes=0-${bytes - 1}` }, options, bytes) };
}

function probe(region: ConfiguredRegion, options: ProbeOptions): Promise<number> {
  return timed(region, manifestName(PROBE_KEY), {}, options, 0);
}

/** Resolves to the milliseconds until `bytes` bytes of the answer arrived, or to `Infinity` without a usable answer. */
function timed(
  region: ConfiguredRegion,
  name: string,
  headers: Record<string, string>,
  { fetch, clock }: ProbeOptions,
  bytes: number,
): Promise<number> {
  const ask = async (signal: AbortSignal): Promise<boolean> => {
    const { status, body } = await fetch(objectUrl(region.popUrl, name), { headers, signal });
    if (bytes > 0) return status === 206 && (await new Response(body).arrayBuffer()).byteLength === bytes;
    await body?.cancel();
    // A bucket whose listing is private answers 403 for what does not exist; redirects and 5xx are no answer.
    return status < 300 || status === 403 || status === 404;
  };
  return timedMs(ask, PROBE_TIMEOUT_MS, clock);
}
