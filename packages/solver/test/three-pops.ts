/** Three PoPs far from the regions and near each other. */

const NAMES = ["p", "q", "r"];

export const THREE_POPS = {
  name: "three",
  seed: 1,
  code: { k: 3, m: 3 },
  objects: { count: 30, bytes: 3000 },
  regions: ["a", "b", "c"],
  pops: NAMES.map((name) => ({
    name,
    regionLatencyMs: { a: 300, b: 500, c: 900 },
    cacheLatencyMs: 10,
    peerLatencyMs: Object.fromEntries(NAMES.filter((peer) => peer !== name).map((peer) => [peer, 40])),
    capacityChunks: 9,
  })),
  popularity: { type: "zipf", exponent: 1 },
};
