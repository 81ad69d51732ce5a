import { expect, test } from "vitest";
import type { PeerKnowledge } from "../../policy/policy.ts";
import { createPolicy } from "../registry.ts";

const OBJECTS = 6;
const K = 4;

/** A cache of eight chunks of objects of four, and what its peers hold and read of each. */
function cacheWith(peers?: { readonly chunks: readonly number[]; readonly hits?: readonly number[] }) {
  const count = new Uint8Array(OBJECTS);
  const knowledge: PeerKnowledge | undefined = peers && {
    chunksBeside: (object) => Math.min(K - count[object]!, peers.chunks[object] ?? 0),
    hits: (object) => peers.hits?.[object] ?? 0,
  };
  return {
    objects: OBJECTS,
    capacity: 8,
    chunkWeight: new Float64Array(OBJECTS).fill(1),
    get used() {
      return count.reduce((sum, d) => sum + d, 0);
    },
    kOf: () => K,
    countOf: (object: number) => count[object]!,
    savedMs: (_object: number, d: number) => d,
    keep: (object: number, d: number) => void (count[object] = d),
    ...(knowledge ? { peers: knowledge } : {}),
    counts: () => [...count],
  };
}

test("a read brings in what neither this cache nor a peer holds", () => {
  const cache = cacheWith({ chunks: [4, 3, 1] });
  const policy = createPolicy("c2p", cache);
  for (const [i, object] of [0, 1, 2].entries()) policy.onRequest(object, i);
  expect(cache.counts()).toEqual([0, 1, 3, 0, 0, 0]);
});

test("the object of which all caches hold the least leaves first, although it was read last", () => {
  const cache = cacheWith({ chunks: [0, 2] });
  const policy = createPolicy("c2p", cache);
  policy.onRequest(0, 0);
  policy.onRequest(1, 1);
  policy.onRequest(2, 2);
  // Two chunks of object 2 did not fit beside the others: object 0 and 1 are whole, so the least recently read left.
  expect(cache.counts()).toEqual([0, 2, 4, 0, 0, 0]);
  // A quarter of object 1 is here, and nothing elsewhere: it is no longer whole.
  cache.keep(1, 1);
  policy.onRequest(3, 3);
  expect(cache.counts()).toEqual([0, 0, 4, 4, 0, 0]);
});

test("reads at peers protect an object that is as whole as another", () => {
  const hits = [9, 0];
  const alone = cacheWith();
  const joint = cacheWith({ chunks: [], hits });
  for (const cache of [alone, joint]) {
    const policy = createPolicy("c2p", cache, { affinitySeconds: 0 });
    for (const [i, object] of [0, 1, 1, 1, 2].entries()) policy.onRequest(object, i);
  }
  expect(alone.counts()).toEqual([0, 4, 4, 0, 0, 0]);
  expect(joint.counts()).toEqual([4, 0, 4, 0, 0, 0]);
});

test("without peers, an object that is larger than the cache changes nothing but for what fits", () => {
  const cache = { ...cacheWith(), capacity: 3 };
  createPolicy("c2p", cache).onRequest(0, 0);
  expect(cache.counts()).toEqual([3, 0, 0, 0, 0, 0]);
});
