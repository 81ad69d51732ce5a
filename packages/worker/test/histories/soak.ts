/**
 * Plays histories of a PoP and stops at the first that breaks the bound:
 *
 *     node packages/worker/test/histories/soak.ts [count] [first seed]
 */
import { playHistory } from "./pop-history.ts";

const [count = 1_000, first = 1] = process.argv.slice(2).map(Number);
const sums = { reads: 0, bound: 0, stale: 0, unknown: 0, unconfirmed: 0, unchanged: 0, died: 0 };
const startMs = performance.now();
for (let seed = first; seed < first + count; seed++) {
  const report = await playHistory(seed);
  for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += report[name];
  if ((seed - first + 1) % 500 === 0) console.log(`${seed - first + 1} histories`, sums);
  if (report.violation === undefined) continue;
  console.log(`seed ${seed}:\n${report.violation}`);
  process.exitCode = 1;
  break;
}
console.log(`${count} histories from seed ${first} in ${((performance.now() - startMs) / 1_000).toFixed(0)} s`, sums);
