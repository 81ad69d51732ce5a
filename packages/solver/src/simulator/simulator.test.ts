import { describe, expect, test } from "vitest";
import { ALL_POLICY_NAMES } from "../policies/compared.ts";
import { parseScenario, resolveExtends } from "./scenario/scenario.ts";
import { simulate, type SimulationRow } from "./simulate.ts";

/** Two regions near and far, one PoP: small enough to reason about. */
const SMALL = {
  name: "small",
  seed: 1,
  code: { k: 2, m: 2 },
  objects: { count: 20, bytes: 1000 },
  regions: ["near", "far"],
  pops: [
    { name: "one", regionLatencyMs: { near: 100, far: 500 }, cacheLatencyMs: 10, peerLatencyMs: {}, capacityChunks: 4 },
  ],
  popularity: { type: "zipf", exponent: 1 },
  requests: { perSecond: 10, count: 600 },
  periodSeconds: 5,
  policies: [{ name: "backend" }],
};

const THREE_POPS = {
  ...SMALL,
  code: { k: 3, m: 3 },
  regions: ["a", "b", "c"],
  pops: ["p", "q", "r"].map((name, i) => ({
    name,
    regionLatencyMs: { a: 100 + 50 * i, b: 300, c: 900 - 50 * i },
    cacheLatencyMs: 10,
    peerLatencyMs: Object.fromEntries(["p", "q", "r"].filter((peer) => peer !== name).map((peer) => [peer, 40])),
    capacityChunks: 9,
  })),
};

function run(changes: object, base: object = SMALL): SimulationRow[] {
  return simulate(parseScenario({ ...base, ...changes }));
}

function rowOf(rows: readonly SimulationRow[], name: string, pop = "all"): SimulationRow {
  return rows.find((row) => row.name === name && row.pop === pop)!;
}

/** Policies that keep something, the oracle included. Sprout and C2P have tests of their own. */
const NAMES = ALL_POLICY_NAMES.filter((name) => !["backend", "sprout", "c2p"].includes(name));

describe("simulate", () => {
  test("without cache a read takes as long as the k-th nearest chunk", () => {
    // Round-robin puts chunks 0 and 2 near, 1 and 3 far: two near ones complete a read.
    expect(rowOf(run({}), "backend")).toMatchObject({ meanMs: 100, p99Ms: 100, hitRatio: 0, requestsPerRead: 2 });
  });

  test("reading data chunks only waits for the far one", () => {
    const rows = run({ read: { delta: 0, cachedChunks: "exact", dataChunksOnly: true } });
    expect(rowOf(rows, "backend").meanMs).toBe(500);
  });

  test("while a region is down its chunks come from another one", () => {
    const rows = run({ events: [{ atSeconds: 0, forSeconds: 1000, region: "near", down: true }] });
    expect(rowOf(rows, "backend")).toMatchObject({ meanMs: 500, failedReads: 0 });
  });

  test("reads that cannot find k chunks are counted as failed and not as fast", () => {
    const events = ["near", "far"].map((region) => ({ atSeconds: 30, forSeconds: 10, region, down: true }));
    const row = rowOf(run({ events }), "backend");
    expect(row.failedReads).toBe(100);
    expect(row.reads).toBe(500);
    expect(row.meanMs).toBe(100);
  });

  test("a slow region makes the reader turn to the other one", () => {
    const rows = run({ events: [{ atSeconds: 0, forSeconds: 1000, region: "near", latencyFactor: 6 }] });
    expect(rowOf(rows, "backend").meanMs).toBe(500);
  });

  test("the whole-object cache holds the two last objects read (LRU-2, hand-checked hit ratios)", () => {
    // One object in the catalogue: the first read misses, all others hit fully and take the cache's 10 ms.
    const policies = [{ name: "lru", chunks: 2 }];
    const rows = run({ objects: { count: 1, bytes: 1000 }, policies, decide: "request" });
    const row = rowOf(rows, "lru-2");
    expect(row.fullHitRatio).toBeCloseTo(599 / 600, 10);
    expect(row.meanMs).toBeCloseTo((100 + 599 * 10) / 600, 6);
    expect(row.writes).toBe(1);
  });

  test("reports its progress from 0 to 1, often and never backwards, over all systems and runs", () => {
    const done: number[] = [];
    const scenario = parseScenario({ ...SMALL, runs: 2, policies: [{ name: "backend" }, { name: "lru", chunks: 2 }] });
    simulate(scenario, { onProgress: (fraction) => done.push(fraction) });
    expect(done[0]).toBe(0);
    expect(done.at(-1)).toBe(1);
    expect(done).toEqual(done.toSorted((a, b) => a - b));
    const steps = done.slice(1).map((fraction, i) => fraction - done[i]!);
    expect(Math.max(...steps)).toBeLessThanOrEqual(1 / 400 + 1e-9);
  });

  test("equal scenarios give equal results, and other seeds give others", () => {
    const policies = [{ name: "adaptive" }, { name: "online" }, { name: "agar" }];
    expect(run({ policies })).toEqual(run({ policies }));
    expect(rowOf(run({ policies }), "adaptive").meanMs).not.toBe(rowOf(run({ policies, seed: 2 }), "adaptive").meanMs);
  });

  test("the oracle is not beaten, and every policy beats no cache", () => {
    const rows = run({
      policies: ["backend", ...NAMES].map((name) => ({ name })),
      requests: { perSecond: 10, count: 6000 },
    });
    const oracle = rowOf(rows, "clairvoyant").meanMs;
    const backend = rowOf(rows, "backend").meanMs;
    for (const name of NAMES) {
      // Luck of the draw may favour a policy by a little: the oracle is best in expectation.
      expect(rowOf(rows, name).meanMs, name).toBeGreaterThan(0.99 * oracle);
      expect(rowOf(rows, name).meanMs, name).toBeLessThan(backend);
    }
    expect(rowOf(rows, "clairvoyant").lossPercent).toBe(0);
  });

  test("while a region is down, online with recovered data chunks hits about as often and decodes less", () => {
    const rows = ["exact", "recovered"].map((cachedChunks) =>
      rowOf(
        run({
          policies: [{ name: "online" }],
          read: { delta: 0, cachedChunks, dataChunksOnly: true, decodeMs: 30 },
          events: [{ atSeconds: 0, forSeconds: 1000, region: "far", down: true }],
        }),
        "online",
      ),
    );
    const [exact, recovered] = rows as [SimulationRow, SimulationRow];
    // Data chunk 1 is lost: every read takes parity chunk 2 in its place, from the region or from the cache.
    expect(exact.decodedRatio).toBe(1);
    expect(exact.hitRatio).toBeGreaterThan(0.3);
    expect(Math.abs(recovered.hitRatio - exact.hitRatio)).toBeLessThan(0.02);
    expect(recovered.decodedRatio).toBeCloseTo(1 - recovered.hitRatio, 12);
    expect(recovered.meanMs).toBeLessThan(exact.meanMs - 5);
  });

  test("a recovered chunk replaces its region even after that returns, and reads need no parity", () => {
    const row = rowOf(
      run({
        objects: { count: 1, bytes: 1000 },
        decide: "request",
        policies: [{ name: "lru", chunks: 1 }],
        read: { delta: 0, cachedChunks: "recovered", dataChunksOnly: true, decodeMs: 30 },
        events: [{ atSeconds: 0, forSeconds: 20, region: "far", down: true }],
      }),
      "lru-1",
    );
    // Only the first read decodes: then chunk 1 is cached, and chunk 0 near.
    expect(row.decodedRatio).toBeCloseTo(1 / 600, 12);
    expect(row).toMatchObject({ p50Ms: 100, p99Ms: 100, writes: 1 });
  });

  test("copies are never decoded, functional chunks always", () => {
    const functional = run({ read: { cachedChunks: "functional" }, policies: [{ name: "lru", chunks: 2 }] });
    expect(rowOf(functional, "lru-2").decodedRatio).toBeGreaterThan(0.99 * rowOf(functional, "lru-2").hitRatio);
    const copies = run({ policies: undefined, systems: [{ name: "two", policy: "lru", replicas: 2 }] });
    expect(rowOf(copies, "two").decodedRatio).toBe(0);
  });

  test("late binding asks for more chunks and is charged for the load", () => {
    const noise = { lognormalSigma: 0.3, stragglerProbability: 0.05, stragglerFactor: 8 };
    const late = { noise, read: { delta: 1, cachedChunks: "exact" } };
    const plain = rowOf(run({ noise }), "backend");
    const free = rowOf(run({ ...late, load: { utilization: 0 } }), "backend");
    const charged = rowOf(run({ ...late, load: { utilization: 0.1 } }), "backend");
    expect(plain.requestsPerRead).toBe(2);
    expect(charged.requestsPerRead).toBe(3);
    expect(free.p99Ms).toBeLessThan(plain.p99Ms);
    expect(charged.meanMs).toBeGreaterThanOrEqual(free.meanMs);
  });

  test("whole copies spread over the regions, and two are nearer than one", () => {
    const systems = [1, 2].map((replicas) => ({ name: `${replicas}`, policy: "backend", replicas }));
    const rows = run({ policies: undefined, systems, popularity: { type: "uniform" } });
    // Half of the only copies are far; of two copies one is always near.
    expect(rowOf(rows, "1").meanMs).toBeGreaterThan(250);
    expect(rowOf(rows, "1").meanMs).toBeLessThan(350);
    expect(rowOf(rows, "2")).toMatchObject({ meanMs: 100, requestsPerRead: 1 });
  });

  test("cooperating PoPs read from one another and are faster together", () => {
    const systems = [false, true].map((joint) => ({ name: joint ? "joint" : "alone", policy: "exact", joint }));
    const rows = run({ policies: undefined, systems }, THREE_POPS);
    expect(rowOf(rows, "alone").peerChunkRatio).toBe(0);
    expect(rowOf(rows, "joint").peerChunkRatio).toBeGreaterThan(0.05);
    expect(rowOf(rows, "joint").meanMs).toBeLessThan(0.95 * rowOf(rows, "alone").meanMs);
  });

  test("functional chunks are never worse than copies where all stored chunks remain useful", () => {
    const systems = ["exact", "functional"].map((cachedChunks) => ({
      name: cachedChunks,
      policy: "clairvoyant",
      joint: true,
      read: { delta: 0, cachedChunks },
    }));
    const rows = run({ policies: undefined, systems }, THREE_POPS);
    expect(rowOf(rows, "functional").meanMs).toBeLessThanOrEqual(rowOf(rows, "exact").meanMs * 1.001);
  });

  test("one row per PoP and one for all of them, weighted by their reads", () => {
    const rows = run({ policies: [{ name: "backend" }] }, THREE_POPS);
    expect(rows.map((row) => row.pop)).toEqual(["p", "q", "r", "all"]);
    const mean = rows.slice(0, 3).reduce((sum, row) => sum + row.meanMs * row.reads, 0) / rowOf(rows, "backend").reads;
    expect(rowOf(rows, "backend").meanMs).toBeCloseTo(mean, 9);
  });

  test.each(NAMES)(
    "%s never holds more than its capacity, with objects of mixed sizes and a shifting popularity",
    (name) => {
      // The cache itself throws INTERNAL when a policy overfills it.
      for (let seed = 1; seed <= 5; seed++) {
        const rows = run({
          seed,
          policies: [{ name }],
          objects: { count: 40, bytes: { distribution: "lognormal", medianBytes: 1000, sigma: 1.2 } },
          popularity: { type: "zipf", exponent: 0.8, shiftEverySeconds: 11, driftSwapsPerSecond: 2 },
          events: [{ atSeconds: 20, forSeconds: 10, region: "near", down: true }],
        });
        expect(rowOf(rows, name).reads).toBe(600);
      }
    },
  );

  test("adaptive keeps up with the oracle after the popularity of everything has changed", () => {
    const rows = run({
      objects: { count: 200, bytes: 1000 },
      popularity: { type: "zipf", exponent: 1.1, shiftEverySeconds: 100 },
      requests: { perSecond: 10, count: 4000 },
      policies: [{ name: "adaptive" }, { name: "online" }, { name: "clairvoyant" }],
    });
    expect(rowOf(rows, "adaptive").lossPercent).toBeLessThan(0.5 * rowOf(rows, "online").lossPercent!);
  });
});

describe("parseScenario", () => {
  test.each<[string, object, string]>([
    ["an unknown field", { polices: [] }, "polices"],
    ["no policies", { policies: [] }, "policies"],
    ["k of zero", { code: { k: 0, m: 1 } }, "code.k"],
    ["too many chunks", { code: { k: 30, m: 10 } }, "code"],
    [
      "a latency that is not a number",
      { pops: [{ ...SMALL.pops[0], cacheLatencyMs: "10" }] },
      "pops[0].cacheLatencyMs",
    ],
    ["a region without latency", { regions: ["near", "far", "moon"] }, "pops[0].regionLatencyMs.moon"],
    ["both capacities", { pops: [{ ...SMALL.pops[0], capacityBytes: 1 }] }, "pops[0]"],
    ["a negative capacity", { pops: [{ ...SMALL.pops[0], capacityChunks: -1 }] }, "pops[0].capacityChunks"],
    ["an unknown peer", { pops: [{ ...SMALL.pops[0], peerLatencyMs: { two: 1 } }] }, "pops[0].peerLatencyMs"],
    ["an unknown popularity", { popularity: { type: "pareto" } }, "popularity.type"],
    ["a negative time to decode", { read: { decodeMs: -1 } }, "read.decodeMs"],
    ["an unknown kind of cached chunk", { read: { cachedChunks: "parity" } }, "read.cachedChunks"],
    ["a negative exponent", { popularity: { type: "zipf", exponent: -1 } }, "popularity.exponent"],
    ["neither count nor seconds", { requests: { perSecond: 1 } }, "requests"],
    ["an event in an unknown region", { events: [{ atSeconds: 0, forSeconds: 1, region: "x" }] }, "events[0].region"],
    ["more chunks than buckets", { placement: "random-buckets" }, "placement"],
  ])("refuses %s and names the field", (_name, changes, field) => {
    expect(() => parseScenario({ ...SMALL, ...changes })).toThrow(
      expect.objectContaining({ name: "AgaroseError", code: "SCENARIO_INVALID", details: { field } }),
    );
  });

  test.each<[string, object]>([
    ["an unknown policy", { policies: [{ name: "magic" }] }],
    ["an unknown setting", { policies: [{ name: "exact", beta: 1 }] }],
    ["more chunks than k", { policies: [{ name: "lru", chunks: 3 }] }],
    ["an unknown joint policy", { policies: undefined, systems: [{ name: "x", policy: "magic", joint: true }] }],
    [
      "a setting that PoPs in turn lack",
      { policies: undefined, systems: [{ name: "x", policy: "lru", joint: true, chunks: 1 }] },
    ],
  ])("refuses %s when the simulation starts", (_name, changes) => {
    expect(() => run(changes)).toThrow(expect.objectContaining({ code: "SCENARIO_INVALID" }));
  });

  test("policies of one name get their settings appended", () => {
    const { systems } = parseScenario({
      ...SMALL,
      policies: [{ name: "agar" }, { name: "online", decay: 0.5 }, { name: "online", decay: 0.9 }],
    });
    expect(systems.map((system) => system.name)).toEqual(["agar", "online (decay=0.5)", "online (decay=0.9)"]);
  });
});

describe("resolveExtends", () => {
  const files: Record<string, object> = {
    "base.json": { ...SMALL, name: "base" },
    "middle.json": { extends: "base.json", seed: 7 },
    "loop.json": { extends: "loop.json" },
  };
  const load = (name: string): Promise<unknown> => Promise.resolve(files[name]);

  test("each top-level field of the extending file replaces the other's as a whole", async () => {
    const resolved = await resolveExtends({ extends: "middle.json", requests: { perSecond: 1, seconds: 5 } }, load);
    expect(resolved).toMatchObject({ name: "base", seed: 7, requests: { perSecond: 1, seconds: 5 } });
    expect(parseScenario(resolved).requests.count).toBe(5);
  });

  test("systems replace inherited policies", async () => {
    const resolved = await resolveExtends({ extends: "base.json", systems: [{ name: "x", policy: "backend" }] }, load);
    expect(parseScenario(resolved).systems.map((system) => system.name)).toEqual(["x"]);
  });

  test("a circle is refused", async () => {
    await expect(resolveExtends({ extends: "loop.json" }, load)).rejects.toMatchObject({ code: "SCENARIO_INVALID" });
  });
});
