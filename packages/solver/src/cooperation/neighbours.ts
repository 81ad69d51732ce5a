/**
 * Which peers a PoP cooperates with: the nearest ones, and those that count it among their nearest. A far cache is no
 * better a source than the regions. So messages grow with the number of PoPs, where all pairs would grow with its
 * square, and PoPs that are not neighbours change their caches at the same time. Pure.
 */

/** So many of the nearest peers: up to ten PoPs cooperate all with all. */
export const NEAREST_MAX = 9;

/** How far a peer is. */
export interface PeerDistance {
  readonly name: string;
  /** Undefined until it has been measured; Infinity when it did not answer. */
  readonly meanMs: number | undefined;
}

/** Returns the names of the nearest peers, at most `max`; peers of equal or unknown distance go by name. */
export function nearestPeers(peers: readonly PeerDistance[], max: number = NEAREST_MAX): string[] {
  const known = ({ meanMs }: PeerDistance): number => Math.min(meanMs ?? Infinity, Number.MAX_VALUE);
  return peers
    .toSorted((a, b) => known(a) - known(b) || (a.name < b.name ? -1 : 1))
    .slice(0, max)
    .map(({ name }) => name);
}

/**
 * Returns the peers to cooperate with. Whoever counts this PoP among its nearest needs to know what it holds, and must
 * not change its cache at the same moment.
 *
 * @param isNearFor whether a peer has said lately that this PoP is one of its nearest.
 */
export function neighboursOf(peers: readonly PeerDistance[], isNearFor: (name: string) => boolean): string[] {
  const nearest = new Set(nearestPeers(peers));
  return peers.filter(({ name }) => nearest.has(name) || isNearFor(name)).map(({ name }) => name);
}

/** Peers beyond the neighbours that are measured in one period. */
const MEASURED_MAX = 2;

/**
 * Returns the peers to measure in a period: the neighbours, those never measured, and some of the others in turn,
 * because distances change.
 *
 * @param round the number of the period.
 */
export function peersToMeasure(peers: readonly PeerDistance[], neighbours: readonly string[], round: number): string[] {
  const near = new Set(neighbours);
  const far = peers.filter(({ name }) => !near.has(name));
  const first = (round * MEASURED_MAX) % far.length;
  const isDue = (at: number): boolean => (at - first + far.length) % far.length < MEASURED_MAX;
  const due = far.filter(({ meanMs }, at) => meanMs === undefined || isDue(at));
  return [...neighbours, ...due.map(({ name }) => name)];
}
