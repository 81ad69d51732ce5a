/** All five papers' ideas in one system: a combination that none of them has. */

import { change, ms, run, prose, section, share, table } from "./page.ts";
import type { Section } from "./page.ts";

export function together(): Section {
  return section(
    "## All five ideas together",
    systems,
    prose`
      Six regions, three PoPs, lognormal noise, 2% stragglers x5, Zipf 1.1, RS(9,3); changes against \`agar alone\`. Extra requests are
      charged to the regions that serve them (utilization 0.3), which is why late binding alone gains less here than where they are
      free. \`all\` combines one mechanism of each idea: our adaptive popularity filter and exact knapsack (Agar, Liu), one extra
      request (EC-Cache), functional chunks (Sprout), and PoPs that read from each other and place chunks together (C2P). It does
      not contain C2P's replacement, Sprout's optimiser, Liu's online scheme or recovered chunks, nor parity by popularity.
      One central decider places for all PoPs here; deployed PoPs decide one after another. [Benchmarks](benchmarks.md) have that
      measurement in real browsers.
    `,
  );
}

async function systems(): Promise<string> {
  const rows = (await run("five-together.json")).filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return table(
    ["system", "mean ms", "change", "p99 ms", "change", "requests per read", "chunks from peers"],
    ...rows.map((row) => [
      row.name,
      ms(row.meanMs),
      change(row.meanMs, agar.meanMs),
      ms(row.p99Ms),
      change(row.p99Ms, agar.p99Ms),
      row.requestsPerRead.toFixed(2),
      share(row.peerChunkRatio),
    ]),
  );
}
