/** Objects of a format that is newer than the client: what a worker in the field does when its publisher upgrades. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { browserPorts } from "../ports/browser-ports.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import type { ObjectClient } from "./object-client.ts";

const KEY = "new/format";
const BYTES = sampleBytes(9_000);

async function startWorld(config: object = {}) {
  const world = new FakeWorld();
  world.put(KEY, BYTES, { format: 3 });
  world.put("old/format", BYTES);
  const client = world.client(config);
  await world.clock.settle(client.probe(true));
  return { world, client };
}

async function read(world: FakeWorld, client: ObjectClient, key = KEY) {
  const answer = client.answer({ key, method: "GET", headers: new Headers() });
  const { status, body } = await world.clock.settle(answer);
  return { status, bytes: new Uint8Array(await new Response(body).arrayBuffer()) };
}

const paths = (world: FakeWorld, to?: string): string[] => world.requests(to).map(({ url }) => new URL(url).pathname);

describe("a client that meets a newer format", () => {
  test("reads at the PoP, which knows it, and looks for a newer worker", async () => {
    const { world, client } = await startWorld();
    expect(await read(world, client)).toEqual({ status: 200, bytes: BYTES });
    expect(world.updates).toBe(1);
    // The publisher's word is final: no other PoP and no bucket is asked.
    expect(paths(world)).toEqual([`/v1/read/${KEY}`, `/o/${KEY}`]);
  });

  test("reads at the PoP what has a feature that it does not know, and without one says MANIFEST_NEWER", async () => {
    for (const config of [{}, { pops: [] }]) {
      const { world, client } = await startWorld(config);
      world.put(KEY, BYTES, { requires: ["teleport"] });
      const answer = read(world, client);
      if ("pops" in config) await expect(answer).rejects.toMatchObject({ code: "MANIFEST_NEWER", httpStatus: 502 });
      else expect((await answer).bytes).toEqual(BYTES);
      expect(world.updates).toBe(1);
      expect(
        paths(world).filter((path) => path.includes("/chunks/")),
        "no chunk was asked for",
      ).toEqual([]);
    }
  });

  test("reports the code to those who watch its reads", async () => {
    const { world, client } = await startWorld();
    await read(world, client);
    expect(world.events).toContainEqual(expect.objectContaining({ type: "read-end", error: "MANIFEST_NEWER" }));
  });

  test("does not take the PoP for one that fails: older objects are read as before", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [0, 1, 2, 3];
    for (let i = 0; i < 10; i++) await read(world, client);
    world.log.length = 0;
    expect((await read(world, client, "old/format")).bytes).toEqual(BYTES);
    expect(paths(world)[0]).toBe("/v1/read/old/format");
    expect(world.requests("p1"), "no other PoP was asked").toEqual([]);
  });

  test("reads many of them at once", async () => {
    const { world, client } = await startWorld();
    const keys = Array.from({ length: 12 }, (_, i) => `page/${i}`);
    for (const [i, key] of keys.entries()) world.put(key, sampleBytes(900 + i), { format: i % 2 === 0 ? 3 : 2 });
    const answers = await Promise.all(keys.map((key) => read(world, client, key)));
    expect(answers.map(({ bytes }) => bytes)).toEqual(keys.map((_, i) => sampleBytes(900 + i)));
    expect(paths(world).filter((path) => path.startsWith("/o/"))).toHaveLength(6);
  });

  test("asks the next PoP while the nearest one is too old itself", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.fault = "outdated";
    expect((await read(world, client, "old/format")).bytes).toEqual(BYTES);
    expect(paths(world, "p0")).toContain("/v1/read/old/format");
    expect(paths(world, "p1")).toContain("/v1/read/old/format");
  });

  test("is given MANIFEST_NEWER where there is no PoP, and looks for a newer worker", async () => {
    const { world, client } = await startWorld({ pops: [] });
    await expect(read(world, client)).rejects.toMatchObject({ code: "MANIFEST_NEWER", httpStatus: 502 });
    expect(world.updates).toBe(1);
  });
});

describe("the ports of a browser", () => {
  afterEach(() => vi.unstubAllGlobals());
  const codec = () => Promise.reject(new Error("not needed"));

  test("look for a newer worker once, and bear that the server does not answer", async () => {
    const update = vi.fn(() => Promise.reject(new TypeError("offline")));
    vi.stubGlobal("registration", { update });
    const ports = browserPorts(codec);
    ports.update!();
    ports.update!();
    expect(update).toHaveBeenCalledTimes(1);
    await Promise.resolve();
  });

  test("do nothing in a page, which has no registration", () => {
    expect(() => browserPorts(codec).update!()).not.toThrow();
  });
});
