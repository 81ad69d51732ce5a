/** Families of knapsack instances, easy and hard, by seed: shared by the tests and the benchmark. */
import type { KnapsackInstance } from "../src/knapsack/index.ts";
import type { Random } from "../src/random.ts";

export interface FamilySize {
  readonly objects: number;
  readonly options: number;
  /** Largest weight of one step; small for plain dynamic programming, large for byte-sized weights. */
  readonly weightMax: number;
  /** Capacity as a share of all objects' heaviest options. */
  readonly fill: number;
}

/** Weight and value of option j, given the option before it (0, 0 for the first). */
type Draw = (
  random: Random,
  j: number,
  before: [number, number],
  size: FamilySize,
  popularity: number,
) => [number, number];

const whole = (random: Random, max: number): number => 1 + random.integer(max);

export const FAMILIES: Record<string, Draw> = {
  "zipf popularity, concave": (r, j, _before, _size, popularity) => [j + 1, popularity * Math.sqrt(j + 1 + r.next())],
  "uniform, unsorted, duplicate weights": (r, _j, _before, { weightMax }) => [whole(r, weightMax), r.integer(1000)],
  "weakly correlated": (r, _j, _before, { weightMax }) => {
    const weight = whole(r, weightMax);
    return [weight, Math.max(0, weight + Math.round((r.next() - 0.5) * 0.2 * weightMax))];
  },
  "strongly correlated, cumulative": (r, _j, [weight, value], { weightMax }) => {
    const step = whole(r, weightMax);
    return [weight + step, value + step + Math.ceil(weightMax / 100)];
  },
  "strongly correlated, single steps": (r, _j, _before, { weightMax }) => {
    const weight = whole(r, weightMax);
    return [weight, weight + Math.ceil(weightMax / 100)];
  },
  "subset sum": (r, _j, _before, { weightMax }) => {
    const weight = whole(r, weightMax);
    return [weight, weight];
  },
  "even weights": (r, _j, _before, { weightMax }) => {
    const weight = 2 * whole(r, weightMax);
    return [weight, weight + 2];
  },
  "correlated by popularity": (r, _j, [weight, value], { weightMax }) => {
    const step = whole(r, weightMax);
    return [weight + step, value + step * (1 + 0.1 * r.next())];
  },
  "convex trap": (_r, j) => [j + 1, (j + 1) ** 2],
  "random convex trap": (r, j) => [j + 1, (j + 1) ** 2 * r.next()],
  "ties in float density": (_r, j) => [j + 1, (j + 1) * 0.1],
  "worthless options": (r, j) => [j + 1, r.next() < 0.7 ? 0 : r.integer(3)],
};

export function drawInstance(draw: Draw, size: FamilySize, random: Random): KnapsackInstance {
  const { objects, options } = size;
  const start = new Uint32Array(objects + 1);
  const weights = new Float64Array(objects * options);
  const values = new Float64Array(objects * options);
  let heaviest = 0;
  for (let i = 0; i < objects; i++) {
    const popularity = 1e6 * (i + 1) ** -1.1;
    let before: [number, number] = [0, 0];
    let max = 0;
    for (let j = 0; j < options; j++) {
      before = draw(random, j, before, size, popularity);
      [weights[i * options + j], values[i * options + j]] = before;
      max = Math.max(max, before[0]);
    }
    heaviest += max;
    start[i + 1] = (i + 1) * options;
  }
  return { capacity: Math.floor(heaviest * size.fill), start, weights, values };
}
