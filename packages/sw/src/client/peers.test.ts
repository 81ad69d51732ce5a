import { describe, expect, test } from "vitest";
import type { ObjectClient } from "./object-client.ts";
import { FakeWorld, sampleBytes, type FakePop } from "../../test/fake-world.ts";

const KEY = "photos/cat.jpg";
/** Three stripes, the last one shorter. */
const BYTES = sampleBytes(10_000);

/** The nearest PoP holds one chunk, and the other one, nearer than most buckets, two more. */
async function startWorld(): Promise<{ world: FakeWorld; client: ObjectClient; peer: FakePop; farthest: number[] }> {
  const world = new FakeWorld();
  const { placement } = world.put(KEY, BYTES);
  const farthest = ["r3", "r4", "r5"].map((region) => placement.indexOf(region));
  const [own, peer] = world.pops as [FakePop, FakePop];
  own.cached = farthest.slice(0, 1);
  own.namesPeers = true;
  peer.cached = farthest.slice(1);
  peer.delayMs = 30;
  const client = world.client();
  await world.clock.settle(client.probe(true));
  return { world, client, peer, farthest };
}

async function read(world: FakeWorld, client: ObjectClient): Promise<{ bytes: Uint8Array; kind: string | undefined }> {
  const { body, headers } = await world.clock.settle(
    client.answer({ key: KEY, method: "GET", headers: new Headers() }),
  );
  const response = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>);
  return { bytes: new Uint8Array(await world.clock.settle(response.arrayBuffer())), kind: headers["x-agarose-read"] };
}

/** Chunks by the source that gave them. */
function used(world: FakeWorld): Record<string, number> {
  const requests = world.events.flatMap((event) =>
    event.type === "request" && event.outcome === "used" ? [event] : [],
  );
  return Object.fromEntries(
    [...Map.groupBy(requests, ({ kind, source }) => `${kind} ${source}`)].map(([name, all]) => [name, all.length]),
  );
}

describe("chunks in another PoP's cache", () => {
  test("are read from there, where that is nearer than their regions", async () => {
    const { world, client } = await startWorld();
    const { bytes, kind } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(kind).toBe("mixed");
    expect(used(world)).toMatchObject({ "edge p0": 3, "peer p1": 6 });
    expect(world.requests("p1").every(({ url }) => url.startsWith("https://p1.test/v1/chunk/"))).toBe(true);
  });

  test("are asked for in the same tick as the edge and the buckets once the plan is known", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    world.log.length = 0;
    await read(world, client);
    const firstMs = world.log[0]!.atMs;
    expect(
      new Set(
        world
          .requests()
          .filter(({ atMs }) => atMs === firstMs)
          .map(({ to }) => to),
      ),
    ).toEqual(new Set(["p0", "p1", "r0", "r1"]));
  });

  test.each(["down", "garbles"] as const)("cost no more than a replacement when that PoP %s", async (fault) => {
    const { world, client, peer } = await startWorld();
    peer.chunkFault = fault;
    const { bytes, kind } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(kind).toBe("degraded");
    const failed = world.events.filter(
      (event) => event.type === "request" && event.kind === "peer" && event.outcome === "failed",
    );
    expect(failed.length, "the fault fired").toBeGreaterThan(0);
    world.log.length = 0;
    await read(world, client);
    expect(world.requests("p1"), "it is not among the first to be asked next time").toEqual([]);
  });

  test("that are gone come from their regions, which is no fault", async () => {
    const { world, client, peer } = await startWorld();
    peer.missing = peer.cached;
    const { bytes, kind } = await read(world, client);
    expect(bytes).toEqual(BYTES);
    expect(kind).toBe("mixed");
    expect(world.requests("p1").length).toBeGreaterThan(0);
  });

  describe("while a plan of before is read by", () => {
    /** More stripes than are read at a time at first. */
    const LONG = sampleBytes(100_000);

    /**
     * A long object whose plan is known; since then, another PoP has cached the chunks of `now` in place of `before`.
     */
    async function changed(before: number[], now: number[]): Promise<{ world: FakeWorld; client: ObjectClient }> {
      const { world, client, peer } = await startWorld();
      const { placement } = world.put(KEY, LONG);
      const chunksOf = (regions: number[]): number[] => regions.map((region) => placement.indexOf(`r${region}`));
      world.pops[0]!.cached = [];
      peer.cached = chunksOf(before);
      await world.clock.settle(client.answer({ key: KEY, method: "HEAD", headers: new Headers() }));
      peer.cached = chunksOf(now);
      world.log.length = 0;
      world.events.length = 0;
      return { world, client };
    }

    test("are asked for as soon as the plan of the bundle names them, beside what is slower", async () => {
      const { world, client } = await changed([], [2, 3]);
      const { bytes } = await read(world, client);
      expect(bytes).toEqual(LONG);
      const firstMs = world.log[0]!.atMs;
      const asked = world
        .requests("p1")
        .map(({ url, atMs }) => ({ atMs, stripe: Number(/stripe=(\d+)/.exec(url)![1]) }));
      expect(asked[0], "p0 answers after 10 ms").toEqual({ atMs: firstMs + 10, stripe: 0 });
      expect(asked.at(-1)!.stripe, "so are those of later stripes").toBe(24);
      expect(used(world)["peer p1"]).toBeGreaterThan(24);
      expect(client.plans.get(KEY)?.peers).toMatchObject([{ name: "p1", chunks: world.pops[1]!.cached }]);
    });

    test("are not asked for in later stripes once the plan of the bundle names them no more", async () => {
      const { world, client } = await changed([2, 3], []);
      const { bytes, kind } = await read(world, client);
      expect(bytes).toEqual(LONG);
      expect(kind, "what is gone is no fault").toBe("origin");
      const stripes = world.requests("p1").map(({ url }) => Number(/stripe=(\d+)/.exec(url)![1]));
      expect(Math.max(...stripes), "those that were planned before").toBe(15);
      expect(client.plans.get(KEY)?.peers).toEqual([]);
    });
  });

  test("are not asked of a PoP that is not in the configuration", async () => {
    const { world } = await startWorld();
    const [{ name, url }] = world.pops as [FakePop, FakePop];
    const client = world.client({ pops: [{ name, url }] });
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests("p1")).toEqual([]);
  });
});
