/**
 * Probes: how long each region takes to answer a real GET, and whether it does.
 */
import { manifestName, objectUrl, type Clock, type FetchPort } from "@agarose/core";
import { Connections } from "./connections.ts";
import { within } from "./deadline.ts";
import type { Region } from "./env.ts";
import type { RegionProbe } from "./region-estimates.ts";

export const PROBES_PER_PERIOD = 3;
const PROBE_TIMEOUT_MS = 10_000;
/** Needs not exist: "not found" comes from the bucket itself and takes as long as an answer that is. */
const PROBE_KEY = "agarose-probe";

export interface ProbeOptions {
  readonly regions: readonly Region[];
  readonly fetch: FetchPort;
  readonly clock: Clock;
}

/** Probes each region several times, as many at once as there are connections. Never rejects. */
export async function probeRegions(options: ProbeOptions): Promise<RegionProbe[]> {
  // Not more, because a probe that waits for its connection would count the waiting as the region's.
  const connections = new Connections();
  const rounds = Array.from({ length: PROBES_PER_PERIOD }, () =>
    Promise.all(options.regions.map((region) => connections.run(() => probe(region, options)))),
  );
  const results = await Promise.all(rounds);
  return options.regions.map(({ name }, i) => ({ region: name, ms: results.map((round) => round[i]!) }));
}

async function probe(region: Region, { fetch, clock }: ProbeOptions): Promise<number> {
  const abort = new AbortController();
  const startMs = clock.now();
  const answer = async (): Promise<number> => {
    const response = await fetch(objectUrl(region.popUrl, manifestName(PROBE_KEY)), { signal: abort.signal });
    await response.body?.cancel();
    return response.status;
  };
  try {
    const status = await within(answer(), PROBE_TIMEOUT_MS, clock, `a probe of region ${region.name}`);
    // A bucket whose listing is private answers 403 for what does not exist; redirects and 5xx are no answer.
    return status < 300 || status === 403 || status === 404 ? clock.now() - startMs : Number.POSITIVE_INFINITY;
  } catch {
    abort.abort();
    return Number.POSITIVE_INFINITY;
  }
}
