/**
 * `npm run bench [-- name…]`: measures, prints, and rewrites the sections of docs/internals/benchmarks.md and of the
 * page on performance.
 *
 * `--quick` runs few rounds on small files and writes nothing.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { writeSection } from "./lib/document.ts";
import { comparisons } from "./comparison/comparison.ts";
import { describeLoad } from "@agarose/dev-world/machine";
import { policies } from "./comparison/policies.ts";
import { manyFiles } from "./pages/many-files.ts";
import { memory } from "./pages/memory.ts";
import { pages } from "./pages/pages.ts";
import { performancePage } from "./pages/performance.ts";
import { video } from "./pages/video.ts";
import { nodeSoak } from "./pop/node-soak.ts";
import { nodeThroughput } from "./pop/node-throughput.ts";
import { bulk } from "./s3/bulk.ts";
import { putGet } from "./s3/put-get.ts";
import { readOverhead } from "./reads/read-overhead.ts";

const BENCHES: readonly Bench[] = [
  readOverhead,
  putGet,
  bulk,
  nodeThroughput,
  nodeSoak,
  ...comparisons,
  policies,
  pages,
  performancePage,
  video,
  manyFiles,
  memory,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false } },
});
const unknown = positionals.filter((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(", ")}; there are ${BENCHES.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

const chosen = BENCHES.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const startedMs = performance.now();
for (const [done, bench] of chosen.entries()) {
  const minutes = ((performance.now() - startedMs) / done / 60_000) * (chosen.length - done);
  const left = done === 0 ? "" : `, about ${Math.ceil(minutes)} min left by what the others took`;
  console.error(`\n=== ${bench.name} (${done + 1} of ${chosen.length}${left})`);
  const before = loadavg();
  const body = await bench.run({ quick: values.quick, progress: (line) => console.error(`  ${line}`) });
  const section = `## ${bench.title}\n\n${body}\n\n${describeLoad(before)}`;
  console.log(`\n${section}`);
  if (!values.quick) await writeSection(bench, section);
}
