import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NEAREST_MAX, nearestPeers, neighboursOf, type PeerDistance, peersToMeasure } from "./neighbours.ts";

const distances = fc.uniqueArray(
  fc.record({
    name: fc.string({ minLength: 1, maxLength: 3 }),
    meanMs: fc.option(fc.oneof(fc.integer({ min: 1, max: 300 }), fc.constant(Infinity)), { nil: undefined }),
  }),
  { selector: ({ name }) => name, maxLength: 40 },
);
const known = ({ meanMs }: PeerDistance): number => meanMs ?? Infinity;

describe("neighbours", () => {
  test("are all peers of up to ten PoPs, and of more the nearest", () => {
    fc.assert(
      fc.property(distances, (peers) => {
        const nearest = new Set(nearestPeers(peers));
        expect(nearest.size).toBe(Math.min(peers.length, NEAREST_MAX));
        const farthest = Math.max(...peers.filter(({ name }) => nearest.has(name)).map(known));
        for (const peer of peers) if (!nearest.has(peer.name)) expect(known(peer)).toBeGreaterThanOrEqual(farthest);
      }),
    );
  });

  test("are mutual once each has said whom it counts as near, so that no two of them act at once", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 40 }), fc.infiniteStream(fc.nat(400)), (pops, places) => {
        const at = Array.from({ length: pops }, () => places.next().value!);
        const others = (pop: number): PeerDistance[] =>
          at.flatMap((place, q) => (q === pop ? [] : [{ name: String(q), meanMs: Math.abs(place - at[pop]!) }]));
        const isNearFor = (pop: number, peer: string): boolean =>
          nearestPeers(others(Number(peer))).includes(String(pop));
        const neighbours = at.map((_, pop) => neighboursOf(others(pop), (peer) => isNearFor(pop, peer)));
        for (const [pop, own] of neighbours.entries()) {
          for (const peer of own) expect(neighbours[Number(peer)]).toContain(String(pop));
        }
        const pairs = neighbours.reduce((sum, own) => sum + own.length, 0);
        expect(pairs).toBeLessThanOrEqual(2 * NEAREST_MAX * pops);
      }),
    );
  });

  test("are measured in each period, peers of unknown distance at once, and all others in turn", () => {
    fc.assert(
      fc.property(distances, fc.nat(1_000_000), (peers, round) => {
        const neighbours = neighboursOf(peers, () => false);
        const rounds = Array.from({ length: peers.length }, (_, i) => peersToMeasure(peers, neighbours, round + i));
        for (const measured of rounds) {
          expect(measured).toEqual(expect.arrayContaining(neighbours));
          expect(new Set(measured).size).toBe(measured.length);
          const unknown = peers.filter(({ meanMs }) => meanMs === undefined).length;
          expect(measured.length).toBeLessThanOrEqual(neighbours.length + unknown + 2);
        }
        expect(new Set(rounds.flat()).size).toBe(peers.length);
      }),
    );
  });
});
