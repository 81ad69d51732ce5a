/** All five papers' ideas in one system: a combination that none of them has. */

import { change, ms, prose, run, scenario, section, share, table } from "./page.ts";
import type { SimulationRow } from "@agarose/solver/internal/simulator/simulate";
import type { Json, Section } from "./page.ts";

export function together(): Section {
  return section(
    "## All five ideas together",
    systems,
    prose`
      Six regions, three PoPs, lognormal noise, 2% stragglers x5, Zipf 1.1, RS(9,3); changes against \`agar alone\`. Extra requests are
      charged to the regions that serve them (utilization 0.3), which is why late binding alone gains less here than where they are
      free. \`all\` combines the options of Agar and the optimum of Liu et al., solved as a knapsack, one extra request (EC-Cache) and
      functional chunks (Sprout) with two rules of our own: the adaptive popularity filter, and PoPs that read from each other, as in C2P,
      but place chunks jointly. Functional chunks are also the parity by popularity of deployed PoPs: hot objects get more rows. The recovered chunks of Liu et al. change
      nothing here, because no region is down, and the model of functional chunks counts rows without naming them.
      C2P's replacement, Sprout's optimiser and Liu's online scheme are policies in the place of \`adaptive\`, so \`all\` has none of them.
      \`joint\` and \`all\` run the planner of deployed PoPs, but in periods of 30 s, where a deployed PoP plans once a minute: each PoP
      waits for its turn and plans by what its peers have sent, with simulated delays. So nothing is cached in the first of the 60 periods. A decider that placed for all PoPs
      at once, and from the first reads on, reached 781 ms and a p99 of 4228 ms: most of the difference is that first period.
      [Benchmarks](benchmarks.md) have the measurement in real browsers.
    `,
    "### The whole without each idea",
    prose`
      ![What reads lose without each idea; the table below has the figures](ablation.svg)
    `,
    ablation,
    prose`
      The same scenario (\`ablation.json\`). Each row leaves one idea out of \`all five\`, and the changes are against \`all five\`: what the
      idea adds when the others are there. Each name shows whose rule is left out. Without adaptive popularity, PoPs estimate it by EWMA,
      as Agar does, and Liu's exact optimum still decides. Without cooperation, PoPs neither read from each other nor place jointly;
      C2P's own replacement rule is measured [in browsers](benchmarks.md#the-defaults-run-for-real), and loses there. Without partial objects, a
      PoP keeps whole ones by W-TinyLFU with the same reader; its PoPs do not cooperate, because only partial
      objects are placed jointly. All rows decide once a period. Cooperation brings most of the mean, and
      late binding most of the tail. \`node scripts/docs/ablation.ts\` draws the picture from the table.
    `,
    "### Regions that are slow as a whole",
    regionStragglers,
    prose`
      The same world with k = 6, and stragglers that slow all requests of a read to one region. No choice of extra requests reaches
      -30% of the mean and -45% of the p99 in this model. The last two rows ask for every chunk at once, free of charge; the
      last one also knows the true popularity. What remains are reads of objects that no cache keeps: they
      wait for two chunks from a region 600 ms away.
    `,
    prose`
      An earlier model of ours, with free extra requests, had -31% and -54%. Those figures belong to another world: the three sites of
      Liu et al., with 100 chunks of cache. In that world this simulator gives -31.8% and -49.2% with extra requests charged. In the world
      of the table, the earlier model gives -19% and -19%, beside -17.7% and -15.8% here. A lower bound for any cache contents, with every
      source asked free of charge, popularity known and caches warm, is about -30% and -39%.
    `,
    prose`
      An extra chunk from a region that serves none of the k changed \`all\` by less than 0.5 points of the mean and p99 at k = 6. At k = 9 it made
      \`all\` 1.1 points of the mean worse and 1.7 of the p99, because that region is farther away, and PoPs without
      peers 2.5 and 7.1 better. So extra requests go to the nearest region here. (One run each, with one decider for all PoPs.)
    `,
  );
}

const ALL = { policy: "adaptive", read: { delta: 1, cachedChunks: "functional" }, joint: true };

async function ablation(): Promise<string> {
  const rows = (await run("ablation.json")).filter((row) => row.pop === "all");
  const all = rows[0]!;
  return table(["system", ...FIGURES], ...rows.map((row) => [row.name, ...figures(row, all)]));
}

async function regionStragglers(): Promise<string> {
  const { noise } = await scenario("five-together.json");
  const changes = { code: { k: 6, m: 3 }, noise: { ...(noise as Json), stragglersShared: "region" } };
  const everything = { ...ALL.read, delta: 6 };
  const charged = await run("five-together.json", { ...changes, systems: [AGAR, { ...ALL, name: "all" }] });
  const free = await run("five-together.json", {
    ...changes,
    load: { utilization: 0 },
    systems: [
      { ...ALL, name: "all, extra requests free" },
      { ...ALL, name: "every chunk asked for, free", read: everything },
      { ...ALL, name: "the same, popularity known", policy: "clairvoyant", read: everything },
    ],
  });
  const rows = [...charged, ...free].filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return table(["system", ...FIGURES], ...rows.map((row) => [row.name, ...figures(row, agar)]));
}

const AGAR = { name: "agar alone", policy: "agar", read: { delta: 0, cachedChunks: "exact" }, joint: false };

async function systems(): Promise<string> {
  const rows = (await run("five-together.json")).filter((row) => row.pop === "all");
  const agar = rows[0]!;
  return table(
    ["system", ...FIGURES, "chunks from peers"],
    ...rows.map((row) => [row.name, ...figures(row, agar), share(row.peerChunkRatio)]),
  );
}

/** Heads of the columns that `figures` fills. */
const FIGURES = ["mean ms", "change", "p99 ms", "change", "requests per read"];

/** The mean and the p99 of a system, each beside its change against `base`, and its requests per read. */
function figures(row: SimulationRow, base: SimulationRow): string[] {
  return [
    ms(row.meanMs),
    change(row.meanMs, base.meanMs),
    ms(row.p99Ms),
    change(row.p99Ms, base.p99Ms),
    row.requestsPerRead.toFixed(2),
  ];
}
