/** The random part of latencies: one draw serves every system, so that they are compared on the same luck. */

import { seededRandom } from "../random.ts";
import type { Random } from "../random.ts";
import type { NoiseSpec } from "./scenario/scenario.ts";

/** Factors on the latencies of one read. */
export interface NoiseDraw {
  own: number;
  readonly chunk: Float64Array;
  readonly region: Float64Array;
  readonly peer: Float64Array;
}

/** The 95th percentile of a standard normal distribution. */
const NORMAL_95 = 1.645;

export class Noise {
  readonly isOff: boolean;
  readonly #spec: NoiseSpec;
  readonly #drawn: NoiseDraw;

  constructor(spec: NoiseSpec, chunks: number, regions: number, pops: number) {
    this.#spec = spec;
    this.isOff = spec.lognormalSigma === 0 && (spec.stragglerProbability === 0 || spec.stragglerFactor === 1);
    this.#drawn = {
      own: 1,
      chunk: new Float64Array(chunks).fill(1),
      region: new Float64Array(regions).fill(1),
      peer: new Float64Array(pops).fill(1),
    };
  }

  /** The draw belonging to a read's number; the same object is refilled each time. */
  drawFor(seed: number): NoiseDraw {
    if (!this.isOff) this.#fill(seededRandom(seed), this.#drawn);
    return this.#drawn;
  }

  /** Mean and standard deviation of the factor on one chunk's latency. */
  get chunkFactor(): { readonly mean: number; readonly deviation: number } {
    const { lognormalSigma, stragglerProbability: p, stragglerFactor } = this.#spec;
    const mean = 1 - p + p * stragglerFactor;
    const secondMoment = Math.exp(lognormalSigma ** 2) * (1 - p + p * stragglerFactor ** 2);
    return { mean, deviation: Math.sqrt(Math.max(0, secondMoment - mean ** 2)) };
  }

  /** The factor that all but 5 of 100 chunks stay below, but for stragglers. */
  get lateFactor(): number {
    const { lognormalSigma: sigma } = this.#spec;
    return Math.exp(NORMAL_95 * sigma - sigma ** 2 / 2);
  }

  /** So many independent draws to average over: always the same ones, and just one without noise. */
  samples(count: number, seed: number): NoiseDraw[] {
    if (this.isOff) return [this.#drawn];
    return Array.from({ length: count }, (_, s) => {
      const { own, chunk, region, peer } = this.drawFor(seed + s);
      return { own, chunk: chunk.slice(), region: region.slice(), peer: peer.slice() };
    });
  }

  #fill(random: Random, drawn: NoiseDraw): void {
    const { stragglersShared } = this.#spec;
    // The cache is next door: it varies, but it does not straggle.
    drawn.own = this.#lognormal(random);
    for (let q = 0; q < drawn.peer.length; q++) drawn.peer[q] = this.#lognormal(random) * this.#straggle(random);
    for (let r = 0; r < drawn.region.length; r++) {
      drawn.region[r] = stragglersShared === "region" ? this.#straggle(random) : 1;
    }
    for (let c = 0; c < drawn.chunk.length; c++) {
      drawn.chunk[c] = this.#lognormal(random) * (stragglersShared === "chunk" ? this.#straggle(random) : 1);
    }
  }

  #lognormal(random: Random): number {
    const { lognormalSigma } = this.#spec;
    return lognormalSigma === 0 ? 1 : Math.exp(lognormalSigma * random.normal() - lognormalSigma ** 2 / 2);
  }

  #straggle(random: Random): number {
    return random.next() < this.#spec.stragglerProbability ? this.#spec.stragglerFactor : 1;
  }
}
