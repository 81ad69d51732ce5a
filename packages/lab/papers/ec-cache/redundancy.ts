/** Where spare memory goes: to the objects that need it most (EC-Cache, OSDI 2016, section 6.1). */

/**
 * Returns how many copies (or pieces) each object gets: `base` each, and `extra` in all. Each extra copy goes to the
 * object whose copies have the most requests, which flattens the popularity from the top. No object gets more than
 * `most`, the number of servers.
 */
export function spreadRedundancy(popularity: ArrayLike<number>, base: number, extra: number, most: number): Int32Array {
  const count = new Int32Array(popularity.length).fill(base);
  for (let left = Math.min(extra, (most - base) * count.length); left > 0; left--) {
    let busiest = -1;
    for (let o = 0; o < count.length; o++) {
      if (count[o]! >= most) continue;
      if (busiest < 0 || popularity[o]! / count[o]! > popularity[busiest]! / count[busiest]!) busiest = o;
    }
    count[busiest]! += 1;
  }
  return count;
}
