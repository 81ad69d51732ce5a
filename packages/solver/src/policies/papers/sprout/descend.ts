/**
 * The probabilities of asking the servers, for given numbers of cached chunks: spectral projected gradient steps
 * (Birgin, Martínez and Raydan 2000). Plain gradient steps need thousands where queues are short at some servers
 * and long at others.
 */
import type { SproutFile } from "./files.ts";
import type { Server } from "./latency-bound.ts";
import { costOf, crowdingOf, loadsOf, type Probabilities } from "./requests.ts";
import { projectOnto } from "./project.ts";

/** Probabilities per file and server, and the mean bound in seconds that they give. */
export interface Requests {
  readonly probability: Probabilities;
  readonly meanBound: number;
}

/** A function of the probabilities, and its slope per request of file i to server j. */
interface Measured {
  readonly value: number;
  readonly slope: (i: number, j: number) => number;
}

type Measure = (probability: Probabilities) => Measured;

/** The descent ends when this many steps together gain less than GAIN_MIN. */
const PATIENCE = 8;
const GAIN_MIN = 1e-7;
/** Armijo's constant: a step must gain this share of what the slope promises. */
const SUFFICIENT = 1e-4;
/** A step that was halved this often has no descent left above rounding. */
const HALVINGS_MAX = 40;
/** A start that overloads servers is brought below this share of their time first. */
const BUSY_MAX = 0.98;

/** Lowers the mean bound from `start`, which asks for k - d chunks of each file, in at most `stepsMax` steps. */
export function descend(
  files: readonly SproutFile[],
  servers: readonly Server[],
  start: Probabilities,
  stepsMax: number,
): Requests {
  const boundAt: Measure = (probability) => {
    const crowding = crowdingOf(files, servers, probability);
    return { value: crowding.meanBound, slope: (i, j) => costOf(crowding, i, j) };
  };
  let from = start;
  if (!Number.isFinite(boundAt(start).value)) {
    from = minimize(files, start, (probability) => overloadAt(files, servers, probability), stepsMax).probability;
  }
  const { probability, value } = minimize(files, from, boundAt, stepsMax);
  return { probability, meanBound: value };
}

/** How far the servers are above BUSY_MAX, squared. */
function overloadAt(files: readonly SproutFile[], servers: readonly Server[], probability: Probabilities): Measured {
  const over = Float64Array.from(loadsOf(files, servers.length, probability), (load, j) =>
    Math.max(0, (load * servers[j]!.mean) / (servers[j]!.parallel ?? 1) - BUSY_MAX),
  );
  const value = over.reduce((sum, busy) => sum + busy ** 2, 0);
  const slope = (_: number, j: number): number => (2 * over[j]! * servers[j]!.mean) / (servers[j]!.parallel ?? 1);
  return { value, slope };
}

/**
 * Minimises over the probabilities. Distances between files are weighted by their rates, so that a rarely read file
 * moves as fast as one that is often read.
 */
function minimize(
  files: readonly SproutFile[],
  start: Probabilities,
  measure: Measure,
  stepsMax: number,
): { readonly probability: Probabilities; readonly value: number } {
  const total = files.map((file, i) => file.servers.reduce((sum, j) => sum + start[i]![j]!, 0));
  const rate = files.reduce((sum, { readsPerSecond }) => sum + readsPerSecond, 0);
  let at = start;
  let now = measure(at);
  let best = { probability: at, value: now.value };
  let size = firstSize(files, now);
  const recent = [now.value];
  for (let step = 0; step < stepsMax && now.value > 0 && Number.isFinite(now.value); step++) {
    const target = at.map((own, i) => projectOnto(files[i]!, total[i]!, own, (j) => -size * now.slope(i, j)));
    let slope = 0;
    for (const [i, { readsPerSecond, servers }] of files.entries()) {
      for (const j of servers) slope += readsPerSecond * now.slope(i, j) * (target[i]![j]! - at[i]![j]!);
    }
    slope /= rate;
    if (!(slope < 0)) break;
    // The bound may rise for some steps: that lets the step sizes follow the curvature along narrow valleys.
    const worst = Math.max(...recent.slice(-PATIENCE));
    const found = search(at, target, measure, (share) => worst + SUFFICIENT * share * slope);
    if (!found) break;
    size = nextSize(files, at, now, found.at, found.now) ?? size * 2;
    at = found.at;
    now = found.now;
    recent.push(best.value);
    recent[recent.length - 1] = now.value;
    if (now.value < best.value) best = { probability: at, value: now.value };
    if (step >= PATIENCE && recent.at(-1 - PATIENCE)! - best.value < GAIN_MIN * best.value) break;
  }
  return best;
}

/** The first step moves the steepest file by about one request. */
function firstSize(files: readonly SproutFile[], { slope }: Measured): number {
  let spread = 0;
  for (const [i, { servers }] of files.entries()) {
    const slopes = servers.map((j) => slope(i, j)).filter((one) => Number.isFinite(one));
    if (slopes.length > 0) spread = Math.max(spread, Math.max(...slopes) - Math.min(...slopes));
  }
  return spread > 0 ? 1 / spread : 1;
}

/** Halves the step until the measure is below `limit`. */
function search(
  from: Probabilities,
  target: Probabilities,
  measure: Measure,
  limit: (share: number) => number,
): { readonly at: Probabilities; readonly now: Measured } | undefined {
  for (let share = 1, n = 0; n < HALVINGS_MAX; share /= 2, n++) {
    const at = share === 1 ? target : from.map((own, i) => own.map((pi, j) => pi + share * (target[i]![j]! - pi)));
    const now = measure(at);
    if (now.value <= limit(share)) return { at, now };
  }
  return undefined;
}

/** Barzilai and Borwein's size: the inverse curvature along the last step; undefined where it is not positive. */
function nextSize(
  files: readonly SproutFile[],
  before: Probabilities,
  { slope: slopeBefore }: Measured,
  after: Probabilities,
  { slope: slopeAfter }: Measured,
): number | undefined {
  let moved = 0;
  let bent = 0;
  for (const [i, { readsPerSecond, servers }] of files.entries()) {
    for (const j of servers) {
      const step = after[i]![j]! - before[i]![j]!;
      if (step === 0) continue;
      moved += readsPerSecond * step ** 2;
      bent += readsPerSecond * step * (slopeAfter(i, j) - slopeBefore(i, j));
    }
  }
  return bent > 0 && moved > 0 ? moved / bent : undefined;
}
