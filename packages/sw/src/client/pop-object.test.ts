/** Reads through `/o/`: the next PoP takes over, at the start and in the middle, and nothing waits for ever. */
import { describe, expect, test } from "vitest";
import type { ObjectClient } from "./object-client.ts";
import type { FakePop } from "../../test/fake-world.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const KEY = "a";
const BYTES = sampleBytes(10_000);

/** A client that is too old for the object, and two PoPs that are not. */
function startWorld(config: object = {}) {
  const world = new FakeWorld();
  world.put(KEY, BYTES, { format: 99 });
  return { world, client: world.client(config) };
}

async function read(world: FakeWorld, client: ObjectClient, headers: Record<string, string> = {}) {
  let ends = 0;
  const asked = { key: KEY, method: "GET", headers: new Headers(headers) } as const;
  const answer = await world.clock.settle(client.answer(asked, () => void ends++));
  const body = await world.clock.settle(
    new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
  );
  return { ...answer, bytes: new Uint8Array(body), ends };
}

const askedOf = (world: FakeWorld): string[] =>
  world.log.filter(({ url }) => url.includes("/o/")).map(({ to, range }) => `${to} ${range ?? ""}`.trim());

describe("while the nearest PoP", () => {
  test.each<[FakePop["fault"], string[]]>([
    ["refuses", ["p0", "p1"]],
    ["error", ["p0", "p1"]],
    ["portal", ["p0", "p1"]],
    ["silent", ["p0", "p1"]],
    ["outdated", ["p0", "p1"]],
    ["cuts", ["p0", "p1 bytes=1000-9999"]],
    ["stalls", ["p0", "p1 bytes=1000-9999"]],
  ])("%s, the next one answers, and the read ends once", async (fault, asked) => {
    const { world, client } = startWorld();
    await read(world, client);
    world.log.length = 0;
    // Plans still come, so that the read is one through `/o/`.
    world.faultsOfObjects.set("p0", fault);
    const startMs = world.clock.now();
    const { status, bytes, ends } = await read(world, client);
    expect([status, ends]).toEqual([200, 1]);
    expect(bytes).toEqual(BYTES);
    expect(askedOf(world)).toEqual(asked);
    expect(world.clock.now() - startMs).toBeLessThan(6_000);
  });

  test("cuts a range off, the rest of that range comes from the next one", async () => {
    const { world, client } = startWorld();
    world.faultsOfObjects.set("p0", "cuts");
    const { status, bytes, headers } = await read(world, client, { range: "bytes=500-4499" });
    expect([status, headers["content-range"]]).toEqual([206, "bytes 500-4499/10000"]);
    expect(bytes).toEqual(BYTES.slice(500, 4500));
    expect(askedOf(world)).toEqual(["p0 bytes=500-4499", "p1 bytes=1500-4499"]);
  });
});

test("versions are never mixed: where the next PoP has another one, the body errors", async () => {
  const { world, client } = startWorld();
  world.faultsOfObjects.set("p0", "cuts");
  const asked = { key: KEY, method: "GET", headers: new Headers() } as const;
  let ends = 0;
  const { body } = await world.clock.settle(client.answer(asked, () => void ends++));
  world.put(KEY, sampleBytes(10_000, 2), { format: 99 });
  const whole = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer();
  await expect(world.clock.settle(whole)).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(ends).toBe(1);
});

test.each<[FakePop["fault"], string]>([
  ["refuses", "NO_SOURCE"],
  ["portal", "NO_SOURCE"],
  ["silent", "READ_TIMEOUT"],
  ["outdated", "MANIFEST_NEWER"],
])("while every PoP %s, the read fails with %s, and no timer is left", async (fault, code) => {
  const { world, client } = startWorld();
  for (const { name } of world.pops) world.faultsOfObjects.set(name, fault);
  await expect(read(world, client)).rejects.toMatchObject({ code });
  expect(askedOf(world).toSorted()).toEqual(["p0", "p1"]);
  expect(world.log.filter(({ url, aborted }) => url.includes("/o/") && !aborted && fault === "silent")).toEqual([]);
});

test("what only the origin of a PoP has is read there, and no bucket is asked", async () => {
  const world = new FakeWorld();
  world.put(KEY, BYTES);
  world.arePlain = true;
  const { status, bytes } = await read(world, world.client());
  expect([status, bytes]).toEqual([200, BYTES]);
  expect(world.log.map(({ url }) => new URL(url).pathname).filter((path) => path !== "/healthz")).toEqual([
    `/v1/read/${KEY}`,
    `/o/${KEY}`,
  ]);
});

test("what a PoP says about the object is the answer, and no other PoP is asked", async () => {
  const { world, client } = startWorld();
  world.forgets = true;
  const { status, headers } = await read(world, client);
  expect([status, headers["x-agarose-error"]]).toEqual([404, "OBJECT_NOT_FOUND"]);
  expect(askedOf(world)).toEqual(["p0"]);
});

test("a page that leaves in the middle ends the request, and asks no other PoP", async () => {
  const { world, client } = startWorld();
  const asked = { key: KEY, method: "GET", headers: new Headers() } as const;
  let ends = 0;
  const { body } = await world.clock.settle(client.answer(asked, () => void ends++));
  world.faultsOfObjects.set("p0", "stalls");
  const reader = body!.getReader();
  await world.clock.settle(reader.read());
  const waiting = reader.read();
  await reader.cancel();
  await waiting;
  await world.clock.pass(60_000);
  expect([ends, askedOf(world)]).toEqual([1, ["p0"]]);
});

test("a page that leaves while the next PoP is asked for the rest ends that request, too", async () => {
  const { world, client } = startWorld();
  world.faultsOfObjects.set("p0", "cuts");
  world.faultsOfObjects.set("p1", "silent");
  const asked = { key: KEY, method: "GET", headers: new Headers() } as const;
  let ends = 0;
  const { body } = await world.clock.settle(client.answer(asked, () => void ends++));
  const reader = body!.getReader();
  await world.clock.settle(reader.read());
  const waiting = reader.read();
  await world.clock.pass(50);
  expect(askedOf(world)).toEqual(["p0", "p1 bytes=1000-9999"]);
  await reader.cancel();
  await waiting;
  await world.clock.pass(50);
  expect(world.requests("p1").map(({ aborted }) => aborted)).toEqual([true]);
  await world.clock.pass(60_000);
  expect([ends, askedOf(world).length]).toEqual([1, 2]);
});
