/** The options of the local world. A module of its own, because `--help` loads the defaults without Miniflare. */
import type { PopRuntime } from "../pops/mixed-pops.ts";
import { CONTINENTAL, TABLE_I, type Geography } from "./geography.ts";

/** How to set up a world. */
export interface WorldOptions {
  readonly geography: Geography;
  /** The S3 server behind the links. */
  readonly s3: "embedded" | "versitygw";
  /** Multiplies every latency of the geography. */
  readonly scale: number;
  /** Standard deviation of the logarithm of each latency. */
  readonly jitterSigma: number;
  /** Megabits per second of one transfer over any link; 0 is unlimited. */
  readonly mbitPerSecond: number;
  /** Megabits per second that all downloads of the client share from the start; 0 is unlimited. */
  readonly lineMbit: number;
  /** Seeds the jitter and the faults of the links. */
  readonly seed: number;
  /** k data chunks and m parity chunks of an object, or `auto`: by its size. */
  readonly code: "auto" | { readonly k: number; readonly m: number };
  /** Capacity of each PoP's chunk cache, in bytes. */
  readonly cacheBytes: number;
  /** Whether the PoPs read from each other's caches. */
  readonly peers: boolean;
  /** The runtime of each PoP of the geography, in its order. Default: workerd. */
  readonly runtimes?: readonly PopRuntime[];
  /** Variables of every PoP, as in wrangler.toml. They replace those that the world sets. */
  readonly popVars?: Readonly<Record<string, string>>;
  /** Called when a step of the start begins. */
  readonly progress: (step: string) => void;
}

/** The world of `agarose dev` without options. */
export const WORLD_DEFAULTS: Omit<WorldOptions, "progress"> = {
  geography: CONTINENTAL,
  s3: "embedded",
  scale: 1,
  jitterSigma: 0.1,
  mbitPerSecond: 200,
  lineMbit: 100,
  seed: 1,
  code: "auto",
  // A few per cent of the samples, as in the papers, so that the knapsack has a choice to make.
  cacheBytes: 3_000_000,
  peers: true,
};

/** The worlds that have a name. `agar` is the one of the paper, at a quarter of its latencies. */
export const WORLDS = {
  continental: WORLD_DEFAULTS,
  agar: { ...WORLD_DEFAULTS, geography: TABLE_I, scale: 0.25, code: { k: 9, m: 3 }, lineMbit: 0 },
} as const satisfies Record<string, typeof WORLD_DEFAULTS>;

/** The name of a world. */
export type WorldName = keyof typeof WORLDS;
