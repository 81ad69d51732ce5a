/**
 * What `POLICY=sprout` plans against the best of longer searches, and its CPU time: prints the table of
 * docs/internals/policies-measured.md. One PoP with the regions of `five-together.json`, by objects and load.
 */

import { asServers } from "@agarose/solver/internal/policies/papers/sprout/index";
import { optimizeSprout, type SproutLimits } from "@agarose/solver/internal/policies/papers/sprout/optimize";
import { seededRandom } from "@agarose/solver/random";

const SEEDS = [1, 2, 3];
const REGION_MS = [80, 200, 600, 1400, 3400, 4600];
const CHUNKS = Array.from({ length: 12 }, (_, chunk) => chunk);
const CAPACITY = 90;
/** The objective is not convex, so more steps in a round may also end at another plan. */
const LONGER: readonly SproutLimits[] = [
  { stepsMax: 2_000, gainMin: 1e-6 },
  { stepsMax: 8, exchangesMax: 20 },
  { stepsMax: 300, exchangesMax: 20 },
];

const cells: string[][] = [];
for (const objects of [20, 100, 500]) {
  for (const utilization of [0, 0.3, 0.6, 0.9]) {
    const lost: number[] = [];
    const cpuMs: number[] = [];
    for (const seed of SEEDS) {
      const random = seededRandom(seed);
      const files = Array.from({ length: objects }, (_, rank) => ({
        readsPerSecond: (rank + 1) ** -1.1 * (0.8 + 0.4 * random.next()),
        k: 9,
        servers: CHUNKS,
      }));
      const latency = REGION_MS.map((meanMs) => ({ meanMs, sdMs: 0.3 * meanMs }));
      const servers = asServers({ latency, utilization, regionsOf: () => [] }, files);
      const begun = process.cpuUsage();
      const { meanBound } = optimizeSprout(files, servers, CAPACITY);
      const { user, system } = process.cpuUsage(begun);
      cpuMs.push((user + system) / 1_000);
      const best = Math.min(...LONGER.map((limits) => optimizeSprout(files, servers, CAPACITY, limits).meanBound));
      lost.push(meanBound / best - 1);
    }
    const worst = (100 * Math.max(0, ...lost)).toFixed(2);
    cells.push([`${objects}`, `${100 * utilization}%`, `${worst}%`, Math.max(...cpuMs).toFixed(0)]);
  }
}
console.log("| objects | load of the regions | most lost of three seeds | CPU ms |");
console.log("| --- | --- | --- | --- |");
for (const row of cells) console.log(`| ${row.join(" | ")} |`);
