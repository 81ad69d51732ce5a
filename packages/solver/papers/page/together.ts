/** All five papers' ideas in one system: a combination that none of them has. */

import { change, ms, run, section, share, table } from "./page.ts";

export async function together(): Promise<string> {
  const rows = (await run("five-together.json")).filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return section(
    "## All five ideas together",
    table(
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
    ),
    "Six regions, three PoPs, lognormal noise, 2% stragglers x5, Zipf 1.1, RS(9,3); changes against `agar alone`. Extra requests are\n" +
      "charged to the regions that serve them (utilization 0.3), which is why late binding alone gains less here than where they are free.",
  );
}
