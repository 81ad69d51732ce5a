/**
 * `npm run lab`: simulates policies, the ablation, and layouts under faults, and writes them beside what browsers have
 * measured to one page.
 *
 * `--quick` simulates one world a question with few requests. `--measure` measures in browsers first, which takes
 * hours. `--output FILE` is where the page goes; by default dist/lab/index.html.
 */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { labPage } from "./page.ts";
import { BENCHES, recordedPlots } from "./recorded.ts";
import { simulatedPlots } from "./simulated.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    measure: { type: "boolean", default: false },
    output: { type: "string", default: join(ROOT, "dist/lab/index.html") },
  },
});
const { quick, measure, output } = values;

if (measure) {
  execFileSync(process.execPath, [join(ROOT, "e2e/bench/main.ts"), ...BENCHES], { stdio: "inherit" });
}
const recorded = recordedPlots(await readFile(join(ROOT, "docs/internals/benchmarks.md"), "utf8"));
const simulated = await simulatedPlots({ quick, progress: (line) => console.error(`  ${line}`) });
const file = resolve(output);
await mkdir(dirname(file), { recursive: true });
await writeFile(file, labPage([...recorded, ...simulated], { commit: commit(), at: new Date().toISOString() }));
console.log(`${file}: ${recorded.length} plots on record, ${simulated.length} simulated now`);

/** The commit, with `-dirty` where files differ from it. */
function commit(): string {
  return execFileSync("git", ["describe", "--always", "--dirty", "--exclude", "*"], { cwd: ROOT }).toString().trim();
}
