/** EC-Cache (OSDI 2016), sections 5 and 6. */

import { splitVarianceRatio } from "../ec-cache/load-balance.ts";
import { popularRows } from "../ec-cache/popular-rows.ts";
import { simulateReadCluster } from "../ec-cache/read-cluster.ts";
import type { ReadClusterResult, ReadClusterStudy } from "../ec-cache/read-cluster.ts";
import { spreadRedundancy } from "../ec-cache/redundancy.ts";
import { change, ms, prose, scenario, section, share, table } from "./page.ts";
import type { Cells, Section } from "./page.ts";

/** What section 6.1 prints; below, what it does not. */
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

export function ecCache(): Section {
  return section(
    "## EC-Cache (OSDI 2016)",
    "### Skewed popularity, other traffic, a failed server (sections 6.2 to 6.4, Fig. 8, 10 and 11)",
    conditions,
    prose`
      Mean ms, and how many times faster EC-Cache is than selective replication (SR). As printed: 25 servers of about 4.5 Gbit/s, clients of
      10, Zipf 0.9, 40 MB, k = 10, delta = 1, 15% of memory for redundancy. Not printed and chosen here: 800 objects; 2% stragglers, by which a
      transfer takes four times a whole object's time longer (five times as long, as in our other scenarios; a split's as much as a
      whole object's, section 5.2); 0.3 ms per connection; decoding at 1.4 GB/s (30% of the published mean); and the load: three at
      random moments, and 30 clients without a pause, as many as the authors had machines. Other traffic takes 40% of the links of 4 servers,
      others every 2 s; after the failure of one server an object without a copy takes 800 ms from storage. A read pays for the client's
      link, so EC-Cache cannot get below 35 ms for 44 MB and 29 ms of decoding. The published medians of about 240 and 90 ms mean that
      copies queued for long: the mean gains that much at a load of 0.6. The gain under failure depends on the 800 ms more than on
      anything else. Decoding speed and the 800 ms were fitted to published means.
    `,
    "### Load imbalance (section 6.2, Fig. 9)",
    imbalance,
    prose`
      Percent above the load that is needed, equation (1): reading 11 splits for 10 cannot be below 10%. Mean of ten placements. How many
      objects the published run had is not printed; fewer make both worse.
    `,
    "### Object size (section 6.5, Fig. 12)",
    sizes,
    prose`
      Load 0.3, median and p99 in ms. Published: 1.33x at the median for 1 MB, up to 5.5x at 100 MB; in p99 only above 10 MB, 1.25x to 3.85x. That
      the gain grows with size follows from the connections' constant cost. 5.5x does not: one link of 10 Gbit/s and the decoding take
      most of what a copy takes from an idle server, so much can be gained only where copies queue.
    `,
    "### Number of splits (section 6.6.1, Fig. 13 and 14)",
    splits,
    prose`
      10 MB, load 0.3, delta 1. As published, the imbalance falls with k, and with many splits one extra request no longer holds the
      tail (published: beyond 10; here p99 from 8 and p95 from 20 on). Not as published, the median does not gain: no k reaches the
      18.1 ms of selective replication (best 18.6 ms, at k = 4 and 6), and from k = 8 on the median rises.
    `,
    "### Extra requests (section 6.6.2, Fig. 15 and 16)",
    extras,
    prose`
      20 MB, k = 12, four parities, all objects alike, load 0.3. As published, splitting alone has a good median and a bad tail (Fig. 15), the
      first one or two extra requests take most of it, and further ones give little and cost bandwidth. SR, with the same memory for copies, has the median of one extra request and a p95 2.5 times as long.
    `,
    "### Memory for redundancy (section 6.6.3)",
    overhead,
    prose`
      Load 0.3, means of five placements. As described, EC-Cache is balanced with 15% of memory, and selective replication comes nearer as memory grows. 10% is one parity for each object, and leaves nothing for the popular ones. The paper prints no numbers.
    `,
    "### Stragglers of a read that waits for all its splits (section 5.2)",
    stragglers,
    prose`
      Share of reads that meet at least one straggler, 1 - (1 - p)^k, for a share p of straggling splits. One extra request leaves
      the reads that meet two or more of k + 1.
    `,
    "### Theorem 1",
    theorem1,
    paritySentence(),
    prose`
      Variance of a server's load relative to whole objects. The paper's 1/k assumes independent placement; distinct servers do better.
      \`packages/lab/papers/liu/liu-partitions.test.ts\` measures both on random placements.
    `,
    "### Parity by popularity in caches and in buckets (section 6.1)",
    byPopularity,
    prose`
      Our use of it, no figure of the paper: the three PoPs of \`five-together.json\` without peers, a cache for ten objects at each, the
      true popularity and functional rows; chunks are in the regions nearest on average. EC-Cache spreads redundancy so that servers are
      even. Our caches give rows to hot objects to save time, and so do extra rows in buckets, which \`scrub\` stores near the PoPs within
      the storage of \`hot\`, 5% by default. They are worth most for what the caches do not hold. They come and go without another
      [version](../reference/format.md#extra-chunks), so no PoP or browser drops what it holds. An object keeps its rows while there is
      room, or until another one would save twice as much by them.
      \`codes\` gives more parity to the objects under a prefix when they are put.
    `,
    "### Low skew (section 6.1)",
    lowSkew,
    prose`
      The same model with objects that are nearly alike. The paper says, without a figure, that EC-Cache then still reads faster while
      there is not much to improve in balance. It is so here. The mean gains nearly as much as at Zipf 0.9, and SR's imbalance falls
      from 38.0 to 25.9%.
    `,
    prose`
      Not reproduced: absolute milliseconds of Fig. 8 to 16 (Alluxio, TCP and EC2 are not in the model), Fig. 2 and 3 (traces of
      Facebook, which are not public), and Fig. 17 (write times of Alluxio; [benchmarks](benchmarks.md) have those of \`put\`).
    `,
  );
}

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

function stragglers(): string {
  const ks = [1, 5, 10, 20];
  const all = (p: number, k: number): number => 1 - (1 - p) ** k;
  // None or one of k + 1 straggles.
  const late = (p: number, k: number): number => 1 - (1 - p) ** (k + 1) - (k + 1) * p * (1 - p) ** k;
  return table(
    ["p", ...ks.flatMap((k) => [`k = ${k}`, "delta 1"])],
    ...[0.005, 0.01, 0.02, 0.05].map((p) => [share(p), ...ks.flatMap((k) => [share(all(p, k)), share(late(p, k))])]),
  );
}

function theorem1(): string {
  return table(
    ["k", "Theorem 1 (independent)", `k distinct servers of ${PRINTED.servers}`],
    ...[2, 5, 10, 20].map((k) => [
      k,
      splitVarianceRatio(k, PRINTED.servers, false).toFixed(3),
      splitVarianceRatio(k, PRINTED.servers, true).toFixed(3),
    ]),
  );
}

/** How the memory of section 6.1 raises parity by popularity. */
function paritySentence(): string {
  const parities = spreadRedundancy(
    Array.from({ length: CHOSEN.objects }, (_, rank) => (rank + 1) ** -PRINTED.zipfExponent),
    11,
    0.05 * CHOSEN.objects * 10,
    PRINTED.servers,
  );
  const raised = parities.filter((pieces) => pieces > 11).length;
  return `Parity by popularity: of 800 objects ${raised} get more than one parity, the most popular ${parities[0]! - 10}.`;
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

/** What `byPopularity` takes of a scenario. */
interface Scenario {
  readonly objects: { readonly count: number };
  readonly pops: readonly {
    readonly regionLatencyMs: Readonly<Record<string, number>>;
    readonly cacheLatencyMs: number;
  }[];
  readonly noise: { readonly lognormalSigma: number };
  readonly popularity: { readonly exponent: number };
}
