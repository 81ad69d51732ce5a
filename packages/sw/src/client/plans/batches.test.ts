/** Reads of many small objects at once: one request to the PoP brings their plans and bodies. */
import { describe, expect, test } from "vitest";
import * as fc from "fast-check";
import type { AgaroseError } from "@agarose/core";
import type { ObjectClient } from "../object-client.ts";
import { FakeWorld, sampleBytes } from "../../../test/fake-world.ts";
import { BATCH_KEYS_MAX } from "./batches.ts";

const IMAGES = Array.from({ length: 40 }, (_, i) => `images/${i}.jpg`);
/** The first read is alone. */
const BATCHES = Math.ceil((IMAGES.length - 1) / BATCH_KEYS_MAX);
/** One stripe, of another length and content for each image. */
const imageOf = (i: number): Uint8Array => sampleBytes(1_000 + 50 * i, i + 1);

async function startWorld(): Promise<{ world: FakeWorld; client: ObjectClient }> {
  const world = new FakeWorld();
  for (const [i, key] of IMAGES.entries()) world.put(key, imageOf(i));
  const client = world.client();
  await world.clock.settle(client.probe(true));
  world.log.length = 0;
  return { world, client };
}

interface Options {
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
}

async function read(client: ObjectClient, key: string, { signal, headers = {} }: Options = {}): Promise<Uint8Array> {
  const { status, body } = await client.answer({ key, method: "GET", headers: new Headers(headers), signal });
  expect([200, 206]).toContain(status);
  return new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

/** Reads all images at once and checks every byte. */
async function readAll(world: FakeWorld, client: ObjectClient): Promise<void> {
  const bodies = await world.clock.settle(Promise.all(IMAGES.map((key) => read(client, key))));
  for (const [i, body] of bodies.entries()) expect(body, IMAGES[i]).toEqual(imageOf(i));
}

const batches = (world: FakeWorld): string[] =>
  world.requests("p0").flatMap(({ url }) => (url.includes("/v1/plans") ? [url] : []));
const buckets = (world: FakeWorld): number => world.requests().filter(({ to }) => to.startsWith("r")).length;

describe("images that a page asks for at once", () => {
  test("come in a few requests to the nearest PoP, and none to a bucket", async () => {
    const { world, client } = await startWorld();
    await readAll(world, client);
    const keys = batches(world).map((url) => new URL(url).searchParams.getAll("key"));
    expect(keys).toHaveLength(BATCHES);
    expect(Math.max(...keys.map(({ length }) => length))).toBe(BATCH_KEYS_MAX);
    expect(keys.flat(), "those that were asked for first come first").toEqual(IMAGES.slice(1));
    expect(world.requests("p0")).toHaveLength(BATCHES + 1);
    // The first read could not know of the others.
    expect(buckets(world)).toBe(5);
    expect(world.openBundles).toBe(0);
  });

  test("come by the batch although buckets are nearer than the PoP's usual delivery", async () => {
    const { world, client } = await startWorld();
    for (const region of world.regions) region.delayMs = 1;
    await readAll(world, client);
    expect(world.requests("p0")).toHaveLength(BATCHES + 1);
    expect(buckets(world)).toBe(5);
  });

  test("cost no request again within a minute, nor does a range of one, and come in batches after that", async () => {
    const { world, client } = await startWorld();
    await readAll(world, client);
    await world.clock.pass(1_000);
    world.log.length = 0;
    await readAll(world, client);
    const range = read(client, IMAGES[3]!, { headers: { range: "bytes=100-199" } });
    expect(await world.clock.settle(range)).toEqual(imageOf(3).subarray(100, 200));
    expect(world.requests()).toEqual([]);
    await world.clock.pass(60_000);
    await readAll(world, client);
    expect(batches(world)).toHaveLength(BATCHES);
  });

  test("come in batches when their plans are known, and they are not", async () => {
    const { world, client } = await startWorld();
    await world.clock.settle(client.preload(IMAGES));
    world.log.length = 0;
    await readAll(world, client);
    expect(batches(world)).toHaveLength(BATCHES);
    expect(buckets(world)).toBeLessThanOrEqual(5);
  });

  test("come as the new version within a minute, once the client has learned of it", async () => {
    const { world, client } = await startWorld();
    await readAll(world, client);
    world.put(IMAGES[0]!, imageOf(7));
    await world.clock.settle(client.purge((key) => key === IMAGES[0]));
    expect(await world.clock.settle(read(client, IMAGES[0]!))).toEqual(imageOf(7));
  });

  test("come whole, however the network cuts the batch into parts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3_000 }), async (bytes) => {
        const { world, client } = await startWorld();
        world.batchPartBytes = bytes;
        await readAll(world, client);
        expect(batches(world).length).toBeGreaterThan(1);
      }),
      { numRuns: 6, examples: [[1], [11], [12], [13]] },
    );
  });

  test("do not share memory: a reader that overwrites its image spoils no other", async () => {
    const { world, client } = await startWorld();
    const bodies = await world.clock.settle(
      Promise.all(
        IMAGES.map(async (key) => {
          const { body } = await client.answer({ key, method: "GET", headers: new Headers() });
          const parts: Uint8Array[] = [];
          for await (const part of body!) {
            parts.push(part.slice());
            new Uint8Array(part.buffer).fill(0);
          }
          return Buffer.concat(parts);
        }),
      ),
    );
    for (const [i, body] of bodies.entries()) expect(new Uint8Array(body)).toEqual(imageOf(i));
    expect(batches(world)).toHaveLength(BATCHES);
  });

  test("come from the buckets where the PoP misses them after all", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.missing = [1, 2];
    await readAll(world, client);
    expect(batches(world)).toHaveLength(BATCHES);
    expect(buckets(world)).toBeGreaterThan(IMAGES.length);
  });

  test("come whole when one bit of a batch is wrong", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(8 * 60_000), async (bit) => {
        const { world, client } = await startWorld();
        Object.assign(world.pops[0]!, { fault: "garbles", garbledBit: bit });
        await readAll(world, client);
        expect(batches(world).length).toBeGreaterThan(0);
      }),
      { numRuns: 12 },
    );
  });

  test.each(["cuts", "stalls", "html", "error", "refuses", "silent"] as const)(
    "come whole from elsewhere when the PoP %s",
    async (fault) => {
      const { world, client } = await startWorld();
      world.pops[0]!.fault = fault;
      await readAll(world, client);
      expect(batches(world).length).toBeGreaterThan(0);
      expect(buckets(world)).toBeGreaterThan(0);
      await world.clock.pass(20_000);
      expect(world.openBundles).toBe(0);
    },
  );

  test("come by the batch, however slow it is, while the PoP keeps sending", async () => {
    const { world, client } = await startWorld();
    // Each batch takes 6 s.
    Object.assign(world, { batchPartBytes: 200, batchPartMs: 100 });
    await readAll(world, client);
    expect(world.requests("p0")).toHaveLength(BATCHES + 1);
    expect(world.requests("p1")).toEqual([]);
    expect(buckets(world)).toBe(5);
  });

  test("do not make a PoP count as failed that was late with one of them", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.delayMs = 300;
    world.pops[0]!.fault = "stalls";
    await readAll(world, client);
    expect(buckets(world)).toBeGreaterThan(0);
    expect(client.pops.byDistance()[0]!.name).toBe("p0");
  });

  test("go to the buckets, and to no other PoP, when theirs is late", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "silent";
    await readAll(world, client);
    expect(batches(world)).toHaveLength(BATCHES);
    // The first read is alone, and asks PoPs in turn.
    expect(world.requests("p1").length).toBeLessThanOrEqual(1);
    expect(buckets(world)).toBeGreaterThan(IMAGES.length);
  });

  test("come from another PoP when theirs is down and so are the buckets' manifests", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "refuses";
    for (const { store } of world.regions)
      for (const name of store.keys()) if (!name.includes("chunks")) store.set(name, new Uint8Array(3));
    await readAll(world, client);
    expect(world.requests("p1").length).toBeGreaterThan(0);
  });

  test("fail alone: a missing one keeps no other from the page", async () => {
    const { world, client } = await startWorld();
    const failure = read(client, IMAGES[5]!).catch((error: AgaroseError) => error.code);
    world.remove(IMAGES[5]!);
    const others = IMAGES.filter((_, i) => i !== 5).map((key) => read(client, key));
    const bodies = await world.clock.settle(Promise.all(others));
    expect(bodies.map(({ length }) => length)).toEqual(IMAGES.map((_, i) => imageOf(i).length).toSpliced(5, 1));
    expect(await world.clock.settle(failure)).toBe("OBJECT_NOT_FOUND");
  });

  test("survive those that the page gives up, at any moment", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(39), { minLength: 1, maxLength: 39 }), fc.nat(25), async (given, ms) => {
        const { world, client } = await startWorld();
        const abort = new AbortController();
        const reads = IMAGES.map((key, i) => read(client, key, given.includes(i) ? { signal: abort.signal } : {}));
        world.clock.after(ms, () => abort.abort());
        const ends = await world.clock.settle(Promise.allSettled(reads));
        for (const [i, end] of ends.entries()) {
          if (end.status === "fulfilled") expect(end.value).toEqual(imageOf(i));
          else expect({ i, code: (end.reason as AgaroseError).code }).toEqual({ i, code: "ABORTED" });
          if (!given.includes(i)) expect(end.status).toBe("fulfilled");
        }
        await world.clock.pass(20_000);
        expect(world.openBundles).toBe(0);
      }),
      { numRuns: 12 },
    );
  });

  test("come in a batch that the first of its reads left before it was sent", async () => {
    const { world, client } = await startWorld();
    const abort = new AbortController();
    const first = read(client, IMAGES[0]!);
    const left = read(client, IMAGES[1]!, { signal: abort.signal }).catch((error: AgaroseError) => error.code);
    await Promise.resolve();
    abort.abort();
    const late = [2, 3].map((i) => read(client, IMAGES[i]!));
    const bodies = await world.clock.settle(Promise.all([first, ...late]));
    expect(bodies).toEqual([0, 2, 3].map(imageOf));
    expect(await left).toBe("ABORTED");
    expect(batches(world)).toHaveLength(1);
    expect(client.pops.byDistance()[0]!.name, "the PoP is not taken for broken").toBe("p0");
    expect(world.requests("p1")).toEqual([]);
  });

  test("have keys of any length in URLs that a CDN takes", async () => {
    const { world, client } = await startWorld();
    const keys = IMAGES.map((key) => `${"ü".repeat(140)}/${key}`);
    for (const [i, key] of keys.entries()) world.put(key, imageOf(i));
    const bodies = await world.clock.settle(Promise.all(keys.map((key) => read(client, key))));
    expect(bodies).toEqual(IMAGES.map((_, i) => imageOf(i)));
    expect(batches(world)).toHaveLength(BATCHES);
    for (const url of batches(world)) expect(url.length).toBeLessThan(14_000);
  });

  test("take the batch with them when the page gives up all of it", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "stalls";
    const abort = new AbortController();
    const reads = IMAGES.map((key) => read(client, key, { signal: abort.signal }));
    world.clock.after(16, () => abort.abort());
    const ends = await world.clock.settle(Promise.allSettled(reads));
    expect(ends.every(({ status }) => status === "rejected")).toBe(true);
    const asked = world.requests("p0").filter(({ url }) => url.includes("/v1/plans"));
    expect(asked).toHaveLength(BATCHES);
    expect(asked.every(({ aborted }) => aborted)).toBe(true);
  });
});

test("a read that is alone waits for no other", async () => {
  const { world, client } = await startWorld();
  for (const key of IMAGES.slice(0, 3)) {
    const startMs = world.clock.now();
    await world.clock.settle(read(client, key));
    expect(world.requests("p0").at(-1)!.atMs).toBe(startMs);
    await world.clock.pass(30);
  }
  expect(batches(world)).toEqual([]);
});

test("ranges and private reads are asked for one by one", async () => {
  const { world, client } = await startWorld();
  const reads = [
    read(client, IMAGES[0]!),
    read(client, IMAGES[1]!, { headers: { authorization: "Bearer a" } }),
    read(client, IMAGES[2]!, { headers: { range: "bytes=0-99" } }),
  ];
  await world.clock.settle(Promise.all(reads));
  expect(batches(world)).toEqual([]);
  expect(world.requests("p0")).toHaveLength(3);
});

test("a large object among small ones comes whole, with what the PoP has cached of it", async () => {
  const { world, client } = await startWorld();
  const large = sampleBytes(40_000);
  world.put("video", large);
  world.pops[0]!.cached = [0, 4];
  const [, body] = await world.clock.settle(
    Promise.all([read(client, IMAGES[0]!), read(client, "video"), read(client, IMAGES[1]!)]),
  );
  expect(body).toEqual(large);
  expect(batches(world)).toHaveLength(1);
  const used = world.events.flatMap((event) =>
    event.type === "request" && event.kind === "edge" && event.outcome === "used" ? [event.chunk] : [],
  );
  expect(used).toContain(4);
});

test("a large object among small ones comes from the PoP that has it whole, though buckets are nearer", async () => {
  const { world, client } = await startWorld();
  const large = sampleBytes(400_000);
  world.put("video", large);
  world.pops[0]!.cached = [0, 1, 2, 3];
  for (const region of world.regions) region.delayMs = 1;
  const reads = [IMAGES[0]!, "video", IMAGES[1]!].map((key) => read(client, key));
  expect((await world.clock.settle(Promise.all(reads)))[1]).toEqual(large);
  const ofVideo = world.requests().filter(({ url }) => url.includes("video"));
  expect(ofVideo.filter(({ to }) => to.startsWith("r"))).toEqual([]);
  expect(ofVideo.filter(({ to }) => to === "p0")).toHaveLength(2);
});

test("a large object among small ones costs no request more where the PoP has nothing of it", async () => {
  const { world, client } = await startWorld();
  const large = sampleBytes(40_000);
  world.put("video", large);
  const reads = [IMAGES[0]!, "video", IMAGES[1]!].map((key) => read(client, key));
  expect((await world.clock.settle(Promise.all(reads)))[1]).toEqual(large);
  expect(world.requests("p0").map(({ url }) => new URL(url).pathname)).toEqual(["/v1/read/images/0.jpg", "/v1/plans"]);
});

test("what a batch brought is not taken for what the PoP has cached", async () => {
  const { world, client } = await startWorld();
  await readAll(world, client);
  expect(IMAGES.slice(1).every((key) => client.plans.get(key)!.cached.length === 0)).toBe(true);
});
