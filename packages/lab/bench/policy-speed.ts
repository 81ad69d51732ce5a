/**
 * How many requests a policy decides about per second: prints the table of docs/internals/benchmarks.md. Policies
 * alternate.
 */

import { COMPARED } from "@agarose/solver/internal/policies/compared";
import { createPolicy } from "@agarose/solver/internal/policies/registry";
import { seededRandom } from "@agarose/solver/random";
import type { PolicyCache } from "@agarose/solver/internal/policy/policy";

const POLICIES = ["lru", "gdsf", "w-tinylfu", "s3-fifo", "sieve", "exact", "online", "adaptive"];
/** Objects, chunks of cache, requests. */
const WORLDS = [
  [300, 90, 200_000],
  [1_000, 100, 200_000],
  [100_000, 9_000, 50_000],
] as const;
const ROUNDS = 3;
const K = 9;
const PERIOD_REQUESTS = 3_000;
/** What d chunks save of a read over Table I of Agar, in ms. */
const SAVED_MS = [0, 0, 1_200, 1_200, 3_200, 3_200, 4_000, 4_000, 4_400, 4_561];

/** A cache of equal objects that only counts, so that the policy takes the time. */
class PlainCache implements PolicyCache {
  readonly objects: number;
  readonly capacity: number;
  readonly chunkWeight: Float64Array;
  used = 0;
  readonly #count: Int32Array;

  constructor(objects: number, capacity: number) {
    this.objects = objects;
    this.capacity = capacity;
    this.chunkWeight = new Float64Array(objects).fill(1);
    this.#count = new Int32Array(objects);
  }

  kOf(): number {
    return K;
  }

  countOf(object: number): number {
    return this.#count[object]!;
  }

  savedMs(_object: number, d: number): number {
    return SAVED_MS[d]!;
  }

  keep(object: number, d: number): void {
    this.used += d - this.#count[object]!;
    this.#count[object] = d;
  }
}

/** Zipf with exponent 1. */
function requestsOf(objects: number, count: number): Int32Array {
  const random = seededRandom(1);
  const cumulative = new Float64Array(objects);
  let sum = 0;
  for (let rank = 0; rank < objects; rank++) cumulative[rank] = sum += 1 / (rank + 1);
  return Int32Array.from({ length: count }, () => {
    const target = random.next() * sum;
    let low = 0;
    for (let high = objects - 1; low < high;) {
      const middle = (low + high) >> 1;
      if (cumulative[middle]! > target) high = middle;
      else low = middle + 1;
    }
    return low;
  });
}

function perSecond(name: string, objects: number, capacity: number, requests: Int32Array): number {
  const policy = createPolicy(name, new PlainCache(objects, capacity), {}, undefined, COMPARED);
  // CPU time of this process: other work on the machine disturbs it less than elapsed time.
  const begun = process.cpuUsage();
  for (const [i, object] of requests.entries()) {
    policy.onRequest(object, i / 100);
    if (i % PERIOD_REQUESTS === PERIOD_REQUESTS - 1) policy.onPeriod?.(i / 100);
  }
  const { user, system } = process.cpuUsage(begun);
  return (1e6 * requests.length) / (user + system);
}

const rows = POLICIES.map((name) => [name]);
for (const [objects, capacity, count] of WORLDS) {
  const requests = requestsOf(objects, count);
  const rates = POLICIES.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [p, name] of POLICIES.entries()) rates[p]!.push(perSecond(name, objects, capacity, requests));
  }
  for (const [p, own] of rates.entries()) {
    const median = own.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
    rows[p]!.push(Math.round(Number(median.toPrecision(2))).toLocaleString("en"));
  }
}
const head = ["policy", ...WORLDS.map(([objects, capacity]) => `${objects} objects, ${capacity} chunks`)];
for (const cells of [head, head.map((_, column) => (column === 0 ? "---" : "---:")), ...rows]) {
  console.log(`| ${cells.join(" | ")} |`);
}
