/**
 * Sprout (ToN 2017): at the end of each period it chooses d of every object so that the mean of Lemma 1's latency bound
 * is least. The bound counts the load that the reads put on the regions (`optimize.ts`). The cache should hold
 * functional chunks.
 *
 * Departures: rates are Agar's moving average over periods instead of detected time bins. A region is as many servers
 * as it has chunks of one object. Its latency is that of a chunk at the present load, from which follows the service
 * time alone. Reads ask for the nearest chunks, as under every other policy, and not by the probabilities that the
 * optimiser finds beside d. A cache without regions has fixed latencies and no queues. The bound is then the time of
 * the slowest chunk, and the problem is the knapsack of `exact`.
 */
import type { LatencyLaw } from "../../../options/latency.ts";
import { lognormalServer, type Server } from "./latency-bound.ts";
import { optimizeSprout } from "./optimize.ts";
import type { SproutFile } from "./files.ts";
import { configureExactly } from "../../../policy/configure.ts";
import { PeriodPopularity } from "../../../policy/period-popularity.ts";
import { applyConfiguration, type Policy, type PolicyCache, type StorageView } from "../../../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../../../policy/snapshot.ts";

/** The plan omits objects with fewer requests per period. */
const POPULARITY_MIN = 1e-2;
/** Least deviation of a latency as a share of its mean: at 0 the bound has corners, where it has no gradient. */
const VARIATION_MIN = 0.05;
/** Least mean of a server in ms: a service time must be positive. */
const MEAN_MS_MIN = 1e-3;

/** Creates the policy for `cache`, as new or from a snapshot. `alpha`: weight of the newest period. */
export function sprout(cache: PolicyCache, alpha: number, state?: SnapshotReader): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha, state);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => {
      const requests = popularity.endPeriod();
      applyConfiguration(
        cache,
        cache.storage ? plan(cache, cache.storage, requests) : configureExactly(cache, requests).count,
      );
    },
    forget: (object) => popularity.forget(object),
    snapshot: () => packSnapshot("sprout", cache.objects, popularity.lists()),
  };
}

/** Chunks to keep of each object. Rates are in requests per period, because only their shares of the load matter. */
function plan(cache: PolicyCache, storage: StorageView, requests: Float64Array): Uint8Array {
  const count = new Uint8Array(cache.objects);
  const objects: number[] = [];
  const files: SproutFile[] = [];
  for (let o = 0; o < cache.objects; o++) {
    const k = cache.kOf(o);
    const servers = serversOf(storage.regionsOf(o), storage.latency.length);
    // Leaves out objects that cannot be read at all: fewer than k functional chunks cannot help them.
    if (requests[o]! < POPULARITY_MIN || servers.length < k || cache.chunkWeight[o]! > cache.capacity) continue;
    objects.push(o);
    files.push({ readsPerSecond: requests[o]!, k, servers, chunkWeight: cache.chunkWeight[o]! });
  }
  if (files.length === 0) return count;
  const servers = asServers(storage, files);
  const { cached } = optimizeSprout(files, servers, Math.floor(cache.capacity));
  for (const [i, o] of objects.entries()) count[o] = cached[i]!;
  return count;
}

/** Server numbers of an object's chunks: the n-th chunk in a region is on the region's n-th server. */
function serversOf(regions: readonly number[], regionCount: number): number[] {
  const seen = new Int32Array(regionCount);
  return regions.map((region) => seen[region]!++ * regionCount + region);
}

/**
 * A server that serves n chunks at a time, each in s = latency x (1 - u) on average, is busy for the share u of the
 * time when arrivals x s / n = u. So n follows from the arrivals of reads that ask all servers alike.
 */
function asServers({ latency, utilization }: StorageView, files: readonly SproutFile[]): Server[] {
  const count = 1 + Math.max(...files.flatMap(({ servers }) => servers));
  const arrivals = new Float64Array(count);
  for (const { servers, k, readsPerSecond } of files) {
    for (const j of servers) arrivals[j]! += (readsPerSecond * k) / servers.length;
  }
  return Array.from(arrivals, (rate, j) => {
    const server = asServer(latency[j % latency.length]!, 1 - utilization);
    return { ...server, parallel: utilization > 0 && rate > 0 ? (rate * server.mean) / utilization : Infinity };
  });
}

function asServer({ meanMs, sdMs = 0 }: LatencyLaw, factor: number): Server {
  const mean = Math.max(MEAN_MS_MIN, meanMs * factor);
  return lognormalServer(mean, Math.max(VARIATION_MIN * mean, sdMs * factor));
}
