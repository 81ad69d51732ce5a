/**
 * The loss of `code: auto` against every other code that survives as much: prints the tables of
 * docs/internals/policies-measured.md.
 *
 *   node packages/lab/bench/auto-codes.ts [PLACE...]    # some ten minutes
 *
 * Reads without caches by the simulator, one stripe each, with the extra request and the hedging of clients. Regions
 * are idle, because the simulator's charge for extra requests takes a load that all regions share.
 */
import { readFile } from "node:fs/promises";
import { spread, survives } from "@agarose/core/format";
import { parseScenario, resolveExtends, simulate } from "@agarose/solver/simulator";
import { chooseCodes } from "@agarose/storage/layout/object-layout";

const PLACES = ["continental", "agar-fitted", "five-together", "liu-three-sites"];
const SIZES = { "18 kB": 18e3, "100 kB": 100e3, "1 MB": 1e6, "3 MB": 3e6, "6 MB": 6e6, "40 MB": 40e6 };
/** In Mbit/s; 0 is unlimited. */
const LINES = [20, 50, 100, 200, 1000, 0];
/** At each PoP. */
const READS = 4_000;
/** Stored bytes per byte, which `auto` has for a whole site. */
const STORAGE_MAX = 1.45;
const SURVIVE = { regions: 1, providers: 0 };
/** Where a scenario has none. */
const NOISE = { lognormalSigma: 0.3, stragglerProbability: 0.02, stragglerFactor: 5, stragglersShared: "chunk" };
const CHUNKS_MAX = 14;

interface Outcome {
  readonly code: string;
  readonly storage: number;
  readonly mean: number;
  readonly p99: number;
}

const load = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`../../solver/scenarios/${name}`, import.meta.url), "utf8"));

const rows = { mean: [] as string[], p99: [] as string[] };
for (const place of process.argv.length > 2 ? process.argv.slice(2) : PLACES) {
  const json = (await resolveExtends(await load(`${place}.json`), load)) as Record<string, unknown>;
  const { pops, noise, regions: names } = parseScenario(json);
  const regions = names
    .map((name) => {
      const sum = pops.reduce((total, { regionLatencyMs }) => total + regionLatencyMs[name]!, 0);
      return { name, provider: name, latencyMs: sum / pops.length };
    })
    .toSorted((a, b) => a.latencyMs - b.latencyMs);
  const read = (k: number, m: number, bytes: number, line: number): Outcome => {
    const scenario = parseScenario({
      code: { k, m },
      objects: { count: 1, bytes },
      regions: regions.map(({ name }) => name),
      pops: pops.map((pop) => ({ regionMbitPerSecond: 200, ...pop })),
      noise: noise.lognormalSigma > 0 ? noise : NOISE,
      popularity: { type: "uniform" },
      requests: { perSecond: 10, count: READS },
      load: { utilization: 0 },
      read: { delta: 1 },
      client: { hedge: true, ...(line > 0 && { mbitPerSecond: line }) },
      policies: [{ name: "backend" }],
    });
    const { meanMs, p99Ms } = simulate(scenario).find(({ pop }) => pop === "all")!;
    return { code: `${k}+${m}`, storage: (k + m) / k, mean: meanMs, p99: p99Ms };
  };
  const { codes } = chooseCodes({ regions, survive: SURVIVE });
  for (const [size, bytes] of Object.entries(SIZES)) {
    const { k: autoK, m: autoM } = codes.find(({ bytesMax = Infinity }) => bytes <= bytesMax)!;
    const own = (autoK + autoM) / autoK;
    const others = Array.from({ length: CHUNKS_MAX ** 2 }, (_, i) => ({
      k: 1 + Math.floor(i / CHUNKS_MAX),
      m: i % CHUNKS_MAX,
    })).filter(
      (code) =>
        (code.k + code.m) / code.k <= Math.max(STORAGE_MAX, own) &&
        survives(code, spread(code, regions, ""), regions).regions >= SURVIVE.regions,
    );
    const byLine = LINES.map((line) => ({
      auto: read(autoK, autoM, bytes, line),
      all: others.map(({ k, m }) => read(k, m, bytes, line)),
    }));
    for (const figure of ["mean", "p99"] as const) {
      const cells = byLine.map(({ auto, all }) => {
        const regret = (storageMax: number): string => {
          const [best] = all
            .filter(({ storage }) => storage <= Math.max(storageMax, own))
            .toSorted((a, b) => a[figure] - b[figure]);
          const percent = Math.round(100 * (auto[figure] / best![figure] - 1));
          return percent === 0 ? "0" : `${percent} (${best!.code})`;
        };
        return `${regret(own)} · ${regret(STORAGE_MAX)}`;
      });
      rows[figure].push(`| ${place} | ${size} | ${autoK}+${autoM} | ${cells.join(" | ")} |`);
    }
    console.error(place, size);
  }
}
const head = `| place | size | \`auto\` | ${LINES.map((line) => (line ? `${line} Mbit/s` : "unlimited")).join(" | ")} |`;
for (const [figure, lines] of Object.entries(rows))
  console.log(`\n${figure}\n\n${head}\n| --- | --- | --- |${" --- |".repeat(LINES.length)}\n${lines.join("\n")}`);
