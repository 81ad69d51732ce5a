/**
 * How long the exact knapsack takes, with its proof: prints the table of docs/internals/benchmarks.md. Each instance
 * has nine options an object, the values of Zipf popularity, and room for a tenth of all chunks.
 */
import { solveKnapsack } from "@agarose/solver/knapsack";
import { seededRandom } from "@agarose/solver/random";
import { drawInstance, FAMILIES } from "@agarose/solver/testing";

const OBJECTS = [1_000, 10_000, 100_000, 1_000_000];
const SEEDS = [1, 2, 3];
const ROUNDS = 5;

console.log("| objects | median ms | slowest ms | CPU ms | proven optimal |");
console.log("| --- | ---: | ---: | ---: | ---: |");
for (const objects of OBJECTS) {
  const times: number[] = [];
  let cpuUs = 0;
  let proven = 0;
  for (const seed of SEEDS) {
    const size = { objects, options: 9, weightMax: 9, fill: 0.1 };
    const instance = drawInstance(FAMILIES["zipf popularity, concave"]!, size, seededRandom(seed));
    solveKnapsack(instance);
    for (let round = 0; round < ROUNDS; round++) {
      const begun = performance.now();
      const cpu = process.cpuUsage();
      if (solveKnapsack(instance).optimal) proven++;
      const { user, system } = process.cpuUsage(cpu);
      cpuUs += user + system;
      times.push(performance.now() - begun);
    }
  }
  const sorted = times.toSorted((a, b) => a - b);
  const runs = times.length;
  const row = [
    objects.toLocaleString("en"),
    sorted[runs >> 1]!.toFixed(1),
    sorted.at(-1)!.toFixed(1),
    (cpuUs / 1_000 / runs).toFixed(1),
    `${proven} of ${runs}`,
  ];
  console.log(`| ${row.join(" | ")} |`);
}
