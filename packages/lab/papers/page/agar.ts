/** Agar (ICDCS 2017), sections V-B to V-D. */
import { configureExactly } from "@agarose/solver/internal/policy/configure";
import { populate } from "@agarose/solver/internal/policies/papers/agar";
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/scenario";
import { seededRandom } from "@agarose/solver/random";
import { Caches, SinglePopCache } from "@agarose/solver/internal/simulator/cache-state";
import { SimulatedWorld } from "@agarose/solver/internal/simulator/world";
import { medianMs, meanOf, ms, percent, rowOf, run, scenario, share, table, type Json, type Tables } from "./page.ts";

const COMPARED = ["agar", "exact", "adaptive"];
const LFUS = [1, 3, 5, 7, 9].map((chunks) => ({ name: "lfu", chunks }));

export const agar: Tables = { atFrankfurt, byChunks, solver, sweeps, contents };

async function atFrankfurt(): Promise<string> {
  const cold = await run("agar-fitted.json");
  const warm = await run("agar-fitted.json", { requests: { perSecond: 4.7, count: 10_000 }, runs: 1 });
  const literal = await run("agar-frankfurt.json");
  const published: Record<string, string> = { agar: "416", "lfu-7": "489", "lru-1": "about 705 (-41%)" };
  const names = cold.filter((row) => row.pop === "all").map((row) => row.name);
  return table(
    ["policy", "published", "fitted, cold", "fitted, warm", "Table I, cold", "hit ratio, cold"],
    ...names.map((name) => [
      name,
      published[name] ?? "",
      ms(meanOf(cold, name)),
      ms(meanOf(warm, name)),
      ms(meanOf(literal, name)),
      share(rowOf(cold, name).hitRatio),
    ]),
  );
}

async function byChunks(): Promise<string> {
  const counts = [0, 1, 3, 5, 7, 9];
  const line = async (label: string, file: string): Promise<string[]> => {
    const spec = parseScenario(await scenario(file));
    const cache = new SinglePopCache(new Caches(new SimulatedWorld(spec, spec.systems[0]!, seededRandom(1))), 0);
    const whole = spec.pops[0]!.cacheLatencyMs + cache.savedMs(0, 9);
    return [label, ...counts.map((d) => ms(whole - (d > 0 ? cache.savedMs(0, d) : 0)))];
  };
  return table(
    ["latencies", ...counts.map((d) => `c = ${d}`)],
    await line("fitted", "agar-fitted.json"),
    await line("Table I", "agar-frankfurt.json"),
  );
}

async function solver(): Promise<string> {
  const spec = parseScenario(await scenario("agar-fitted.json"));
  const world = new SimulatedWorld(spec, spec.systems[0]!, seededRandom(1));
  const cache = new SinglePopCache(new Caches(world), 0);
  const popularity = Float64Array.from({ length: world.objects }, (_, rank) => 60 * (rank + 1) ** -1.1);
  const valueOf = (count: Uint8Array): number =>
    count.reduce((sum, d, o) => sum + (d > 0 ? popularity[o]! * cache.savedMs(o, d) : 0), 0);
  const best = valueOf(configureExactly(cache, popularity).count);
  const line = (name: string, published: string, solve: () => Uint8Array): string[] => [
    name,
    published,
    medianMs(21, solve).toFixed(2),
    percent(100 * (valueOf(solve()) / best - 1)),
  ];
  return table(
    ["solver", "published ms", "ours, ms", "value against the optimum"],
    line("Fig. 4 and 5, all objects", "", () => populate(cache, popularity, false)),
    line("with early stop", "5", () => populate(cache, popularity, true)),
    line("exact knapsack", "", () => configureExactly(cache, popularity).count),
  );
}

async function sweeps(): Promise<string> {
  const policies = [...COMPARED.map((name) => ({ name })), ...LFUS];
  const { pops } = (await scenario("agar-fitted.json")) as { pops: Json[] };
  const line = async (label: string, published: string, changes: Json): Promise<(string | number)[]> => {
    const rows = await run("agar-fitted.json", { policies, ...changes });
    const bestLfu = Math.min(...LFUS.map(({ chunks }) => meanOf(rows, `lfu-${chunks}`)));
    const lead = (100 * (bestLfu - meanOf(rows, "agar"))) / bestLfu;
    return [label, published, percent(lead), ms(bestLfu), ...COMPARED.map((name) => ms(meanOf(rows, name)))];
  };
  const sizes = { 5: "6.5%", 10: "15%", 20: "16%", 50: "12%", 100: "1%" };
  const skews = { "0.8": "5.8%", "0.9": "7.2%", "1.0": "13%", "1.1": "15%", "1.4": "14%" };
  const body: (string | number)[][] = [];
  for (const [megabytes, published] of Object.entries(sizes)) {
    const capacityChunks = 9 * Number(megabytes);
    body.push(await line(`cache ${megabytes} MB`, published, { pops: [{ ...pops[0], capacityChunks }] }));
  }
  body.push(await line("uniform", "none", { popularity: { type: "uniform" } }));
  for (const [exponent, published] of Object.entries(skews)) {
    body.push(await line(`Zipf ${exponent}`, published, { popularity: { type: "zipf", exponent: Number(exponent) } }));
  }
  return table(["case", "published lead of Agar", "our lead", "best LFU-c", ...COMPARED], ...body);
}

async function contents(): Promise<string> {
  const { pops } = (await scenario("agar-fitted.json")) as { pops: Json[] };
  const body: (string | number)[][] = [];
  for (const megabytes of [5, 10]) {
    const rows = await run("agar-fitted.json", {
      policies: COMPARED.map((name) => ({ name })),
      pops: [{ ...pops[0], capacityChunks: 9 * megabytes }],
      runs: 1,
    });
    for (const name of COMPARED) body.push([`${name}, ${megabytes} MB`, ...rowOf(rows, name).objectsByChunks.slice(1)]);
  }
  return table(["objects kept with d chunks", ...Array.from({ length: 9 }, (_, d) => d + 1)], ...body);
}
