/**
 * Runs many schedules, and prints the smallest failing one with its trace.
 *
 *     node packages/storage/test/interleavings/soak.ts [schedules] [first seed] [family of families.ts]
 */
import { loadEngines } from "./engines.ts";
import { FAMILIES } from "./schedules/families.ts";
import { scheduleOf } from "./schedules/schedule.ts";
import { search } from "./schedules/search.ts";

const [schedules = "1000", first = String(Date.now() % 1_000_000_000), family] = process.argv.slice(2);
const engines = await loadEngines();
const found = await search({
  engines,
  firstSeed: Number(first),
  schedules: Number(schedules),
  scheduleOf: family === undefined ? scheduleOf : FAMILIES[family]!,
  onProgress: (done) => process.stderr.write(`${done} schedules\n`),
});
console.log(found.text);
process.exitCode = found.failure ? 1 : 0;
