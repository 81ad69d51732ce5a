/**
 * How long a read takes that asks for several chunks and needs only some of them (late binding): the expected value of
 * an order statistic of independent, differently distributed latencies.
 */

/** Distribution of the time that one source takes to deliver one chunk. */
export interface LatencyLaw {
  /** Mean in milliseconds, finite and >= 0. */
  readonly meanMs: number;
  /** Standard deviation in milliseconds, >= 0. Default 0: always the mean. */
  readonly sdMs?: number;
}

const GRID_STEPS = 96;

/**
 * Returns the expected milliseconds until `needed` of the requests have arrived: 0 when none is needed, Infinity when
 * there are fewer requests. Each latency is lognormal with its mean and standard deviation. Without deviations the
 * result is the `needed`-th smallest mean; otherwise a numeric integral, accurate to about 1%.
 */
export function expectedReadMs(requests: readonly LatencyLaw[], needed: number): number {
  if (needed <= 0) return 0;
  if (needed > requests.length) return Infinity;
  const means = requests.map((request) => request.meanMs).toSorted((a, b) => a - b);
  if (requests.every((request) => !request.sdMs)) return means[needed - 1]!;
  const laws = requests.map(lognormal);
  // The expectation of a positive variable is the integral of its survival function.
  const end = Math.max(...requests.map((request) => request.meanMs + 8 * (request.sdMs ?? 0)));
  const below = new Float64Array(needed);
  let sum = 0;
  for (let step = 0; step < GRID_STEPS; step++) {
    // Squared spacing puts more points where the fast sources are.
    const from = end * (step / GRID_STEPS) ** 2;
    const to = end * ((step + 1) / GRID_STEPS) ** 2;
    sum += (to - from) * probabilityFewerThan(needed, laws, (from + to) / 2, below);
  }
  return sum;
}

interface Lognormal {
  readonly mu: number;
  readonly sigma: number;
  readonly meanMs: number;
}

function lognormal({ meanMs, sdMs = 0 }: LatencyLaw): Lognormal {
  const variance = meanMs > 0 ? Math.log1p((sdMs / meanMs) ** 2) : 0;
  return { mu: Math.log(meanMs) - variance / 2, sigma: Math.sqrt(variance), meanMs };
}

/** The probability that fewer than `needed` requests have arrived at time `ms` (a Poisson-binomial tail). */
function probabilityFewerThan(needed: number, laws: readonly Lognormal[], ms: number, exactly: Float64Array): number {
  exactly.fill(0);
  exactly[0] = 1;
  for (const law of laws) {
    const arrived = arrivedBy(law, ms);
    for (let count = needed - 1; count > 0; count--) {
      exactly[count] = exactly[count]! * (1 - arrived) + exactly[count - 1]! * arrived;
    }
    exactly[0]! *= 1 - arrived;
  }
  let sum = 0;
  for (const probability of exactly) sum += probability;
  return sum;
}

function arrivedBy({ mu, sigma, meanMs }: Lognormal, ms: number): number {
  if (sigma === 0) return ms >= meanMs ? 1 : 0;
  return normalBelow((Math.log(ms) - mu) / sigma);
}

/** The standard normal distribution function (Abramowitz & Stegun 26.2.17, error below 7.5e-8). */
function normalBelow(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const poly = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const tail = 0.3989422804014327 * Math.exp((-z * z) / 2) * poly;
  return z > 0 ? 1 - tail : tail;
}
