/** The random part of latencies. One sample serves every system, so that all systems have the same luck. */
import { seededRandom, type Random } from "../random.ts";
import type { NoiseSpec } from "./scenario/scenario.ts";

/** Factors on the latencies of one read. */
export interface NoiseSample {
  own: number;
  readonly chunk: Float64Array;
  readonly region: Float64Array;
  readonly peer: Float64Array;
}

/** The 95th percentile of a standard normal distribution. */
const NORMAL_95 = 1.645;

/** Samples the noise of a scenario. */
export class Noise {
  readonly isOff: boolean;
  readonly #spec: NoiseSpec;
  readonly #sample: NoiseSample;

  constructor(spec: NoiseSpec, chunks: number, regions: number, pops: number) {
    this.#spec = spec;
    this.isOff = spec.lognormalSigma === 0 && (spec.stragglerProbability === 0 || spec.stragglerFactor === 1);
    this.#sample = {
      own: 1,
      chunk: new Float64Array(chunks).fill(1),
      region: new Float64Array(regions).fill(1),
      peer: new Float64Array(pops).fill(1),
    };
  }

  /** Returns the sample that belongs to a read's number; each call reuses the same object. */
  sampleFor(seed: number): NoiseSample {
    if (!this.isOff) this.#fill(seededRandom(seed), this.#sample);
    return this.#sample;
  }

  /** Mean and standard deviation of the factor on one chunk's latency. */
  get chunkFactor(): { readonly mean: number; readonly deviation: number } {
    const { lognormalSigma, stragglerProbability: p, stragglerFactor } = this.#spec;
    const mean = 1 - p + p * stragglerFactor;
    const secondMoment = Math.exp(lognormalSigma ** 2) * (1 - p + p * stragglerFactor ** 2);
    return { mean, deviation: Math.sqrt(Math.max(0, secondMoment - mean ** 2)) };
  }

  /** The 95th percentile of the factor on one chunk's latency, without stragglers. */
  get lateFactor(): number {
    const { lognormalSigma: sigma } = this.#spec;
    return Math.exp(NORMAL_95 * sigma - sigma ** 2 / 2);
  }

  /**
   * Returns `count` independent samples to average over: the same ones for the same seed, and a single one without
   * noise.
   */
  samples(count: number, seed: number): NoiseSample[] {
    if (this.isOff) return [this.#sample];
    return Array.from({ length: count }, (_, s) => {
      const { own, chunk, region, peer } = this.sampleFor(seed + s);
      return { own, chunk: chunk.slice(), region: region.slice(), peer: peer.slice() };
    });
  }

  #fill(random: Random, sample: NoiseSample): void {
    const { stragglersShared } = this.#spec;
    // The cache is near: it varies, but it has no stragglers.
    sample.own = this.#lognormal(random);
    for (let q = 0; q < sample.peer.length; q++) sample.peer[q] = this.#lognormal(random) * this.#straggle(random);
    for (let r = 0; r < sample.region.length; r++) {
      sample.region[r] = stragglersShared === "region" ? this.#straggle(random) : 1;
    }
    for (let c = 0; c < sample.chunk.length; c++) {
      sample.chunk[c] = this.#lognormal(random) * (stragglersShared === "chunk" ? this.#straggle(random) : 1);
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
