/** Where the parts of the local world are, as milliseconds between them. */
import { createRequire } from "node:module";
import type { Scenario } from "@agarose/solver/simulator";
import type { LinkFaults } from "./wan-link.ts";

/** Places, the latencies between them, and who runs the regions. */
export interface Geography {
  readonly regions: readonly string[];
  readonly pops: readonly string[];
  /** Time of one chunk from a region, by PoP: from the PoP itself, or from a client beside it. */
  readonly regionLatencyMs: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Time of one answer from the client's own PoP. */
  readonly cacheLatencyMs: Readonly<Record<string, number>>;
  /** Additional time to another PoP. */
  readonly popDistanceMs: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** The operator of a region. The regions of one provider may fail together. */
  readonly provider: Readonly<Record<string, string>>;
  /** Slow answers of every region from the start. */
  readonly stragglers: LinkFaults["stragglers"];
}

/**
 * Six regions and three PoPs. The row of `fra` is Table I of Agar (ICDCS'17), measured from Frankfurt. The paper has no
 * other row: the rows of `lhr` and `iad`, the cache latency and the distances between PoPs are our estimates. Each of
 * three providers has two regions, so that the world can lose a provider.
 */
export const TABLE_I: Geography = {
  regions: ["frankfurt", "dublin", "n-virginia", "sao-paulo", "tokyo", "sydney"],
  pops: ["fra", "lhr", "iad"],
  regionLatencyMs: {
    fra: { frankfurt: 80, dublin: 200, "n-virginia": 600, "sao-paulo": 1400, tokyo: 3400, sydney: 4600 },
    lhr: { frankfurt: 150, dublin: 90, "n-virginia": 560, "sao-paulo": 1500, tokyo: 3500, sydney: 4700 },
    iad: { frankfurt: 600, dublin: 550, "n-virginia": 80, "sao-paulo": 900, tokyo: 2600, sydney: 3600 },
  },
  cacheLatencyMs: { fra: 39, lhr: 39, iad: 39 },
  popDistanceMs: {
    fra: { fra: 0, lhr: 60, iad: 450 },
    lhr: { fra: 60, lhr: 0, iad: 420 },
    iad: { fra: 450, lhr: 420, iad: 0 },
  },
  provider: {
    frankfurt: "cloud-a",
    dublin: "cloud-b",
    "n-virginia": "cloud-a",
    "sao-paulo": "cloud-b",
    tokyo: "cloud-c",
    sydney: "cloud-c",
  },
  stragglers: { probability: 0, factor: 1 },
};

/** Returns the milliseconds of one answer from PoP `pop` to a client or PoP beside PoP `near`. */
export function popLatencyMs(geography: Geography, near: string, pop: string): number {
  return geography.cacheLatencyMs[pop]! + (geography.popDistanceMs[near]?.[pop] ?? 0);
}

/** Returns the places of a scenario. Each region has its own provider. */
export function geographyOf({ regions, pops, noise }: Scenario): Geography {
  const by = <T>(of: (pop: Scenario["pops"][number]) => T): Record<string, T> =>
    Object.fromEntries(pops.map((pop) => [pop.name, of(pop)]));
  return {
    regions,
    pops: pops.map(({ name }) => name),
    regionLatencyMs: by(({ regionLatencyMs }) => regionLatencyMs),
    cacheLatencyMs: by(({ cacheLatencyMs }) => cacheLatencyMs),
    popDistanceMs: by(({ name, cacheLatencyMs, peerLatencyMs }) =>
      Object.fromEntries(
        pops.map((peer) => [peer.name, peer.name === name ? 0 : (peerLatencyMs[peer.name] ?? FAR_MS) - cacheLatencyMs]),
      ),
    ),
    provider: Object.fromEntries(regions.map((region) => [region, region])),
    stragglers: { probability: noise.stragglerProbability, factor: noise.stragglerFactor },
  };
}

/** The distance of two PoPs when the scenario gives none. */
const FAR_MS = 1_000;

/**
 * Six providers of one continent and three PoPs: the places of the scenario `continental` of `@agarose/solver`, which
 * are estimates. It has no stragglers, so that a test knows which requests its own faults have slowed.
 */
export const CONTINENTAL: Geography = {
  ...geographyOf(createRequire(import.meta.url)("@agarose/solver/scenarios/continental.json") as Scenario),
  stragglers: { probability: 0, factor: 1 },
};
