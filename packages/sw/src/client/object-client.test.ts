import { describe, expect, test } from "vitest";
import * as fc from "fast-check";
import { manifestName } from "@agarose/core/format";
import { QUIET_MS } from "./object-client.ts";
import { PROBE_AGAIN_MS, PROBE_EVERY_MS } from "./plans/pop-selector.ts";
import { POP_PATIENCE_MS } from "./plans/pop-call.ts";
import { summarized, totalsOf, type ReadSummary } from "../devtools/read-summary.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import { KEY, BYTES, request, read, bytesOf, failure, startWorld } from "../../test/world-reads.ts";

describe("a client that has seen a version", () => {
  const NEWER = sampleBytes(9_000);

  test("does not go back to the older one that a bucket missed the update of", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    const older = world.regions[0]!.store.get(manifestName(KEY))!;
    world.put(KEY, NEWER);
    expect((await read(world, client)).bytes).toEqual(NEWER);
    world.regions[0]!.store.set(manifestName(KEY), older);
    await world.clock.pass(60_000);
    expect((await read(world, client)).bytes).toEqual(NEWER);
  });

  test("does not go back to the older one that a PoP still names", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    world.put(KEY, NEWER, { toldToPops: false });
    expect((await read(world, client)).bytes).toEqual(NEWER);
    for (const pop of world.pops) pop.fault = "none";
    await world.clock.pass(60_000);
    world.log.length = 0;
    expect((await read(world, client)).bytes).toEqual(NEWER);
    expect(world.requests("p0").length, "the PoP was asked").toBeGreaterThan(0);
  });
});

describe("a client that has seen a version, and asks for many plans at once,", () => {
  const NEWER = sampleBytes(9_000);

  test("keeps the newer one that it has, though the PoP still names the older", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    world.put(KEY, NEWER, { toldToPops: false });
    expect((await read(world, client)).bytes).toEqual(NEWER);
    for (const pop of world.pops) pop.fault = "none";
    await world.clock.pass(60_000);
    world.log.length = 0;
    await world.clock.settle(client.preload([KEY]));
    expect(world.requests("p0").some(({ url }) => url.includes("/v1/plans?"))).toBe(true);
    expect((await read(world, client)).bytes).toEqual(NEWER);
  });
});

describe("a client that has moved", () => {
  test("asks the PoP that is nearest now after one probe, however long it was near another", async () => {
    const { world, client } = await startWorld();
    expect(client.pops.byDistance().map(({ name }) => name)).toEqual(["p0", "p1"]);
    [world.pops[0]!.delayMs, world.pops[1]!.delayMs] = [450, 10];
    await world.clock.settle(client.probe(true));
    expect(client.pops.byDistance().map(({ name }) => name)).toEqual(["p1", "p0"]);
  });
});

describe("a read without a plan", () => {
  test("asks the nearest PoP, and the buckets in the moment its plan is there", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [3, 4];
    const start = world.clock.now();
    const { status, headers, bytes } = await read(world, client);
    expect(status).toBe(200);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("mixed");
    expect(headers["server-timing"]).toMatch(/^plan;desc="edge plan";dur=10\.0, .*edge-p0;desc="\d x edge-p0"/);
    expect(world.requests("p0").map(({ url }) => url)).toEqual([
      "https://p0.test/v1/read/photos/cat.jpg?from=0&to=4294967295",
    ]);
    const buckets = world.requests().filter(({ to }) => to.startsWith("r"));
    expect(Math.min(...buckets.map(({ atMs }) => atMs))).toBe(start + 10);
    expect(world.requests("p1")).toEqual([]);
  });

  test("leaves the regions and their addresses to the plan where none is configured", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    expect((await read(world, world.client({ regions: [] }))).bytes).toEqual(BYTES);
    expect(world.requests("r0").length).toBeGreaterThan(0);
  });

  test("takes an empty object from its plan alone", async () => {
    const { world, client } = await startWorld();
    world.put("empty", new Uint8Array(0));
    const { status, bytes, headers } = await read(world, client, {}, "empty");
    expect([status, bytes.length, headers["content-length"]]).toEqual([200, 0, "0"]);
    expect(world.requests().map(({ to }) => to)).toEqual(["p0"]);
  });

  test("answers a HEAD from the plan of the first stripe's bundle, without any chunk", async () => {
    const { world, client } = await startWorld();
    const answer = await world.clock.settle(client.answer(request({}, "HEAD")));
    expect(answer.body).toBeNull();
    expect(answer.headers).toMatchObject({ "content-length": "10000", "accept-ranges": "bytes" });
    expect(world.requests().map(({ url }) => url)).toEqual(["https://p0.test/v1/read/photos/cat.jpg?from=0&to=0"]);
  });
});

test.each([
  [false, 2, 6],
  [true, 0, 4],
])("with Save-Data %s a read asks for k + %i chunks", async (savesData, delta, requests) => {
  const { world } = await startWorld();
  const client = world.client({ delta: 2 });
  world.savesData = savesData;
  const { bytes } = await read(world, client);
  expect(bytes).toEqual(BYTES);
  expect(world.requests().filter(({ url }) => url.includes("/chunks/"))).toHaveLength(requests);
  expect(world.events).toContainEqual(expect.objectContaining({ type: "plan", delta }));
});

test("a read names itself to PoPs, in the query, and to no bucket", async () => {
  const { world, client } = await startWorld();
  world.pops[0]!.cached = [3, 4];
  for (let i = 0; i < 2; i++) await read(world, client);
  const ids = world.events.flatMap((event) => (event.type === "read-start" ? [event.read] : []));
  expect(new Set(ids).size).toBe(2);
  expect(world.requests("p0").map(({ trace }) => trace)).toEqual(ids);
  const buckets = world.requests().filter(({ to }) => to.startsWith("r"));
  expect(buckets.length).toBeGreaterThan(0);
  expect(buckets.filter(({ trace }) => trace !== undefined)).toEqual([]);
});

describe("a read with a known plan", () => {
  test("asks the edge by version and the buckets in the same tick", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4, 5];
    const version = world.put(KEY, BYTES).version;
    await read(world, client);
    world.log.length = 0;
    const start = world.clock.now();
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["server-timing"]).toContain('plan;desc="known plan";dur=0.0');
    expect(world.requests("p0")[0]).toMatchObject({
      url: `https://p0.test/v1/read/photos/cat.jpg?version=${version}&generation=2&from=0&to=2`,
      atMs: start,
    });
    expect(world.requests().filter(({ to, atMs }) => to.startsWith("r") && atMs === start).length).toBeGreaterThan(0);
  });

  test("starts over when the object has changed, and hands out no byte of the old version", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4, 5];
    await read(world, client);
    const changed = sampleBytes(9_000, 2);
    const { version } = world.put(KEY, changed);
    for (const region of world.regions) region.delayMs += 30;
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(changed);
    expect(headers["etag"]).toBe(`"${version}"`);
    // The bundle that reports the change brings the new chunks too.
    expect(headers["x-agarose-read"]).toBe("mixed");
    expect(world.requests("p0")).toHaveLength(2);
    expect(world.events.filter(({ type }) => type === "plan").map((event) => "from" in event && event.from)).toEqual([
      "edge",
      "known",
      "edge",
    ]);
  });

  test("finishes the version it has begun, and reads the new one next time", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    const changed = sampleBytes(9_000, 2);
    world.put(KEY, changed);
    world.pops[0]!.delayMs = 250;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    await world.clock.pass(300);
    expect((await read(world, client)).bytes).toEqual(changed);
  });

  test("asks again when too few of its chunks still exist", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    for (const { store } of world.regions) store.clear();
    const changed = sampleBytes(9_000, 2);
    world.put(KEY, changed);
    world.pops[0]!.delayMs = 250;
    expect((await read(world, client)).bytes).toEqual(changed);
  });

  test("cancels the bundle that reports a change when nothing waits for it any more", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4];
    await read(world, client);
    world.remove(KEY);
    world.put(KEY, sampleBytes(9_000, 2));
    world.pops[0]!.delayMs = 200;
    await read(world, client);
    await world.clock.pass(1_000);
    expect(world.requests("p0"), "the read by the known plan was given up, and another call made").toHaveLength(3);
    expect(world.openBundles).toBe(0);
  });

  test("reads from the buckets alone while its PoP is dead, and from the next PoP afterwards", async () => {
    const { world, client } = await startWorld();
    world.pops[1]!.cached = [4, 5];
    await read(world, client);
    world.pops[0]!.fault = "refuses";
    expect((await read(world, client)).bytes).toEqual(BYTES);
    world.log.length = 0;
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(world.requests("p1")).toHaveLength(1);
    expect(headers["server-timing"]).toContain("edge-p1");
  });

  test("is asked for again once its minute is over", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    await world.clock.pass(60_000);
    await read(world, client);
    const plans = world.events.filter((event) => event.type === "plan");
    expect(plans.map(({ from }) => from)).toEqual(["edge", "edge"]);
  });

  test("follows a PoP that has another configuration by now", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [3, 4, 5];
    await read(world, client);
    world.pops[0]!.cached = [3];
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("mixed");
  });

  test("takes chunks that the PoP misses from the buckets, which is no fault", async () => {
    const { world, client } = await startWorld();
    Object.assign(world.pops[0]!, { cached: [2, 3, 4, 5], missing: [3, 4, 5] });
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("mixed");
  });
});

describe("when PoPs fail", () => {
  test.each(["refuses", "html", "error", "endless"] as const)(
    "one that %s is replaced by the next at once",
    async (fault) => {
      const { world, client } = await startWorld();
      world.pops[0]!.fault = fault;
      const start = world.clock.now();
      expect((await read(world, client)).bytes).toEqual(BYTES);
      expect(world.requests("p0")).toHaveLength(1);
      expect(world.requests("p1")[0]!.atMs).toBe(start + 10);
    },
  );

  test("one that is silent is replaced in less than 300 ms, and is then not waited for", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "silent";
    const start = world.clock.now();
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests("p1")[0]!.atMs).toBe(start + POP_PATIENCE_MS);
    expect(POP_PATIENCE_MS).toBeLessThan(300);
    expect(world.requests("p0")[0]!.aborted).toBe(true);
    world.put("second", BYTES);
    const second = world.clock.now();
    await read(world, client, {}, "second");
    expect(world.requests("p1").at(-1)!.atMs).toBe(second);
  });

  test("replaces one that is silent before any measurement as soon, and gives a far one more time", async () => {
    const { world } = await startWorld();
    world.pops[0]!.fault = "silent";
    const start = world.clock.now();
    await read(world, world.client());
    expect(world.requests("p1").at(-1)!.atMs).toBe(start + POP_PATIENCE_MS);

    const far = await startWorld();
    for (const pop of far.world.pops) pop.delayMs = 400;
    await far.world.clock.settle(far.client.probe(true));
    await read(far.world, far.client);
    expect(far.world.requests("p0").length + far.world.requests("p1").length).toBe(1);
  });

  test("one that ends its bundle early costs no read", async () => {
    const { world, client } = await startWorld();
    Object.assign(world.pops[0]!, { fault: "cuts", cached: [3, 4, 5] });
    expect((await read(world, client)).bytes).toEqual(BYTES);
  });

  test("all of them dead: the manifest comes from a bucket", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("origin");
    expect(headers["server-timing"]).toContain('plan;desc="region plan"');
    expect(world.requests("p0").length + world.requests("p1").length).toBe(2);
  });

  test("all of them silent for long: buckets are asked in the same tick as they are", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "silent";
    await read(world, client);
    world.put("second", BYTES);
    const start = world.clock.now();
    await read(world, client, {}, "second");
    const manifests = world.requests().filter(({ url }) => url.includes("/manifests/second"));
    expect(manifests.map(({ atMs }) => atMs)).toContain(start);
  });

  test("everything dead: NO_SOURCE says who failed and how", async () => {
    const { world, client } = await startWorld();
    for (const source of [...world.pops, ...world.regions]) source.fault = "error";
    const error = await failure(world, client.answer(request()));
    expect(error.code).toBe("NO_SOURCE");
    expect(error.details["failures"]).toMatchObject([
      { name: "PoP p0", code: "SOURCE_FAILED" },
      { name: "PoP p1", code: "SOURCE_FAILED" },
      { name: "buckets", code: "NO_SOURCE" },
    ]);
  });

  test("a PoP that knows the key to be absent is believed", async () => {
    const { world, client } = await startWorld();
    const error = await failure(world, client.answer(request({}, "GET", "nothing")));
    expect([error.code, error.httpStatus]).toEqual(["OBJECT_NOT_FOUND", 404]);
    expect(world.requests().map(({ to }) => to)).toEqual(["p0"]);
  });

  test("a manifest that was requested before a purge is not remembered after it", async () => {
    const { world, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    const reading = client.answer(request());
    await world.clock.pass(70);
    expect(world.requests().filter(({ url }) => url.includes("/manifests/"))).not.toEqual([]);
    await client.purge((key) => key === KEY);
    await world.clock.settle(reading);
    expect(client.plans.get(KEY)).toBeUndefined();
  });

  test("a plan of many that was requested before a purge is requested again after it", async () => {
    const { world, client } = await startWorld();
    const preloading = client.preload([KEY]);
    await world.clock.pass(5);
    expect(world.requests().map(({ url }) => url)).toEqual([expect.stringContaining("/v1/plans?")]);
    await client.purge((key) => key === KEY);
    await world.clock.settle(preloading);
    expect(world.requests("p0").length).toBe(2);
    expect(client.plans.get(KEY)).toBeDefined();
  });

  test("one that names a version which is gone is overruled by the buckets", async () => {
    const { world, client } = await startWorld();
    for (const { store } of world.regions) store.clear();
    const changed = sampleBytes(9_000, 2);
    world.put(KEY, changed, { toldToPops: false });
    expect((await read(world, client)).bytes).toEqual(changed);
    expect(world.requests("r0").some(({ url }) => url.includes("/manifests/"))).toBe(true);
  });

  test("one that still knows an object which was removed leads to OBJECT_NOT_FOUND", async () => {
    const { world, client } = await startWorld();
    for (const { store } of world.regions) store.clear();
    expect((await failure(world, client.answer(request()))).code).toBe("OBJECT_NOT_FOUND");
  });

  test("a key that breaks the rules causes no request", async () => {
    const { world, client } = await startWorld();
    expect((await failure(world, client.answer(request({}, "GET", "..")))).code).toBe("KEY_INVALID");
    expect(world.requests()).toEqual([]);
  });
});

describe("a plan that names a chunk twice", () => {
  test.each([[[4, 4]], [[4, 4, 5, 5]]])("counts it once: %j", async (cached) => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = cached;
    // By a new plan, by a known one, and a small range, whose other chunks a PoP that has k different ones decodes.
    for (const headers of [{}, {}, { range: "bytes=5000-5009" }]) {
      world.events.length = 0;
      const { bytes } = await read(world, client, headers);
      expect(bytes).toEqual(headers.range ? BYTES.subarray(5000, 5010) : BYTES);
      await world.clock.pass(1);
      expect(world.events.at(-1)).toMatchObject({ type: "read-end", error: undefined });
    }
    expect(world.openBundles).toBe(0);
  });
});

describe("extra chunks that a client's plan", () => {
  /** The regions of rows 6 and 7, which are the nearest. */
  const extra = ["r0", "r1"];
  const read6 = (world: FakeWorld): boolean => world.requests().some(({ url }) => url.includes(`${"e".repeat(32)}/6`));

  test("does not name yet change nothing about what is read", async () => {
    const { world, client } = await startWorld();
    const { version } = world.put(KEY, BYTES);
    await read(world, client);
    expect(world.put(KEY, BYTES, { extra })).toMatchObject({ version, generation: 3 });
    world.pops[0]!.cached = [6, 7];
    world.log.length = 0;
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("mixed");
    expect(read6(world)).toBe(false);
  });

  test("still names when they are removed are replaced", async () => {
    const { world, client } = await startWorld();
    const { version } = world.put(KEY, BYTES, { extra });
    expect((await read(world, client)).bytes).toEqual(BYTES);
    for (const { store } of world.regions)
      for (const name of store.keys()) if (name.includes("e".repeat(32))) store.delete(name);
    expect(world.put(KEY, BYTES)).toMatchObject({ version, generation: 3 });
    world.log.length = 0;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(read6(world)).toBe(true);
    expect(world.events.some((event) => event.type === "request" && event.error === "CHUNK_MISSING")).toBe(true);
  });
});

describe("when regions fail", () => {
  test.each(["down", "corrupt", "truncate", "error"] as const)("two that are %s are replaced", async (fault) => {
    const { world, client } = await startWorld();
    world.regions[0]!.fault = fault;
    world.regions[2]!.fault = fault;
    const { bytes, headers } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("degraded");
    expect(world.events.some((event) => event.type === "request" && event.outcome === "failed")).toBe(true);
  });

  test.each([
    ["first", {}, 0],
    ["a middle", {}, 1 / 2],
    ["last", {}, 1 - 1e-6],
    ["first", { range: "bytes=1024-2047" }, 0],
    ["a middle", { range: "bytes=1024-2047" }, 1 / 2],
    ["last", { range: "bytes=1024-2047" }, 1 - 1e-6],
  ])("no wrong byte is delivered where the %s one of a chunk is wrong: %j", async (_which, headers, corruptAt) => {
    const { world, client } = await startWorld();
    for (const region of world.regions.slice(0, 2)) Object.assign(region, { fault: "corrupt", corruptAt });
    const { status, bytes } = await read(world, client, headers);
    expect(bytes).toEqual(status === 206 ? BYTES.subarray(1024, 2048) : BYTES);
    expect(world.events.some((event) => event.type === "request" && event.error === "CHUNK_CORRUPT")).toBe(true);
  });

  test("a region that failed is not among the first to be asked next time", async () => {
    const { world, client } = await startWorld();
    world.regions[0]!.fault = "down";
    await read(world, client);
    world.log.length = 0;
    const { headers } = await read(world, client);
    expect(world.requests("r0")).toEqual([]);
    expect(headers["x-agarose-read"]).toBe("origin");
  });

  test("measured latency moves a region that turned slow to the end", async () => {
    const { world, client } = await startWorld();
    world.regions[0]!.delayMs = 5_000;
    for (let time = 0; time < 8; time++) await read(world, client);
    world.log.length = 0;
    await read(world, client);
    expect(world.requests("r0")).toEqual([]);
  });

  test("one more than the code bears is refused before the first byte", async () => {
    const { world, client } = await startWorld();
    for (const region of world.regions.slice(0, 3)) region.fault = "down";
    const error = await failure(world, client.answer(request()));
    expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { needed: 4 } });
    await world.clock.pass(1);
    expect(world.events.at(-1)).toMatchObject({ type: "read-end", status: 502, error: "NOT_ENOUGH_CHUNKS" });
  });

  test("the same with two chunks in the PoP's cache succeeds", async () => {
    const { world, client } = await startWorld();
    for (const region of world.regions.slice(0, 3)) region.fault = "down";
    world.pops[0]!.cached = [0, 1];
    expect((await read(world, client)).bytes).toEqual(BYTES);
  });

  test("a body that cannot be completed errors instead of ending short", async () => {
    const { world, client } = await startWorld();
    // More stripes than are read ahead.
    world.put(KEY, BYTES, { stripeBytes: 256 });
    const { body } = await world.clock.settle(client.answer(request()));
    const reader = body!.getReader();
    let received = (await world.clock.settle(reader.read())).value!.length;
    for (const region of world.regions) region.fault = "down";
    const rest = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        received += value.length;
      }
    };
    expect((await failure(world, rest())).code).toBe("NOT_ENOUGH_CHUNKS");
    expect(received).toBeLessThan(BYTES.length);
  });
});

describe("what a read reports", () => {
  test("its start, its plan, every request twice, and its end, which come to its totals", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4];
    world.put("small", BYTES.subarray(0, 4000));
    await read(world, client, {}, "small");
    await world.clock.pass(1);
    const [start, plan, ...rest] = world.events;
    const end = rest.pop();
    expect(start).toMatchObject({ type: "read-start", key: "small", method: "GET", range: undefined });
    expect(plan).toMatchObject({
      type: "plan",
      ms: 10,
      from: "edge",
      pop: "p0",
      k: 4,
      m: 2,
      cached: [4],
      expectedMs: 60,
    });
    expect(rest.filter((event) => event.type === "request" && event.outcome === "pending")).toHaveLength(5);
    expect(rest.filter((event) => event.type === "request" && event.endMs !== undefined)).toHaveLength(5);
    expect(end).toMatchObject({
      type: "read-end",
      ms: 70,
      status: 200,
      kind: "mixed",
      firstByteMs: 70,
      bytes: 4000,
      decodedShards: 1,
      error: undefined,
    });
    const summary = world.events.reduce<ReadSummary | undefined>(summarized, undefined)!;
    expect(totalsOf(summary)).toEqual({ fetchedBytes: 4000, used: 4, unused: 0, cancelled: 1, failed: 0 });
    expect(new Set(world.events.map(({ read: id }) => id)).size).toBe(1);
  });

  test("the rate of the line, once it is known", async () => {
    const { world, client } = await startWorld();
    // Without leaves, a small range takes a whole chunk from its region alone: of 1 kB, and of 50 kB.
    world.put("wide", sampleBytes(200_000), { stripeBytes: 200_000 });
    for (const region of world.regions) Object.assign(region, { delayMs: 400, pace: 1_250 });
    for (const key of [KEY, "wide"]) await read(world, client, { range: "bytes=0-9" }, key);
    await world.clock.pass(1);
    const ends = world.events.filter((event) => event.type === "read-end");
    expect(ends.map(({ lineMbit }) => lineMbit)).toEqual([undefined, expect.closeTo(10, 0)]);
  });
});

test("any two lossy regions and any fault of the PoPs leave every read whole", async () => {
  const popFaults = fc.constantFrom("none", "refuses", "silent", "html", "error", "cuts", "garbles", "stalls");
  const regionFaults = fc.constantFrom("none", "down", "corrupt", "truncate", "error");
  const chunks = fc.uniqueArray(fc.nat(5), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(popFaults, popFaults),
      fc.uniqueArray(fc.nat(5), { maxLength: 2 }),
      regionFaults,
      chunks,
      fc.nat(12_000),
      fc.nat(),
      async (pops, lossy, fault, cached, length, garbledBit) => {
        const { world, client } = await startWorld();
        const bytes = sampleBytes(length, length + 1);
        world.put("any", bytes);
        pops.forEach((popFault, i) => Object.assign(world.pops[i]!, { fault: popFault, cached, garbledBit }));
        for (const region of lossy) world.regions[region]!.fault = fault;
        for (let time = 0; time < 2; time++) expect((await read(world, client, {}, "any")).bytes).toEqual(bytes);
      },
    ),
    { numRuns: 100 },
  );
});

describe("the nearest PoP", () => {
  test("is the one with the shortest round trip, whatever its position in the configuration", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    world.pops[0]!.delayMs = 200;
    const client = world.client();
    await world.clock.settle(client.probe(true));
    await read(world, client);
    expect(world.requests("p0")).toEqual([]);
  });

  test("stays the nearest while another is nearer by a little, and not when that is clearly nearer", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    world.pops[1]!.delayMs = 9;
    await world.clock.pass(PROBE_EVERY_MS);
    await world.clock.settle(client.probe());
    expect(client.pops.byDistance().map(({ name }) => name)).toEqual(["p0", "p1"]);
    world.pops[0]!.delayMs = 90;
    await world.clock.settle(client.probe(true));
    expect(client.pops.byDistance().map(({ name }) => name)).toEqual(["p1", "p0"]);
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests("p1").at(-1)!.url).toContain("version=");
  });

  test("stays the nearest while the pages that it serves delay its probes, and not for ever", async () => {
    const { world, client } = await startWorld();
    const nearestAfterProbe = async (): Promise<string> => {
      await world.clock.pass(PROBE_EVERY_MS);
      await world.clock.settle(client.probe());
      return client.pops.byDistance()[0]!.name;
    };
    world.pops[1]!.delayMs = 25;
    expect(await nearestAfterProbe()).toBe("p0");
    world.pops[0]!.delayMs = 100;
    expect([await nearestAfterProbe(), await nearestAfterProbe()]).toEqual(["p0", "p0"]);
    for (let probes = 0; probes < 10; probes++) await nearestAfterProbe();
    expect(client.pops.byDistance()[0]!.name).toBe("p1");
  });

  test("is measured when no read has begun for a second, and not while a page loads", async () => {
    const { world, client } = await startWorld();
    const probes = (): number => world.log.filter(({ url }) => url.endsWith("/healthz")).length;
    await read(world, client);
    await world.clock.pass(PROBE_EVERY_MS);
    const before = probes();
    const reading = client.answer(request());
    await read(world, client);
    await world.clock.pass(QUIET_MS - 1);
    await read(world, client);
    await world.clock.pass(QUIET_MS - 1);
    expect(probes()).toBe(before);
    await bytesOf(world, await world.clock.settle(reading));
    await world.clock.pass(QUIET_MS);
    expect(probes()).toBeGreaterThan(before);
  });

  test("is measured at once by a client that begins with a read", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    world.pops[0]!.delayMs = 200;
    const client = world.client();
    await read(world, client);
    expect(client.pops.byDistance()[0]!.name).toBe("p1");
  });

  test("is measured again two seconds after a first probe that a loading page has delayed", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    const client = world.client();
    world.pops[0]!.delayMs = 50;
    world.pops[1]!.delayMs = 20;
    await world.clock.settle(client.probe());
    expect(client.pops.byDistance()[0]!.name).toBe("p1");
    world.pops[0]!.delayMs = 10;
    await world.clock.settle(client.probe());
    expect(client.pops.byDistance()[0]!.name, "too early for another probe").toBe("p1");
    await world.clock.pass(PROBE_AGAIN_MS);
    await world.clock.settle(client.probe());
    expect(client.pops.byDistance()[0]!.name).toBe("p0");
  });

  test("is not the one that was asked because its probe ended first, where another is nearer", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    const client = world.client();
    world.pops[0]!.delayMs = 60;
    world.pops[1]!.delayMs = 20;
    const probing = client.probe();
    // Its first trips are slow, and its last one is not.
    await world.clock.pass(150);
    expect(client.pops.byDistance()[0]!.name).toBe("p1");
    world.pops[0]!.delayMs = 17;
    await world.clock.settle(probing);
    expect(client.pops.byDistance()[0]!.name).toBe("p0");
  });

  test("is asked again once a probe finds it alive", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "refuses";
    await read(world, client);
    world.pops[0]!.fault = "none";
    expect(client.pops.byDistance()[0]!.name).toBe("p1");
    await world.clock.settle(client.probe(true));
    expect(client.pops.byDistance()[0]!.name).toBe("p0");
  });
});
