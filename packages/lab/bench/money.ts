/**
 * Money beside milliseconds: what a PoP's readers wait and pay, by what an hour of waiting is worth. Prints the tables
 * of docs/internals/policies-measured.md.
 *
 *   node packages/lab/bench/money.ts    # some seconds
 *
 * The first PoP of `five-together.json` without peers plans once, by the true popularity of 10 reads a second. Three of
 * the six regions charge for egress. Objects have 0.2 to 6.4 MB.
 */

import { readFileSync } from "node:fs";
import { Planner } from "@agarose/solver/internal/planner/planner";
import { pricesInMs } from "@agarose/solver/internal/planner/prices";
import { seededRandom } from "@agarose/solver/random";
import type { RegionEstimate } from "@agarose/solver/internal/options/sources";
import type { ObjectShape } from "@agarose/solver/internal/planner/object-shape";
import { readMs } from "@agarose/solver/internal/options/caching-option";
import { nearestRegions, sourcesOf } from "@agarose/solver/internal/planner/cache-options";

const K = 9;
const M = 3;
const OBJECTS = 300;
const PERIOD_REQUESTS = 600;
/** As many as a planner replays. */
const COUNTED = 20_000;
const DELTA = 1;
const CAPACITY = 20e6;
const DEAR = new Map(["frankfurt", "n-virginia", "tokyo"].map((name) => [name, 0.09]));

const scenario = JSON.parse(
  readFileSync(new URL("../../solver/scenarios/five-together.json", import.meta.url), "utf8"),
) as {
  readonly pops: readonly { readonly regionLatencyMs: Readonly<Record<string, number>>; cacheLatencyMs: number }[];
};
const { regionLatencyMs, cacheLatencyMs: cacheMs } = scenario.pops[0]!;
const regions = Object.entries(regionLatencyMs).map(([name, meanMs]): RegionEstimate => {
  return { name, meanMs, sdMs: 0.3 * meanMs, down: false };
});
const random = seededRandom(1);
const shapes = Array.from({ length: OBJECTS }, (_, o): ObjectShape => {
  const chunkBytes = Math.round((2e5 * 2 ** random.integer(6)) / K);
  const placement = Array.from({ length: K + M }, (_chunk, chunk) => regions[(o + chunk) % regions.length]!.name);
  return { key: `o${o}`, version: `o${o}`, k: K, m: M, placement, stripes: 1, chunkBytes, shardBytes: chunkBytes };
});
const weights = shapes.map((_, rank) => (rank + 1) ** -1.1);
const total = weights.reduce((sum, weight) => sum + weight, 0);

interface Priced {
  /** Undefined: milliseconds alone count. */
  readonly waitingPerHour: number | undefined;
  readonly storagePerGbMonth?: number;
  readonly capacityBytes?: number;
}

/** Returns what reads wait and pay with the planned cache. */
function plan({ waitingPerHour, storagePerGbMonth = 0.5, capacityBytes = CAPACITY }: Priced) {
  const usd = { writePerMillion: 5, storagePerGbMonth, egressPerGb: DEAR };
  const prices = waitingPerHour === undefined ? undefined : pricesInMs({ waitingPerHour, ...usd });
  const options = { policy: "exact", capacityBytes, cacheMs, delta: DELTA, functionalPop: 0, slots: OBJECTS };
  const popularity = weights.map((weight) => (PERIOD_REQUESTS * weight) / total);
  const { planned } = new Planner({ ...options, prices }).plan({
    nowMs: 60_000,
    // The policy counts requests: many, so that rounding hardly matters.
    requests: shapes.map(({ key }, o) => {
      return { key, requests: Math.round((COUNTED * weights[o]!) / total), popularity: popularity[o]! };
    }),
    objects: new Map(shapes.map((shape) => [shape.key, shape])),
    regions,
    ledger: new Map(),
  });
  const cached = new Map(planned.map(({ object, chunks }) => [object.key, chunks]));
  let ms = 0;
  let egress = 0;
  let bytes = 0;
  for (const [o, shape] of shapes.entries()) {
    const chunks = cached.get(shape.key) ?? [];
    const share = weights[o]! / total;
    ms += share * readMs(sourcesOf(shape, regions), chunks, shape, { cacheMs, delta: DELTA });
    const asked = nearestRegions(shape, chunks, { regions, delta: DELTA });
    egress += share * asked.reduce((sum, name) => sum + ((DEAR.get(name) ?? 0) * shape.chunkBytes) / 1e9, 0);
    bytes += chunks.length * shape.chunkBytes;
  }
  return { ms, usdPerMillion: 1e6 * egress, bytes };
}

const print = (cells: readonly string[]): boolean => process.stdout.write(`| ${cells.join(" | ")} |\n`);

print(["an hour of waiting", "mean ms", "egress of a million reads", "both at $1 an hour"]);
print(["---", "---", "---", "---"]);
for (const waitingPerHour of [undefined, 10, 1, 0.1]) {
  const { ms, usdPerMillion } = plan({ waitingPerHour });
  const both = usdPerMillion + (ms * 1e6) / 3_600_000;
  const name = waitingPerHour === undefined ? "milliseconds alone" : `$${waitingPerHour}`;
  print([name, ms.toFixed(0), `$${usdPerMillion.toFixed(1)}`, `$${both.toFixed(1)}`]);
}

process.stdout.write("\n");
print(["a GB a month", "kept", "mean ms"]);
print(["---", "---", "---"]);
for (const storagePerGbMonth of [0.5, 500, 5_000, 50_000]) {
  const { ms, bytes } = plan({ waitingPerHour: 1, storagePerGbMonth, capacityBytes: 1e12 });
  print([`$${storagePerGbMonth}`, `${(bytes / 1e6).toFixed(0)} MB`, ms.toFixed(0)]);
}
