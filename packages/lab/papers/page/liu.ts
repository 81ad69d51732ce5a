/** Liu et al., "Optimal Caching for Low Latency in Distributed Coded Storage Systems", section VI. */
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/scenario";
import type { SimulationRow } from "@agarose/solver/internal/simulator/simulate";
import { populate } from "@agarose/solver/internal/policies/papers/agar";
import { configureExactly } from "@agarose/solver/internal/policy/configure";
import { countPartitions } from "../liu/liu-partitions.ts";
import { seededRandom } from "@agarose/solver/random";
import { Caches, SinglePopCache } from "@agarose/solver/internal/simulator/cache-state";
import { SimulatedWorld } from "@agarose/solver/internal/simulator/world";
import { change, medianMs, meanOf, ms, percent, rowOf, run, scenario, share, table } from "./page.ts";
import type { Cells, Json, Tables } from "./page.ts";

const FILE = "liu-three-sites.json";
const SITES = ["victoria", "san-francisco", "toronto"];
const SCHEMES = ["backend", "lru", "lfu", "agar", "clairvoyant", "online"];

export const liu: Tables = { threeSites, sweeps, failedServer, searchSpace };

async function threeSites(): Promise<string> {
  const rows = await run(FILE);
  const published: Record<string, [mean: string, tail: string, hits: string]> = {
    backend: ["746 / 726 / 745", "1045 / 943 / 1159", ""],
    "lru-6": ["-24.6%", "-3.5%", "24.7%"],
    "lfu-6": ["-23.2%", "-3.9%", "23.3%"],
    agar: ["504 / 503 / 512", "912 / 877 / 979", ""],
    online: ["451 / 432 / 489", "916 / 883 / 973", "25.8 / 25.7 / 26.0%"],
    clairvoyant: ["439 / 422 / 480 (optimal)", "908 / 878 / 956", "25.8 / 25.7 / 26.0%"],
  };
  const names = rows.filter((row) => row.pop === "all").map((row) => row.name);
  const sites = (name: string, of: "meanMs" | "p95Ms"): string =>
    SITES.map((pop) => ms(rowOf(rows, name, pop)[of])).join(" / ");
  return table(
    [
      "policy",
      "published mean",
      "ours",
      "against backend",
      "loss",
      "published p95",
      "ours",
      "chunk hits",
      "ours",
      "writes",
    ],
    ...names.map((name) => {
      const all = rowOf(rows, name);
      const [mean = "", tail = "", hits = ""] = published[name] ?? [];
      const lead = change(all.meanMs, meanOf(rows, "backend"));
      const own = [sites(name, "meanMs"), lead, percent(all.lossPercent!), tail, sites(name, "p95Ms"), hits];
      return [name, mean, ...own, share(all.chunkHitRatio), all.writes.toFixed(0)];
    }),
  );
}

async function sweeps(): Promise<string> {
  const { pops } = (await scenario(FILE)) as { pops: Json[] };
  const hot = { type: "hot-set", fraction: 0.065 };
  const cases: [label: string, published: string, changes: Json][] = [
    ...(
      [
        [60, "1.3%"],
        [80, "1.6%"],
        [100, "2.3%"],
        [120, "2.4%"],
      ] as const
    ).map(([capacityChunks, loss]): [string, string, Json] => [
      `C = ${capacityChunks}`,
      loss,
      { pops: pops.map((pop) => ({ ...pop, capacityChunks })) },
    ]),
    ...(
      [
        [2, "3.0%"],
        [4, "5.7%"],
        [6, "2.3%"],
        [8, "1.2%"],
      ] as const
    ).map(([k, loss]): [string, string, Json] => [
      `K = ${k}`,
      loss,
      { code: { k, m: 3 }, objects: { count: 1000, bytes: k * 1e6 } },
    ]),
    ...(
      [
        [500, "6.7%"],
        [1000, "2.3%"],
        [2000, "2.0%"],
        [5000, "2.2%"],
      ] as const
    ).map(([count, loss]): [string, string, Json] => [
      `M = ${count}`,
      loss,
      { objects: { count, bytes: 6e6 }, popularity: hot },
    ]),
    ["uniform", "about 2%", { popularity: { type: "uniform" } }],
    ...[1.2, 1.5, 2].map((exponent): [string, string, Json] => [
      `Zipf ${exponent}`,
      "about 2%",
      { popularity: { type: "zipf", exponent } },
    ]),
  ];
  const body: Cells[] = [];
  for (const [label, published, changes] of cases) {
    const policies = SCHEMES.map((name) => ({ name }));
    const rows = await run(FILE, { policies, runs: 1, ...changes });
    body.push([label, ...SCHEMES.map((name) => ms(meanOf(rows, name))), ...leads(rows), published, lossOf(rows)]);
  }
  return table(
    [
      "case",
      "backend",
      "LRU",
      "LFU",
      "Agar",
      "optimal",
      "online",
      "optimal against backend",
      "against Agar",
      "online against Agar",
      "online loss, published",
      "ours",
    ],
    ...body,
  );
}

function leads(rows: readonly SimulationRow[]): string[] {
  const optimal = meanOf(rows, "clairvoyant");
  const agar = meanOf(rows, "agar");
  return [change(optimal, meanOf(rows, "backend")), change(optimal, agar), change(meanOf(rows, "online"), agar)];
}

function lossOf(rows: readonly SimulationRow[]): string {
  return percent(rowOf(rows, "online").lossPercent!);
}

const DECODE_MS = 56.5;

async function failedServer(): Promise<string> {
  const { pops } = (await scenario(FILE)) as { pops: Json[] };
  const policies = SCHEMES.map((name) => ({ name }));
  const read = { delta: 0, cachedChunks: "recovered", dataChunksOnly: true, decodeMs: DECODE_MS };
  const rows = await run(FILE, { policies, runs: 1, read, ...failures(pops) });
  const published: Record<string, string[]> = {
    backend: ["761.6", "", "18.82", ""],
    lru: ["", "-25.0%", "", "below -55%"],
    lfu: ["", "-25.8%", "", "below -55%"],
    agar: ["", "-32.3%", "", "below -55%"],
    clairvoyant: ["", "-40.4%", "", "below -55%"],
    online: ["", "-38.9%", "", "below -55%"],
  };
  const backend = rowOf(rows, "backend");
  return table(
    ["scheme", "published mean", "change", "decoding", "change", "our mean", "change", "decoding", "change"],
    ...SCHEMES.map((name) => {
      const { meanMs, decodedRatio } = rowOf(rows, name);
      const decoding = `${(decodedRatio * DECODE_MS).toFixed(1)}`;
      const own = [ms(meanMs), change(meanMs, backend.meanMs), decoding, change(decodedRatio, backend.decodedRatio)];
      return [name === "clairvoyant" ? "optimal" : name, ...published[name]!, ...own];
    }),
  );
}

/** Each of the 18 buckets as its own region, and one after the other down for 200 seconds. */
function failures(pops: readonly Json[]): Json {
  const sites = Object.keys(pops[0]!["regionLatencyMs"] as Json);
  const buckets = sites.flatMap((site) => [1, 2, 3].map((bucket) => ({ site, name: `${site}-${bucket}` })));
  return {
    regions: buckets.map(({ name }) => name),
    bucketsPerRegion: 1,
    pops: pops.map((pop) => ({
      ...pop,
      regionLatencyMs: Object.fromEntries(
        buckets.map(({ site, name }) => [name, (pop["regionLatencyMs"] as Record<string, number>)[site]]),
      ),
    })),
    events: buckets.map(({ name }, i) => ({ atSeconds: 200 * i, forSeconds: 200, region: name, down: true })),
  };
}

async function searchSpace(): Promise<string> {
  const { pops } = (await scenario(FILE)) as { pops: Json[] };
  const line = async (
    capacity: number,
    k: number,
    published: { chi: string; optimal: string; agar: string; step: string; online: string },
  ): Promise<Cells> => {
    const changes = {
      pops: pops.map((pop) => ({ ...pop, capacityChunks: capacity })),
      code: { k, m: 3 },
      objects: { count: 1000, bytes: k * 1e6 },
    };
    const online = rowOf(await run(FILE, { ...changes, policies: [{ name: "online" }], runs: 1 }), "online");
    const spec = parseScenario(await scenario(FILE, changes));
    const cache = new SinglePopCache(new Caches(new SimulatedWorld(spec, spec.systems[0]!, seededRandom(1))), 0);
    const popularity = Float64Array.from({ length: 1000 }, (_, o) => 1 / (o + 1));
    return [
      `C = ${capacity}, K = ${k}`,
      `${published.chi} / ${countPartitions(capacity, k).toLocaleString("en")}`,
      published.optimal,
      medianMs(51, () => configureExactly(cache, popularity)).toFixed(1),
      published.agar,
      medianMs(5, () => populate(cache, popularity, false)).toFixed(0),
      `${published.step} / ${countPartitions(2 * k - 1, k, k + 1)}`,
      published.online,
      online.solveMs.toFixed(3),
    ];
  };
  return table(
    [
      "case",
      "partitions: published / ours",
      "optimum, published s",
      "exact knapsack, ms",
      "Agar, published ms",
      "ours, ms",
      "partitions of a step: published / ours",
      "online, published ms",
      "ours, ms",
    ],
    await line(60, 6, { chi: "19,858", optimal: "391.64", agar: "544.48", step: "37", online: "2.29" }),
    await line(80, 6, { chi: "69,624", optimal: "2,239.67", agar: "661.37", step: "37", online: "1.93" }),
    await line(100, 6, { chi: "189,509", optimal: "7,863.99", agar: "800.02", step: "37", online: "1.71" }),
    await line(120, 6, { chi: "436,140", optimal: "23,746.93", agar: "960.97", step: "37", online: "1.55" }),
    await line(100, 2, { chi: "51", optimal: "2.04", agar: "421.74", step: "2", online: "0.28" }),
    await line(100, 4, { chi: "8,037", optimal: "666.27", agar: "628.31", step: "9", online: "" }),
    await line(100, 8, { chi: "1,527,675", optimal: "49,662.91", agar: "948.22", step: "127", online: "6.22" }),
  );
}
