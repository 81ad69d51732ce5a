/** How evenly reads load the servers: EC-Cache's metric (section 5). */

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
