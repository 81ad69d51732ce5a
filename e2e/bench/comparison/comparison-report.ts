/** The report of the comparison with whole copies and with striping, and the parts that they share. */
import { WORLDS, type WorldName } from "@agarose/dev-world";
import { describeMachine } from "@agarose/dev-world/machine";
import { table } from "@agarose/dev-world/statistics";

export interface Layout {
  readonly name: string;
  readonly title: string;
  readonly world: WorldName;
  /** The code of the contestant with one code for all sizes. */
  readonly code: { readonly k: number; readonly m: number };
  readonly objects: number;
  /** Reads of each phase at each PoP, and before the first one. */
  readonly reads: number;
}

/** Of the logarithm of each latency. */
export const JITTER = 0.4;
const SMALL = 1_000_000;
const LARGE = 4_000_000;
/** Share of all object bytes that each PoP may cache: as in the continental scenario. */
export const CACHE_SHARE = 0.039;
export const ZIPF = 0.9;
/** Of the caches, in each phase. */
export const PERIODS = 3;
export const STRAGGLERS = { probability: 0.02, factor: 10 };

export const CONTESTANTS = [
  "agarose",
  "agarose, one code",
  "one copy, CDN",
  "two copies, CDN",
  "striped, no parity",
] as const;
export type Contestant = (typeof CONTESTANTS)[number];
export const PHASES = ["no faults", "2% stragglers", "nearest region down"] as const;
export type Phase = (typeof PHASES)[number];

export interface Sample {
  readonly pop: string;
  readonly contestant: Contestant;
  readonly phase: Phase;
  readonly bytes: number;
  /** Until the last byte; undefined when the read failed. */
  readonly ms: number | undefined;
}

export function statistics(samples: readonly Sample[]) {
  const times = samples.flatMap(({ ms }) => (ms === undefined ? [] : [ms])).toSorted((a, b) => a - b);
  return {
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    p99Ms: times[Math.min(times.length - 1, Math.floor(0.99 * times.length))] ?? Number.NaN,
    failed: samples.length - times.length,
  };
}

export function describe(
  layout: Layout,
  run: { samples: readonly Sample[]; objects: number; reads: number; cacheBytes: number; browser: string },
): string {
  const pick = (phase: Phase, contestant: Contestant, from = 0, to = Infinity) =>
    statistics(
      run.samples.filter(
        (sample) =>
          sample.phase === phase && sample.contestant === contestant && sample.bytes >= from && sample.bytes < to,
      ),
    );
  /** `none` when every read failed. */
  const ms = (value: number): string => (Number.isNaN(value) ? "none" : value.toFixed(0));
  const rows = PHASES.flatMap((phase) =>
    CONTESTANTS.map((contestant) => {
      const all = pick(phase, contestant);
      const mean = (from: number, to: number): string => ms(pick(phase, contestant, from, to).meanMs);
      return [
        `${phase}: ${contestant}`,
        ms(all.meanMs),
        mean(0, SMALL),
        mean(SMALL, LARGE),
        mean(LARGE, Infinity),
        ms(all.p99Ms),
        String(all.failed),
      ];
    }),
  );
  const ratio = (a: number, b: number): string => (a / b).toFixed(2);
  const cdn = "one copy, CDN";
  const against = (ours: Contestant): string => {
    const small = ratio(pick("no faults", ours, 0, SMALL).meanMs, pick("no faults", cdn, 0, SMALL).meanMs);
    const large = ratio(pick("no faults", ours, LARGE).meanMs, pick("no faults", cdn, LARGE).meanMs);
    const tail = ratio(pick("2% stragglers", ours).p99Ms, pick("2% stragglers", cdn).p99Ms);
    const down = ratio(pick("nearest region down", ours).meanMs, pick("no faults", ours).meanMs);
    return (
      `mean of objects below 1 MB ${small}, above 4 MB ${large}; p99 with stragglers ${tail}. ` +
      `With the nearest region down its own mean is ${down} of that without faults.`
    );
  };
  const { k, m } = layout.code;
  return [
    `${run.objects} objects of 0.1 to 8 MB (sizes even over their logarithm), Zipf ${ZIPF}, ${run.reads} reads of each phase from each PoP ` +
      `after as many uncounted ones, one after another from one page, in ${PERIODS} periods of the PoP; every contestant caches ${(run.cacheBytes / 1e6).toFixed(1)} MB per PoP ` +
      `(${100 * CACHE_SHARE}% of all bytes). Links: latencies times ${WORLDS[layout.world].scale}, lognormal sigma ${JITTER}, ` +
      `${WORLDS[layout.world].mbitPerSecond} Mbit/s per transfer, and no limit on the reader's own line, which favours many transfers at once. The CDN is a Worker with a least-recently-used cache of whole objects in KV, its one copy ` +
      "in the region nearest to each PoP (which flatters it: one copy can be nearest to one PoP only), two copies in the two nearest. " +
      "*Agarose* chooses a code by size, as it does by default; *one code* is " +
      `RS(${k},${m}) for all sizes. After the uncounted reads, \`agarose scrub\` gives both extra chunks of hot objects. ` +
      `*Striped* is Agarose with k = n = ${k} over the regions nearest on average, delta 0. A straggler takes ${STRAGGLERS.factor} times as long. ` +
      "Times until the last byte, of reads that succeeded.",
    table(["", "mean, ms", "< 1 MB", "1 - 4 MB", "> 4 MB", "p99, ms", "failed"], rows),
    `Agarose against one copy behind a CDN: ${against("agarose")}`,
    `With one code: ${against("agarose, one code")}`,
    describeMachine(run.browser),
  ].join("\n\n");
}
