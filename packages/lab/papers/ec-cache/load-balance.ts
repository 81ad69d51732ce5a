/** How evenly reads load the servers: EC-Cache's metric and its Theorem 1 (section 5). */

/**
 * EC-Cache's percent imbalance, equation (1): how far the busiest server is above `ideal`, the load of each server if
 * the needed reads were spread evenly. Default of `ideal`: the average load, which is higher where there are extra
 * requests.
 */
export function imbalancePercent(load: ArrayLike<number>, ideal = averageOf(load)): number {
  let most = 0;
  for (let s = 0; s < load.length; s++) most = Math.max(most, load[s]!);
  return ideal > 0 ? (100 * (most - ideal)) / ideal : 0;
}

function averageOf(load: ArrayLike<number>): number {
  let sum = 0;
  for (let s = 0; s < load.length; s++) sum += load[s]!;
  return load.length === 0 ? 0 : sum / load.length;
}

/**
 * Variance of a server's load when every object is cut into k pieces, relative to whole objects. Theorem 1 gives 1/k
 * for pieces placed independently. On k distinct servers of S it is (1/k) (1 - k/S) / (1 - 1/S).
 */
export function splitVarianceRatio(k: number, servers: number, isDistinct: boolean): number {
  return isDistinct ? (1 / k) * ((1 - k / servers) / (1 - 1 / servers)) : 1 / k;
}
