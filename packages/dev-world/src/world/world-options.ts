/** The options of the local world. A module of its own, because `--help` loads the defaults without Miniflare. */
import type { PopRuntime } from "../pops/mixed-pops.ts";
import { TABLE_I, type Geography } from "./geography.ts";

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
  /** Seeds the jitter and the faults of the links. */
  readonly seed: number;
  /** k data chunks and m parity chunks of an object, or `auto`: by its size. */
  readonly code: "auto" | { readonly k: number; readonly m: number };
  /** Capacity of each PoP's chunk cache, in bytes. */
  readonly cacheBytes: number;
  /** Whether the PoPs read from each other's caches. */
  readonly peers: boolean;
  /** What runs each PoP of the geography, in its order. Default: workerd. */
  readonly runtimes?: readonly PopRuntime[];
  /** Variables of every PoP, as in wrangler.toml. They replace those that the world sets. */
  readonly popVars?: Readonly<Record<string, string>>;
  /** Called when a step of the start begins. */
  readonly progress: (step: string) => void;
}

/** The world of `agarose dev` without options. */
export const WORLD_DEFAULTS: Omit<WorldOptions, "progress"> = {
  geography: TABLE_I,
  s3: "embedded",
  scale: 0.25,
  jitterSigma: 0.1,
  mbitPerSecond: 200,
  seed: 1,
  code: { k: 9, m: 3 },
  // A few per cent of the samples, as in the papers, so that the knapsack has a choice to make.
  cacheBytes: 3_000_000,
  peers: true,
};
