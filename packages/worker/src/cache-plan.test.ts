import { encodeHashes, type Manifest } from "@agarose/core";
import { expect, test } from "vitest";
import { planCache, type CachePlanOptions } from "./cache-plan.ts";

/** Table I of Agar: six regions as seen from Frankfurt. */
const LATENCY_MS = { frankfurt: 80, dublin: 200, virginia: 600, saoPaulo: 1400, tokyo: 3400, sydney: 4600 };
const names = Object.keys(LATENCY_MS);
const regions = Object.entries(LATENCY_MS).map(([name, meanMs]) => ({ name, meanMs, sdMs: 0, down: false }));

function manifest(key: string, bytes = 900_000): Manifest {
  return {
    agarose: 1,
    key,
    version: key.padEnd(32, "0"),
    bytes,
    contentType: "image/jpeg",
    headers: {},
    modified: "2026-01-01T00:00:00Z",
    k: 9,
    m: 3,
    stripeBytes: 4 * 1024 * 1024,
    sha256: "0".repeat(64),
    placement: Array.from({ length: 12 }, (_, chunk) => names[chunk % 6]!),
    hashes: bytes > 0 ? [encodeHashes(Array.from({ length: 12 }, () => new Uint8Array(32)))] : [],
  };
}

const plan = (options: Partial<CachePlanOptions>) =>
  planCache({ candidates: [], capacityBytes: 1e9, regions, cacheMs: 5, delta: 0, ...options });

test("with room for all, whole objects are cached, as data that needs no decoding", () => {
  const [object] = plan({ candidates: [{ manifest: manifest("a"), popularity: 1, cached: [] }] });
  expect(object!.chunks).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test("with room for one chunk, it is the most distant one that a read would wait for", () => {
  const candidates = [{ manifest: manifest("a"), popularity: 1, cached: [] }];
  const [object] = plan({ candidates, capacityBytes: 100_000 });
  // Chunks by region: 0 and 6 frankfurt, … 3 and 9 saoPaulo, 4 and 10 tokyo, 5 and 11 sydney. The nine nearest end in tokyo.
  expect(object!.chunks).toEqual([4]);
});

test("the more popular object gets the room", () => {
  const planned = plan({
    candidates: [
      { manifest: manifest("a"), popularity: 1, cached: [] },
      { manifest: manifest("b"), popularity: 10, cached: [] },
    ],
    capacityBytes: 900_000,
  });
  expect(planned[0]!.manifest.key).toBe("b");
  const weight = planned.reduce((sum, { chunks }) => sum + chunks.length * 100_000, 0);
  expect(weight).toBeLessThanOrEqual(900_000);
});

test("chunks of a region that is down are not what a read waits for, so others are cached", () => {
  const candidates = [{ manifest: manifest("a"), popularity: 1, cached: [] }];
  const down = regions.map((region) => ({ ...region, down: region.name === "tokyo" }));
  const [object] = plan({ candidates, capacityBytes: 100_000, regions: down });
  expect(object!.chunks).toEqual([5]);
});

test("with fewer than k chunks to be had, what is down counts too", () => {
  const candidates = [{ manifest: manifest("a"), popularity: 1, cached: [] }];
  const down = regions.map((region) => ({ ...region, down: region.name !== "frankfurt" }));
  expect(plan({ candidates, regions: down })[0]!.chunks).toHaveLength(9);
});

test("a cached set stays while another one of its size is hardly better", () => {
  const cached = [10];
  const candidates = [{ manifest: manifest("a"), popularity: 1, cached }];
  const wobbly = regions.map((region) => ({ ...region, sdMs: region.meanMs / 10 }));
  expect(plan({ candidates, capacityBytes: 100_000, regions: wobbly })[0]!.chunks).toEqual(cached);
});

test("a cached set goes when it has become useless", () => {
  const candidates = [{ manifest: manifest("a"), popularity: 1, cached: [0] }];
  expect(plan({ candidates, capacityBytes: 100_000 })[0]!.chunks).toEqual([4]);
});

test("an empty object takes no room", () => {
  expect(plan({ candidates: [{ manifest: manifest("a", 0), popularity: 1, cached: [] }] })).toEqual([]);
});
