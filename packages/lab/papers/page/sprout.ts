/** Sprout (ToN 2017), section V. */
import { exponentialServer, lognormalServer } from "@agarose/solver/internal/policies/papers/sprout/latency-bound";
import type { Server } from "@agarose/solver/internal/policies/papers/sprout/latency-bound";
import { optimizeSprout, type SproutPlan } from "@agarose/solver/internal/policies/papers/sprout/optimize";
import type { SproutFile } from "@agarose/solver/internal/policies/papers/sprout/files";
import { seededRandom, type Random } from "@agarose/solver/random";
import { simulateQueues, type QueueStudy } from "../sprout/queue-simulation.ts";
import { change, share, table, type Cells, type Tables } from "./page.ts";

/** Service rates of the 12 servers; the paper prints eleven, the twelfth repeats the last. */
const RATES = [0.1, 0.1, 0.1, 0.0909, 0.0909, 0.0667, 0.0667, 0.0769, 0.0769, 0.0588, 0.0588, 0.0588];
const EXPONENTIAL = RATES.map(exponentialServer);
const READS = [0.000156, 0.000156, 0.000125, 0.000167, 0.000104];
const K = 4;
const N = 7;

export const sprout: Tables = { curve, evolution, placement, againstLru, functionalAgainstExact };

function randomFiles(count: number, readsPerSecondOf: (file: number) => number, seed = 1): SproutFile[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, i) => ({
    readsPerSecond: readsPerSecondOf(i),
    k: K,
    servers: random.shuffle(Array.from(RATES.keys())).slice(0, N),
  }));
}

function curve(): string {
  const files = randomFiles(1000, (i) => READS[i % READS.length]!);
  const steady = RATES.map((rate) => lognormalServer(1 / rate, 0.133 / rate));
  return table(
    ["cache (chunks)", "published", "bound", "after each round", "simulated", "bound, deviation 13%", "rounds"],
    ...[0, 100, 500, 1000, 2000, 3000, 4000].map((capacity) => {
      const plan = optimizeSprout(files, EXPONENTIAL, capacity);
      const steadier = optimizeSprout(files, steady, capacity);
      return [
        capacity,
        capacity === 0 ? "23" : capacity === 4000 ? "0" : "",
        plan.meanBound.toFixed(2),
        plan.rounds.map((bound) => bound.toFixed(2)).join(", "),
        simulateQueues({ ...EXPONENTIAL_QUEUES, files }, { plan }).meanSeconds.toFixed(2),
        steadier.meanBound.toFixed(2),
        steadier.rounds.length,
      ];
    }),
  );
}

const EXPONENTIAL_QUEUES = {
  servers: RATES.length,
  serviceSeconds: (server: number, random: Random): number => random.exponential() / RATES[server]!,
  reads: 40_000,
  seed: 1,
};

function evolution(): string {
  const bins = [
    [156, 156, 125, 167, 104, 156, 156, 125, 167, 104],
    [156, 156, 125, 125, 125, 156, 156, 125, 125, 125],
    [125, 250, 125, 167, 104, 125, 250, 125, 167, 104],
  ];
  return table(
    ["time bin: d (reads in 10^6 s)", ...bins[0]!.map((_, file) => `file ${file + 1}`)],
    ...bins.map((bin, i) => {
      const { cached } = optimizeSprout(
        randomFiles(10, (file) => bin[file]! * 1e-6),
        EXPONENTIAL,
        15,
      );
      return [i + 1, ...bin.map((rate, file) => `${cached[file]} (${rate})`)];
    }),
  );
}

function placement(): string {
  return table(
    ["rate of files 1 and 2", "files 1 and 2", "file 3", "file 4", "files 5 to 10"],
    ...[0.000125, 0.0001563, 0.0001786, 0.0002083, 0.00025, 0.0002778].map((rate) => {
      const files = Array.from({ length: 10 }, (_, i) => ({
        readsPerSecond: i < 2 ? rate : i < 4 ? 0.0000962 : 0.0001042,
        k: K,
        servers: i < 3 ? [0, 1, 2, 3, 4, 5, 6] : [5, 6, 7, 8, 9, 10, 11],
      }));
      const { cached } = optimizeSprout(files, EXPONENTIAL, 10);
      const sum = (from: number, to: number): number => cached.slice(from, to).reduce((so, d) => so + d, 0);
      return [rate.toFixed(7), sum(0, 2), sum(2, 3), sum(3, 4), sum(4, 10)];
    }),
  );
}

function functionalAgainstExact(): string {
  const files = randomFiles(100, (i) => 10 * READS[i % READS.length]!);
  const planned = [50, 100, 200].map((capacity) => optimizeSprout(files, EXPONENTIAL, capacity).cached);
  const alike = [1, 2, 3].map((d) => new Int32Array(files.length).fill(d));
  // The paper's example: one file on six servers alike, which it keeps busy for 70% of the time without a cache.
  const single = [{ readsPerSecond: (0.7 * 6) / 5 / 10, k: 5, servers: [0, 1, 2, 3, 4, 5] }];
  const line = (label: string, of: readonly SproutFile[], servers: readonly Server[], cached: Int32Array): Cells => {
    const functional = readFrom(of, servers, cached, (i) => of[i]!.servers);
    const asked = functional.probability;
    const best = readFrom(of, servers, cached, (i) =>
      of[i]!.servers.toSorted((a, b) => asked[i]![a]! - asked[i]![b]!).slice(cached[i]!),
    );
    const random = seededRandom(5);
    const any = readFrom(of, servers, cached, (i) => random.shuffle([...of[i]!.servers]).slice(cached[i]!));
    const inPart = of.filter(({ k }, i) => cached[i]! > 0 && cached[i]! < k).length;
    const exact = [best, any].flatMap(({ meanBound }) => [
      meanBound.toFixed(2),
      change(meanBound, functional.meanBound),
    ]);
    return [label, inPart, functional.meanBound.toFixed(2), ...exact];
  };
  const tens = Array.from({ length: 6 }, () => exponentialServer(0.1));
  return table(
    ["cached", "files in part", "functional", "exact, best chunks", "change", "exact, random chunks", "change"],
    ...planned.map((cached, i) => line(`${[50, 100, 200][i]} chunks, planned`, files, EXPONENTIAL, cached)),
    ...alike.map((cached, i) => line(`${i + 1} of each file`, files, EXPONENTIAL, cached)),
    ...[1, 2, 3].map((d) => line(`${d} of one file, (6,5)`, single, tens, Int32Array.of(d))),
  );
}

/** The best requests for k - d chunks of each file, from its servers in `serversOf`, and their mean bound. */
function readFrom(
  files: readonly SproutFile[],
  servers: readonly Server[],
  cached: Int32Array,
  serversOf: (file: number) => readonly number[],
): Pick<SproutPlan, "probability" | "meanBound"> {
  const left = files.map((file, i) => ({ ...file, k: file.k - cached[i]!, servers: serversOf(i) }));
  const read = left.filter(({ k }) => k > 0);
  const plan = optimizeSprout(read, servers, 0);
  let next = 0;
  const probability = left.map(({ k }) => (k > 0 ? plan.probability[next++]! : new Float64Array(servers.length)));
  return { probability, meanBound: (plan.meanBound * rateOf(read)) / rateOf(files) };
}

function rateOf(files: readonly SproutFile[]): number {
  return files.reduce((sum, { readsPerSecond }) => sum + readsPerSecond, 0);
}

/** Chunk of the object's size: mean and variance of its service, Table IV, in ms and ms^2. */
const SERVICE: Record<number, readonly [mean: number, variance: number]> = {
  16: [35.88, 2.6925],
  64: [147.8462, 388.9872],
  256: [355.08, 1256.61],
  1024: [6758.06, 554_180],
};

function againstLru(): string {
  const line = (label: string, megabytes: number, readsPerSecond: number): Cells => {
    const files = randomFiles(1000, () => readsPerSecond / 1000);
    const [mean, variance] = SERVICE[megabytes]!;
    const server = lognormalServer(mean / 1000, Math.sqrt(variance) / 1000);
    const plan = optimizeSprout(
      files,
      RATES.map(() => server),
      Math.floor((10_000 * K) / megabytes),
      { gainMin: 1e-3, stepsMax: 20 },
    );
    // A lognormal of this mean and deviation: exp of a normal of variance ln(E[X^2] / E[X]^2).
    const logVariance = Math.log(server.secondMoment / server.mean ** 2);
    const study: QueueStudy = {
      files,
      servers: RATES.length,
      serviceSeconds: (_, random) => server.mean * Math.exp(Math.sqrt(logVariance) * random.normal() - logVariance / 2),
      reads: 20_000,
      seed: 1,
    };
    const own = simulateQueues(study, { plan });
    const lru = simulateQueues(study, { lruFiles: Math.floor(5000 / megabytes) });
    const single = simulateQueues(study, { lruFiles: Math.floor(10_000 / megabytes) });
    return [
      label,
      plan.meanBound.toFixed(3),
      own.meanSeconds.toFixed(3),
      lru.meanSeconds.toFixed(3),
      change(own.meanSeconds, lru.meanSeconds),
      change(own.meanSeconds, single.meanSeconds),
      share(own.chunkHitRatio),
      share(lru.chunkHitRatio),
    ];
  };
  const rates: Record<number, number> = { 16: 0.10824, 64: 0.51852, 256: 0.0078, 1024: 0.0024 };
  return table(
    ["case", "bound", "Sprout", "LRU, two copies", "Sprout's gain", "against LRU of one copy", "chunks cached", "LRU"],
    ...Object.entries(rates).map(([megabytes, rate]) => line(`${megabytes} MB, ${rate}/s`, Number(megabytes), rate)),
    ...[0.5, 1, 2, 4, 8].map((rate) => line(`64 MB, ${rate}/s`, 64, rate)),
  );
}
