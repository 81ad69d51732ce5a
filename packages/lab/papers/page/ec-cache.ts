/** EC-Cache (OSDI 2016), sections 5 and 6. */
import { popularRows } from "../ec-cache/popular-rows.ts";
import { simulateReadCluster, type ReadClusterResult, type ReadClusterStudy } from "../ec-cache/read-cluster.ts";
import { change, ms, scenario, share, table, type Cells, type Tables } from "./page.ts";

/** The figures that section 6.1 prints; below, the others. */
const PRINTED = {
  servers: 25,
  objectBytes: 40e6,
  zipfExponent: 0.9,
  memoryOverhead: 0.15,
  serverMbitPerSecond: 4500,
  clientMbitPerSecond: 10_000,
};
const CHOSEN = {
  objects: 800,
  load: { utilization: 0.3 },
  connectionMs: 0.3,
  decodeMbPerSecond: 1400,
  straggler: { probability: 0.02, factor: 5 },
};
const STUDY: ReadClusterStudy = { ...PRINTED, ...CHOSEN, seed: 1, reads: 100_000, k: 10, delta: 1 };
const COPIES = { k: 1, delta: 0 };
const LOADS: ReadClusterStudy["load"][] = [
  { utilization: 0.3 },
  { utilization: 0.5 },
  { utilization: 0.6 },
  { clients: 30 },
];
const SHARES = [0.5, 0.95, 0.99, 0.999];

export const ecCache: Tables = { conditions, imbalance, sizes, splits, extras, overhead, byPopularity, lowSkew };

function conditions(): string {
  const published: Record<string, Cells> = {
    skew: ["2.52", "2.64", "", "1.76", "1.79"],
    traffic: ["2.47", "2.56", "", "1.9", "2.56"],
    failure: ["", "", "", "2.7", "2.8"],
  };
  const settings: Record<string, Partial<ReadClusterStudy>> = {
    skew: {},
    traffic: { background: { servers: 4, everyMs: 2000, linkShare: 0.6 } },
    failure: { failure: { servers: 1, storageMs: 800 } },
  };
  const body = Object.entries(settings).flatMap(([name, changes]) => [
    [`**${name}, published**`, "", "", ...published[name]!],
    ...LOADS.map((load) => {
      const copies = simulateReadCluster({ ...STUDY, ...changes, ...COPIES, load });
      const coded = simulateReadCluster({ ...STUDY, ...changes, load });
      const label = "clients" in load ? `${load.clients} clients` : `load ${load.utilization}`;
      return [`${name}, ${label}`, ms(copies.meanMs), ms(coded.meanMs), ...timesFaster(copies, coded)];
    }),
  ]);
  return table(["case", "SR mean", "EC-Cache mean", "mean", "median", "p95", "p99", "p99.9"], ...body);
}

function lowSkew(): string {
  const body = [0, 0.5].flatMap((zipfExponent) =>
    LOADS.map((load) => {
      const copies = simulateReadCluster({ ...STUDY, ...COPIES, zipfExponent, load });
      const coded = simulateReadCluster({ ...STUDY, zipfExponent, load });
      const label = "clients" in load ? `${load.clients} clients` : `load ${load.utilization}`;
      return [
        `Zipf ${zipfExponent}, ${label}`,
        copies.imbalancePercent.toFixed(1),
        coded.imbalancePercent.toFixed(1),
        ms(copies.meanMs),
        ms(coded.meanMs),
        ...timesFaster(copies, coded),
      ];
    }),
  );
  const head = ["case", "SR imbalance", "EC-Cache", "SR mean", "EC-Cache mean"];
  return table([...head, "mean", "median", "p95", "p99", "p99.9"], ...body);
}

function timesFaster(copies: ReadClusterResult, coded: ReadClusterResult): string[] {
  const ratios = SHARES.map((at) => copies.quantileMs(at) / coded.quantileMs(at));
  return [copies.meanMs / coded.meanMs, ...ratios].map((ratio) => ratio.toFixed(2));
}

function imbalance(): string {
  const mean = (changes: Partial<ReadClusterStudy>): string => {
    const seeds = Array.from({ length: 10 }, (_, i) => i + 1);
    const sum = seeds.reduce(
      (so, seed) => so + simulateReadCluster({ ...STUDY, ...changes, seed }).imbalancePercent,
      0,
    );
    return (sum / seeds.length).toFixed(1);
  };
  const line = (name: string, published: string, changes: Partial<ReadClusterStudy>): Cells => [
    name,
    published,
    ...[200, 800, 3000].map((objects) => mean({ ...changes, objects })),
  ];
  return table(
    ["percent imbalance", "published", "ours, 200 objects", "800 objects", "3,000 objects"],
    line("one copy", "", { ...COPIES, memoryOverhead: 0 }),
    line("selective replication", "43.45", COPIES),
    line("EC-Cache, delta 1", "13.14", {}),
  );
}

function sizes(): string {
  const published: Record<number, [string, string]> = { 1: ["1.33", ""], 10: ["", "1.25"], 100: ["5.5", "3.85"] };
  return table(
    ["MB", "SR median", "EC-Cache", "published ratio", "ours", "SR p99", "EC-Cache", "published ratio", "ours"],
    ...[1, 5, 10, 20, 50, 100].map((megabytes) => {
      const study = { ...STUDY, objectBytes: megabytes * 1e6 };
      const copies = simulateReadCluster({ ...study, ...COPIES });
      const coded = simulateReadCluster(study);
      const pair = (at: number, ratio: string): string[] => {
        const [from, to] = [copies.quantileMs(at), coded.quantileMs(at)];
        return [from.toFixed(1), to.toFixed(1), ratio, (from / to).toFixed(2)];
      };
      const [median = "", tail = ""] = published[megabytes] ?? [];
      return [megabytes, ...pair(0.5, median), ...pair(0.99, tail)];
    }),
  );
}

function splits(): string {
  const study = { ...STUDY, objectBytes: 10e6 };
  const line = (name: string, result: ReadClusterResult): Cells => [
    name,
    result.imbalancePercent.toFixed(1),
    ...[0.5, 0.95, 0.99].map((at) => result.quantileMs(at).toFixed(1)),
  ];
  return table(
    ["k", "percent imbalance", "median ms", "p95 ms", "p99 ms"],
    line("SR", simulateReadCluster({ ...study, ...COPIES })),
    ...[2, 4, 6, 8, 10, 12, 15, 20].map((k) => line(String(k), simulateReadCluster({ ...study, k }))),
  );
}

function extras(): string {
  const study = {
    ...STUDY,
    objectBytes: 20e6,
    zipfExponent: 0,
    k: 12,
    memoryOverhead: 4 / 12,
    load: { utilization: 0.3 },
  };
  return table(
    ["delta", "median ms", "p95 ms", "p99 ms", "p99.9 ms"],
    ["SR", ...latencies(simulateReadCluster({ ...study, ...COPIES }))],
    ...[0, 1, 2, 3, 4].map((delta) => {
      const result = simulateReadCluster({ ...study, delta });
      return [delta, ...latencies(result)];
    }),
  );
}

function latencies(result: ReadClusterResult): string[] {
  return SHARES.map((at) => result.quantileMs(at).toFixed(1));
}

function overhead(): string {
  const seeds = [1, 2, 3, 4, 5];
  return table(
    ["memory for redundancy", "SR imbalance", "EC-Cache", "SR median ms", "EC-Cache", "SR p99 ms", "EC-Cache"],
    ...[0.1, 0.15, 0.3, 0.5, 1].map((memoryOverhead) => {
      const play = (changes: Partial<ReadClusterStudy>): ReadClusterResult[] =>
        seeds.map((seed) => simulateReadCluster({ ...STUDY, ...changes, memoryOverhead, seed }));
      const [copies, coded] = [play(COPIES), play({})];
      const both = (of: (result: ReadClusterResult) => number): string[] =>
        [copies, coded].map((results) => (results.reduce((sum, one) => sum + of(one), 0) / seeds.length).toFixed(1));
      const columns = [
        both((one) => one.imbalancePercent),
        both((one) => one.quantileMs(0.5)),
        both((one) => one.quantileMs(0.99)),
      ];
      return [share(memoryOverhead), ...columns.flat()];
    }),
  );
}

async function byPopularity(): Promise<string> {
  const { objects, pops, noise, popularity } = (await scenario("five-together.json")) as unknown as Scenario;
  const { cacheLatencyMs: cacheMs } = pops[0]!;
  const study = {
    pops: pops.map(({ regionLatencyMs }) => regionLatencyMs),
    deviation: noise.lognormalSigma,
    cacheMs,
    capacityObjects: 10,
    objects: objects.count,
    zipfExponent: popularity.exponent,
  };
  const codes = [
    { k: 3, m: 1 },
    { k: 4, m: 1 },
    { k: 9, m: 3 },
  ];
  const rows = codes.flatMap(({ k, m }) => {
    const none = popularRows({ ...study, k, m, storage: 0 });
    return [none, ...[0.025, 0.05, 0.1].map((storage) => popularRows({ ...study, k, m, storage }))].map((found) => [
      `${k}+${m}`,
      share(found.moreStorage),
      String(found.hot),
      ms(found.withoutMs),
      ms(found.withMs),
      found === none ? "" : change(found.withMs, none.withMs),
    ]);
  });
  return table(["code", "more storage", "hot objects", "mean ms, no cache", "with it", "change"], ...rows);
}

/** The part of a scenario that `byPopularity` uses. */
interface Scenario {
  readonly objects: { readonly count: number };
  readonly pops: readonly {
    readonly regionLatencyMs: Readonly<Record<string, number>>;
    readonly cacheLatencyMs: number;
  }[];
  readonly noise: { readonly lognormalSigma: number };
  readonly popularity: { readonly exponent: number };
}
