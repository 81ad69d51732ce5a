/** How the local world can be set up; apart from it, because `--help` needs the defaults and nothing heavier. */

import { TABLE_I, type Geography } from "./geography.ts";

export interface WorldOptions {
  readonly geography: Geography;
  /** The S3 server behind the links. */
  readonly s3: "embedded" | "versitygw";
  /** All latencies are the geography's times this. */
  readonly scale: number;
  /** Standard deviation of the logarithm of each latency. */
  readonly jitterSigma: number;
  /** Megabits per second of one transfer over any link; 0 is unlimited. */
  readonly mbitPerSecond: number;
  readonly seed: number;
  readonly code: { readonly k: number; readonly m: number };
  /** Capacity of each PoP's chunk cache. */
  readonly cacheBytes: number;
  /** Whether the PoPs are each other's peers. */
  readonly peers: boolean;
  /** Variables for the PoPs beside those that the world sets. */
  readonly popVars?: Readonly<Record<string, string>>;
  readonly progress: (step: string) => void;
}

export const WORLD_DEFAULTS: Omit<WorldOptions, "progress"> = {
  geography: TABLE_I,
  s3: "embedded",
  scale: 0.25,
  jitterSigma: 0.1,
  mbitPerSecond: 200,
  seed: 1,
  code: { k: 9, m: 3 },
  // A few per cent of the samples, as in the papers, so that the knapsack has something to choose.
  cacheBytes: 3_000_000,
  peers: true,
};
