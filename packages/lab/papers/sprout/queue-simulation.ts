/**
 * Simulates the reads that Sprout's bound is about (ToN 2017, section III). Chunks queue in order of arrival, a read
 * waits for its last chunk, and cached chunks take no time.
 */
import { cumulate, sampleIndex, seededRandom, type Random } from "@agarose/solver/random";
import type { SproutFile } from "@agarose/solver/internal/policies/papers/sprout/files";
import type { SproutPlan } from "@agarose/solver/internal/policies/papers/sprout/optimize";

export interface QueueStudy {
  readonly files: readonly SproutFile[];
  readonly servers: number;
  /** Draws the service time of a chunk at a server. */
  readonly serviceSeconds: (server: number, random: Random) => number;
  /** Reads that count. A fifth as many come first, to fill queues and caches. */
  readonly reads: number;
  readonly seed: number;
}

/**
 * `plan`: functional chunks and probabilities of a plan. `lruFiles`: an LRU of whole files; others are read from their
 * first k servers.
 */
type QueueCache = { readonly plan: Pick<SproutPlan, "probability"> } | { readonly lruFiles: number };

interface QueueResult {
  readonly meanSeconds: number;
  /** Share of the needed chunks that the cache holds. */
  readonly chunkHitRatio: number;
}

/** Simulates the study. Equal seeds give equal arrivals and files for every cache. */
export function simulateQueues(study: QueueStudy, cache: QueueCache): QueueResult {
  const { files, servers, reads, seed, serviceSeconds } = study;
  const arrivals = seededRandom(seed).fork(1);
  const random = seededRandom(seed).fork(2);
  const rates = cumulate(files.map(({ readsPerSecond }) => readsPerSecond));
  const choose = "plan" in cache ? planned(cache.plan) : leastRecentlyUsed(files, cache.lruFiles);
  const freeAt = new Float64Array(servers);
  const before = Math.floor(reads / 5);
  let now = 0;
  let sum = 0;
  let cached = 0;
  let needed = 0;
  for (let read = -before; read < reads; read++) {
    now += arrivals.exponential() / rates.at(-1)!;
    const file = sampleIndex(rates, arrivals);
    let done = now;
    const asked = choose(file, random);
    for (const server of asked) {
      freeAt[server] = Math.max(now, freeAt[server]!) + serviceSeconds(server, random);
      done = Math.max(done, freeAt[server]!);
    }
    if (read < 0) continue;
    sum += done - now;
    needed += files[file]!.k;
    cached += files[file]!.k - asked.length;
  }
  return { meanSeconds: sum / reads, chunkHitRatio: cached / needed };
}

/**
 * Draws different servers, each with exactly its probability: probabilistic scheduling (Theorem 1) by systematic
 * sampling. The probabilities must sum to a whole number.
 */
export function drawServers(probability: Float64Array, random: Random): number[] {
  const servers: number[] = [];
  let next = random.next();
  let sum = 0;
  for (let j = 0; j < probability.length; j++) {
    sum += probability[j]!;
    if (sum <= next) continue;
    servers.push(j);
    next += 1;
  }
  return servers;
}

function planned({ probability }: Pick<SproutPlan, "probability">): (file: number, random: Random) => number[] {
  return (file, random) => drawServers(probability[file]!, random);
}

function leastRecentlyUsed(files: readonly SproutFile[], capacity: number): (file: number) => readonly number[] {
  const recent = new Set<number>();
  return (file) => {
    const isHit = recent.delete(file);
    recent.add(file);
    if (recent.size > capacity) recent.delete(recent.values().next().value!);
    return isHit ? [] : files[file]!.servers.slice(0, files[file]!.k);
  };
}
