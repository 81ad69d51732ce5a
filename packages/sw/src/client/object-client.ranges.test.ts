/** Ranges and conditional requests, as a client answers them. */
import { describe, expect, test } from "vitest";
import { type ObjectClient } from "./object-client.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import { KEY, BYTES, request, read, failure, startWorld } from "../../test/world-reads.ts";

describe("ranges and conditions", () => {
  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=4095-4096", 4095, 4097],
    ["bytes=5000-", 5000, 10_000],
    ["bytes=-3", 9_997, 10_000],
    ["bytes=9000-99999", 9_000, 10_000],
  ])("%s is answered with 206 and just those bytes, by a new and by a known plan", async (range, start, end) => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4, 5];
    for (let time = 0; time < 2; time++) {
      const { status, headers, bytes } = await read(world, client, { range });
      expect(status).toBe(206);
      expect(headers["content-range"]).toBe(`bytes ${start}-${end - 1}/10000`);
      expect(bytes).toEqual(BYTES.subarray(start, end));
    }
  });

  test("asks the edge and the buckets only for the stripes of the range", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4, 5];
    await read(world, client, { range: "bytes=0-0" });
    world.log.length = 0;
    await read(world, client, { range: "bytes=4096-8191" });
    expect(world.requests("p0")[0]!.url).toMatch(/&from=1&to=1&range=bytes%3D4096-8191&leaves=true$/);
    const ranges = world.requests().flatMap(({ range }) => range ?? []);
    expect(new Set(ranges)).toEqual(new Set(["bytes=1024-2047"]));
  });

  const queries = (world: FakeWorld): string[] =>
    world.requests("p0").map(({ url }) => new URL(url).search.replace(/version=\w+/, "version="));

  test("gets what the PoP has of a small range by one request, whatever the size of the stripes", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [2, 3, 4, 5];
    const { bytes, headers } = await read(world, client, { range: "bytes=8192-8200" });
    expect(bytes).toEqual(BYTES.subarray(8192, 8201));
    expect(headers["x-agarose-read"]).toBe("edge");
    expect(queries(world)).toEqual(["?from=0&to=0&range=bytes%3D8192-8200&leaves=false"]);
    expect(world.requests()).toHaveLength(1);
  });

  test("corrects its guess of the stripes once it knows their size, if the range is conditional", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [2, 3, 4, 5];
    // So far that the PoP is sooner even by a second request.
    for (const region of world.regions) region.delayMs = 500;
    const { version } = world.put(KEY, BYTES);
    const { bytes, headers } = await read(world, client, { range: "bytes=8192-8200", "if-range": `"${version}"` });
    expect(bytes).toEqual(BYTES.subarray(8192, 8201));
    expect(headers["x-agarose-read"]).toBe("edge");
    expect(queries(world)).toEqual([
      "?from=0&to=0",
      "?version=&generation=2&from=2&to=2&range=bytes%3D8192-8200&leaves=true",
    ]);
  });

  test("asks the PoP and one bucket for a small range, and sends no request for the same range again", async () => {
    const { world, client } = await startWorld();
    for (const expected of [2, 0, 0]) {
      world.log.length = 0;
      const { bytes } = await read(world, client, { range: "bytes=5000-5009" });
      expect(bytes).toEqual(BYTES.subarray(5000, 5010));
      expect(world.requests()).toHaveLength(expected);
    }
  });

  describe("that are brief, from a PoP that fetches them", () => {
    async function startFetching(): Promise<{ world: FakeWorld; client: ObjectClient }> {
      const started = await startWorld();
      started.world.pops[0]!.fetches = true;
      return started;
    }

    test("cost one request by a new plan, one more to a bucket by a known one, and none when repeated", async () => {
      const { world, client } = await startFetching();
      for (const [from, expected] of [
        [5000, ["p0"]],
        [5000, []],
        [9000, ["p0", "r1"]],
      ] as const) {
        world.log.length = 0;
        const { bytes } = await read(world, client, { range: `bytes=${from}-${from + 9}` });
        expect(bytes).toEqual(BYTES.subarray(from, from + 10));
        expect(world.requests().map(({ to }) => to)).toEqual(expected);
      }
      expect(client.plans.get(KEY)!.cached, "what was sent is not taken for what is cached").toEqual([]);
    });

    test("cost one request while their region is known to be down, and three where that is found out", async () => {
      const { world, client } = await startFetching();
      const { placement } = world.put(KEY, BYTES);
      await read(world, client, { range: "bytes=9000-9009" });
      world.regions.find(({ name }) => name === placement[1])!.fault = "down";
      const asked: string[][] = [];
      // All in chunk 1.
      for (const from of [1024, 5120, 9000]) {
        world.log.length = 0;
        const { bytes } = await read(world, client, { range: `bytes=${from}-${from + 9}` });
        expect(bytes).toEqual(BYTES.subarray(from, from + 10));
        asked.push(world.requests().map(({ to }) => to));
      }
      // The PoP reads the piece in place of k requests of the client.
      expect(asked).toEqual([["p0", "r1", "p0"], ["p0"], []]);
    });

    test.each(["down", "error", "corrupt", "truncate", "late"] as const)(
      "cost at most k + 1 requests, wherever they lie, while any one region is %s",
      async (fault) => {
        let faults = 0;
        for (const name of ["r0", "r1", "r2", "r3", "r4", "r5"]) {
          const { world, client } = await startFetching();
          const { k } = world.put(KEY, BYTES);
          await read(world, client, { range: "bytes=9000-9009" });
          if (fault === "late") world.region(name).delayMs = 60_000;
          else world.region(name).fault = fault;
          // Within a chunk, over the end of one, and over the end of a stripe; then once more within the same chunk.
          for (const from of [100, 1020, 4090, 5200, 6140, 7200, 7900]) {
            world.log.length = 0;
            const { bytes } = await read(world, client, { range: `bytes=${from}-${from + 9}` });
            expect(bytes).toEqual(BYTES.subarray(from, from + 10));
            expect(world.requests().length, `${name}, byte ${from}`).toBeLessThanOrEqual(k + 1);
            faults += world.requests(name).length;
          }
        }
        expect(faults, "the fault fired").toBeGreaterThan(0);
      },
    );

    test("come from k other regions when their region is late and the PoP silent", async () => {
      const { world, client } = await startFetching();
      const { k, placement } = world.put(KEY, BYTES);
      await read(world, client, { range: "bytes=9000-9009" });
      world.region(placement[1]!).delayMs = 60_000;
      world.pops[0]!.fault = "silent";
      world.log.length = 0;
      const { bytes } = await read(world, client, { range: "bytes=1024-1033" });
      expect(bytes).toEqual(BYTES.subarray(1024, 1034));
      expect(world.requests(placement[1]).map(({ aborted }) => aborted)).toEqual([true]);
      expect(world.requests().filter(({ url }) => url.includes("/chunks/"))).toHaveLength(k + 1);
    });

    test("come from the other regions where their region and the PoPs turn out to be down at one time", async () => {
      const { world, client } = await startFetching();
      const { k, placement } = world.put(KEY, BYTES);
      await read(world, client, { range: "bytes=9000-9009" });
      world.pops[0]!.fault = "refuses";
      world.pops[1]!.fault = "refuses";
      world.regions.find(({ name }) => name === placement[1])!.fault = "down";
      world.log.length = 0;
      const { bytes } = await read(world, client, { range: "bytes=1024-1033" });
      expect(bytes).toEqual(BYTES.subarray(1024, 1034));
      const chunks = world.requests().filter(({ url }) => url.includes("/chunks/"));
      expect(chunks.length).toBeLessThanOrEqual(k + 2);
      const pops = world.requests().filter(({ to }) => to.startsWith("p"));
      expect(pops.length).toBeLessThanOrEqual(3);
    });

    test("come from the buckets with at most k + 2 requests where the PoP could not get them either", async () => {
      const { world, client } = await startFetching();
      const manifest = world.put(KEY, BYTES);
      const down = manifest.placement[1]!;
      world.regions.find(({ name }) => name === down)!.fault = "down";
      world.pops[0]!.missing = [0, 1, 2, 3];
      const { bytes } = await read(world, client, { range: "bytes=1024-1033" });
      expect(bytes).toEqual(BYTES.subarray(1024, 1034));
      expect(world.requests().length).toBeLessThanOrEqual(manifest.k + 2);
    });

    test.each(["silent", "refuses", "cuts", "garbles", "stalls"] as const)(
      "come whole where the PoP %s",
      async (fault) => {
        const { world, client } = await startFetching();
        await read(world, client, { range: "bytes=0-9" });
        Object.assign(world.pops[0]!, { fault, garbledBit: 12 * 8 + 3 });
        for (const from of [1024, 2048, 3072]) {
          const { bytes } = await read(world, client, { range: `bytes=${from}-${from + 9}` });
          expect(bytes).toEqual(BYTES.subarray(from, from + 10));
        }
        await world.clock.pass(20_000);
        expect(world.openBundles).toBe(0);
      },
    );

    test("are of one version: If-Match of an older one is answered with 412", async () => {
      const { world, client } = await startFetching();
      const { headers } = await read(world, client, { range: "bytes=0-9" });
      world.put(KEY, sampleBytes(10_000, 7));
      const { status } = await read(world, client, { range: "bytes=5000-5009", "if-match": headers["etag"]! });
      expect(status).toBe(412);
    });
  });

  test("asks a bucket once for the same small range of several reads at a time", async () => {
    const { world, client } = await startWorld();
    const range = { range: "bytes=5000-5009" };
    const reads = await Promise.all([1, 2, 3].map(() => read(world, client, range)));
    for (const { bytes } of reads) expect(bytes).toEqual(BYTES.subarray(5000, 5010));
    expect(world.requests().filter(({ url }) => url.includes("chunks"))).toHaveLength(1);
  });

  test("does not keep blocks of an older version", async () => {
    const { world, client } = await startWorld();
    await read(world, client, { range: "bytes=5000-5009" });
    const changed = sampleBytes(10_000, 7);
    world.put(KEY, changed);
    await world.clock.pass(61_000);
    const { bytes } = await read(world, client, { range: "bytes=5000-5009" });
    expect(bytes).toEqual(changed.subarray(5000, 5010));
  });

  test("answers what cannot be met with RANGE_UNSATISFIABLE and the length", async () => {
    const { world, client } = await startWorld();
    const error = await failure(world, client.answer(request({ range: "bytes=10000-" })));
    expect(error).toMatchObject({ code: "RANGE_UNSATISFIABLE", httpStatus: 416, details: { bytes: 10_000 } });
  });

  test("answers If-None-Match with 304 and an If-Range of another version with the whole", async () => {
    const { world, client } = await startWorld();
    const { version } = world.put(KEY, BYTES);
    const unchanged = await world.clock.settle(client.answer(request({ "if-none-match": `"${version}"` })));
    expect([unchanged.status, unchanged.body]).toEqual([304, null]);
    const whole = await read(world, client, { range: "bytes=0-0", "if-range": '"other"' });
    expect([whole.status, whole.bytes.length]).toEqual([200, 10_000]);
  });
});
