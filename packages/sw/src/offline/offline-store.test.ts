/** Objects that were read are there when no PoP or region answers. The store stays within its bound. */
import { createHash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import { manifestName, trustOf } from "@agarose/core/format";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseConfig } from "../common/config.ts";
import type { ObjectClient } from "../client/object-client.ts";
import { OfflineEntries } from "./offline-entries.ts";
import { offlineStore, OfflineStore, type OfflineOptions } from "./offline-store.ts";
import { PLAN_TTL_MS } from "../client/plans/plan-store.ts";
import { FakeCache } from "../../test/fake-cache.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const KEY = "photos/cat.jpg";
/** Three stripes of 4,096 bytes, the last one shorter. */
const BYTES = sampleBytes(10_000);
const ROOM = 1_000_000;

const POPS = ["p0", "p1"].map((name) => ({ name, url: `https://${name}.test` }));

function storeOn(cache: FakeCache, bytes: number = ROOM, options: Partial<OfflineOptions> = {}): OfflineStore {
  return new OfflineStore({
    pops: POPS,
    regions: [],
    bytes,
    cache: async () => cache as unknown as Cache,
    sha256: async (shard) => createHash("sha256").update(shard).digest(),
    trust: trustOf({ unsigned: true }, []),
    ...options,
  });
}

async function startWorld(cache = new FakeCache(), bytes?: number) {
  const world = new FakeWorld();
  world.put(KEY, BYTES);
  const client = world.client({}, storeOn(cache, bytes));
  return { world, cache, client };
}

async function read(world: FakeWorld, client: ObjectClient, key = KEY, headers: Record<string, string> = {}) {
  const answer = await world.clock.settle(client.answer({ key, method: "GET", headers: new Headers(headers) }));
  const body = new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer();
  return { ...answer, bytes: new Uint8Array(await world.clock.settle(body)) };
}

function unplug(world: FakeWorld): void {
  for (const pop of world.pops) pop.fault = "refuses";
  for (const region of world.regions) region.fault = "down";
}

/** The client of a restarted worker, on the same storage. */
function restarted(world: FakeWorld, cache: FakeCache): ObjectClient {
  return world.client({}, storeOn(cache));
}

describe("offline", () => {
  test("an object that was read is read again, after a restart of the worker too", async () => {
    const { world, cache, client } = await startWorld();
    expect((await read(world, client)).headers["x-agarose-read"]).toBe("origin");
    unplug(world);
    const { bytes, headers } = await read(world, restarted(world, cache));
    expect(bytes).toEqual(BYTES);
    expect(headers["x-agarose-read"]).toBe("stored");
    await world.clock.pass(0);
    expect(world.events).toContainEqual(expect.objectContaining({ type: "plan", from: "kept" }));
    expect(world.events.at(-1)).toMatchObject({ type: "read-end", kind: "stored" });
  });

  test("a worker that the browser has ended does not go back to what a bucket and the PoPs missed an update of", async () => {
    const { world, cache, client } = await startWorld();
    const newer = sampleBytes(9_000);
    await read(world, client);
    const older = world.regions[0]!.store.get(manifestName(KEY))!;
    for (const pop of world.pops) pop.fault = "refuses";
    world.put(KEY, newer, { toldToPops: false });
    await world.clock.pass(PLAN_TTL_MS);
    expect((await read(world, client)).bytes).toEqual(newer);
    world.regions[0]!.store.set(manifestName(KEY), older);
    for (const pop of world.pops) pop.fault = "none";
    world.log.length = 0;
    expect((await read(world, restarted(world, cache))).bytes).toEqual(newer);
    expect(world.requests("p0").length, "the PoP that names the older one was asked").toBeGreaterThan(0);
  });

  test("a worker without storage that the browser has ended goes by its PoP, not by the bucket", async () => {
    const world = new FakeWorld();
    world.put(KEY, BYTES);
    const older = world.regions[0]!.store.get(manifestName(KEY))!;
    world.put(KEY, sampleBytes(9_000));
    expect((await read(world, world.client())).bytes).toEqual(sampleBytes(9_000));
    world.regions[0]!.store.set(manifestName(KEY), older);
    expect((await read(world, world.client())).bytes, "the PoP remembers").toEqual(sampleBytes(9_000));
    for (const pop of world.pops) pop.fault = "refuses";
    // The limit of the promise: without PoP and without storage, it has seen nothing.
    expect((await read(world, world.client())).bytes).toEqual(BYTES);
  });

  test("of a range that was read its stripes are there, and the others are not", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client, KEY, { range: "bytes=0-9" });
    unplug(world);
    const offline = restarted(world, cache);
    const { status, bytes } = await read(world, offline, KEY, { range: "bytes=100-4000" });
    expect([status, bytes]).toEqual([206, BYTES.slice(100, 4001)]);
    await expect(read(world, offline, KEY, { range: "bytes=5000-" })).rejects.toMatchObject({
      code: "NOT_ENOUGH_CHUNKS",
    });
  });

  test("what was never read fails as it does without a store", async () => {
    const { world, client } = await startWorld();
    unplug(world);
    await expect(read(world, client, "photos/dog.jpg")).rejects.toMatchObject({ code: "NO_SOURCE" });
  });
});

describe("online", () => {
  test("what is kept is not fetched again: a minute on, its plan alone is asked for", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [0, 1, 2];
    await read(world, client);
    world.log.length = 0;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests()).toEqual([]);
    await world.clock.pass(PLAN_TTL_MS);
    world.log.length = 0;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests().map(({ url }) => new URL(url).search)).toEqual([
      expect.stringMatching(/^\?version=\w{32}&generation=1&from=0&to=0$/),
    ]);
  });

  test("an object that has changed is read again as a whole, and its old stripes are removed", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client, KEY, { range: "bytes=0-4095" });
    const changed = sampleBytes(9_000, 2);
    const { version } = world.put(KEY, changed);
    await world.clock.pass(PLAN_TTL_MS);
    expect((await read(world, client)).bytes).toEqual(changed);
    await world.clock.pass(0);
    expect(cache.stripes.map((url) => url.includes(version))).toEqual([true, true, true]);
  });

  test("an object that is gone is gone here too", async () => {
    const { world, cache, client } = await startWorld();
    world.put("gone", BYTES);
    await read(world, client, "gone");
    world.remove("gone");
    await world.clock.pass(PLAN_TTL_MS);
    await expect(read(world, client, "gone")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    unplug(world);
    await expect(read(world, restarted(world, cache), "gone")).rejects.toMatchObject({ code: "NO_SOURCE" });
  });

  test("an object that not everybody may read any more is not kept for anybody", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client);
    for (const pop of world.pops) pop.fault = "forbids";
    await world.clock.pass(PLAN_TTL_MS);
    await expect(read(world, client)).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(cache.stripes).toEqual([]);
    unplug(world);
    await expect(read(world, restarted(world, cache))).rejects.toMatchObject({ code: "NO_SOURCE" });
  });

  test("a stripe that was damaged in storage is fetched again, and never handed out", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client);
    const [first] = cache.stripes;
    cache.stored.get(first!)![5]! ^= 1;
    world.log.length = 0;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    expect(world.requests().filter(({ to }) => to.startsWith("r")).length).toBeGreaterThan(0);
    const kept = Buffer.concat(cache.stripes.toSorted().map((url) => cache.stored.get(url)!));
    expect(kept.subarray(0, BYTES.length).equals(BYTES)).toBe(true);
  });

  test("a purge drops what is kept of a key, and no more than that", async () => {
    const { world, cache, client } = await startWorld();
    world.put("photos/dog.jpg", BYTES);
    await read(world, client);
    await read(world, client, "photos/dog.jpg");
    await client.purge((key) => key === KEY);
    expect(cache.stripes.map((url) => url.includes("dog"))).toEqual([true, true, true]);
    unplug(world);
    const offline = restarted(world, cache);
    await expect(read(world, offline)).rejects.toMatchObject({ code: "NO_SOURCE" });
    expect((await read(world, offline, "photos/dog.jpg")).bytes).toEqual(BYTES);
  });

  test("a storage that is full, or that cannot be opened, fails no read", async () => {
    const { world, cache, client } = await startWorld();
    cache.quotaBytes = 5_000;
    expect((await read(world, client)).bytes).toEqual(BYTES);
    await world.clock.pass(0);
    expect(cache.refused).toBeGreaterThan(0);
    const cacheOf = (): Promise<Cache> => Promise.reject(new DOMException("no", "SecurityError"));
    const store = storeOn(cache, ROOM, { cache: cacheOf });
    expect((await read(world, world.client({}, store))).bytes).toEqual(BYTES);
  });
});

describe("a private object", () => {
  const TOKEN = { authorization: "Bearer token" };

  test("that is read with a token while no PoP answers is not kept, nor given to a reader without one", async () => {
    const { world, cache, client } = await startWorld();
    for (const pop of world.pops) pop.fault = "refuses";
    const { bytes, headers } = await read(world, client, KEY, TOKEN);
    expect([bytes, headers["cache-control"]]).toEqual([BYTES, "private, no-cache"]);
    await world.clock.pass(0);
    expect([...cache.stored.keys()]).toEqual([]);
    unplug(world);
    await expect(read(world, client)).rejects.toMatchObject({ code: "NO_SOURCE" });
    await expect(read(world, restarted(world, cache))).rejects.toMatchObject({ code: "NO_SOURCE" });
  });

  test("is not kept of a signed URL either, nor of a range, and its answers are private whatever its headers say", async () => {
    const { world, cache, client } = await startWorld();
    world.put(KEY, BYTES, { headers: { "cache-control": "public, max-age=600" } });
    for (const pop of world.pops) pop.fault = "refuses";
    const query = new URLSearchParams({ expires: "1", signature: "s" });
    const headers = new Headers({ range: "bytes=0-9" });
    const answer = await world.clock.settle(client.answer({ key: KEY, method: "GET", headers, query }));
    expect([answer.status, answer.headers["cache-control"]]).toEqual([206, "private, no-cache"]);
    await world.clock.settle(new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
    expect([...cache.stored.keys()]).toEqual([]);
  });

  test("that was public when it was kept is dropped once its PoP says that it is private", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client);
    await world.clock.pass(PLAN_TTL_MS);
    for (const pop of world.pops) pop.dataKey = "A".repeat(43) + "=";
    const { headers } = await read(world, client, KEY, TOKEN);
    expect(headers["cache-control"]).toBe("private, no-cache");
    await world.clock.pass(0);
    expect(cache.stripes).toEqual([]);
    unplug(world);
    await expect(read(world, client)).rejects.toMatchObject({ code: "NO_SOURCE" });
  });
});

describe("what is kept is worth what is fetched", () => {
  const planOf = (cache: FakeCache, key = KEY): string =>
    [...cache.stored.keys()].find((url) => url.endsWith(`plans/${key}@`))!;
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  const edited =
    (edit: (kept: { manifest: Record<string, unknown>; deployment: unknown }) => unknown) =>
    (kept: Uint8Array): Uint8Array => {
      const plan = JSON.parse(new TextDecoder().decode(kept));
      return text(JSON.stringify(edit(plan) ?? plan));
    };

  test.each<[string, (kept: Uint8Array) => Uint8Array]>([
    ["garbage", () => text("{garbage")],
    ["empty", () => text("")],
    ["null", () => text("null")],
    ["an object without parts", () => text("{}")],
    ["cut off", (kept) => kept.subarray(0, kept.length >> 1)],
    ["of an older format", () => text('{"pop":"p0","epoch":1,"version":"v","delta":1,"regions":[],"cached":[]}')],
    ["of another key", edited(({ manifest }) => void (manifest["key"] = "photos/dog.jpg"))],
    ["with other hashes", edited(({ manifest }) => void (manifest["hashes"] = ["AAAA"]))],
    ["of a newer format", edited(({ manifest }) => void (manifest["agarose"] = 99))],
    ["without a deployment", edited((kept) => void (kept.deployment = undefined))],
    ["of another deployment", edited((kept) => void (kept.deployment = ["https://elsewhere.test"]))],
  ])("a kept plan that is %s is dropped, and fetched and kept again", async (_, damage) => {
    const { world, cache, client } = await startWorld();
    await read(world, client);
    await world.clock.pass(0);
    const url = planOf(cache);
    const sound = cache.stored.get(url)!;
    cache.stored.set(url, damage(sound));
    unplug(world);
    await expect(read(world, restarted(world, cache)), "offline").rejects.toMatchObject({ code: "NO_SOURCE" });
    expect(cache.stored.has(url)).toBe(false);
    cache.stored.set(url, damage(sound));
    for (const pop of world.pops) pop.fault = "none";
    for (const region of world.regions) region.fault = "none";
    expect((await read(world, restarted(world, cache))).bytes, "online").toEqual(BYTES);
    unplug(world);
    expect((await read(world, restarted(world, cache))).bytes, "healed").toEqual(BYTES);
  });

  test("an object whose publisher's key is revoked is not served any more, and not kept", async () => {
    const { world, cache, client } = await startWorld();
    await read(world, client);
    await world.clock.pass(0);
    unplug(world);
    const trust = async (): Promise<never> => {
      throw new AgaroseError("MANIFEST_UNTRUSTED", "revoked");
    };
    const revoked = world.client({}, storeOn(cache, ROOM, { trust }));
    await expect(read(world, revoked)).rejects.toMatchObject({ code: "NO_SOURCE" });
    expect(cache.stripes).toEqual([]);
  });

  test("two apps of one origin see and touch nothing of each other", async () => {
    const { world, cache } = await startWorld();
    const appOf = (owner: string): ObjectClient => world.client({}, storeOn(cache, ROOM, { owner }));
    await read(world, appOf("a/"));
    await read(world, appOf("a/b/"));
    const count = cache.stripes.length;
    expect(count).toBe(6);
    await appOf("a/b/").purge(() => true);
    expect(cache.stripes.length).toBe(3);
    unplug(world);
    await expect(read(world, appOf("b/"))).rejects.toMatchObject({ code: "NO_SOURCE" });
    await expect(read(world, appOf("a/b/"))).rejects.toMatchObject({ code: "NO_SOURCE" });
    expect((await read(world, appOf("a/"))).bytes).toEqual(BYTES);
  });

  test.each(["{garbage", "null", "7", '[["plans/x@"],null,[1,2],["stripes/y",-5],"s"]', ""])(
    "an index that is %j is an empty one, not the end of the store",
    async (damaged) => {
      const { world, cache, client } = await startWorld();
      await read(world, client);
      await world.clock.pass(0);
      const index = [...cache.stored.keys()].find((url) => url.endsWith("/index"))!;
      cache.stored.set(index, text(damaged));
      const next = restarted(world, cache);
      expect((await read(world, next)).bytes).toEqual(BYTES);
      await world.clock.pass(0);
      unplug(world);
      expect((await read(world, restarted(world, cache))).bytes, "kept again").toEqual(BYTES);
    },
  );

  test("a stripe that is cut off, missing or of another object is fetched again", async () => {
    for (const damage of ["cut", "missing", "other"] as const) {
      const { world, cache, client } = await startWorld();
      await read(world, client);
      await world.clock.pass(0);
      const [first, second] = cache.stripes as [string, string];
      if (damage === "cut") cache.stored.set(first, cache.stored.get(first)!.subarray(0, 100));
      if (damage === "missing") cache.stored.delete(first);
      if (damage === "other") cache.stored.set(first, cache.stored.get(second)!);
      const next = restarted(world, cache);
      expect((await read(world, next)).bytes, damage).toEqual(BYTES);
      await world.clock.pass(0);
      unplug(world);
      expect((await read(world, restarted(world, cache))).bytes, `${damage}, healed`).toEqual(BYTES);
    }
  });
});

describe("the bound", () => {
  test("the least recently used go first, and all that is kept stays below it", async () => {
    const cache = new FakeCache();
    const entries = new OfflineEntries(async () => cache as unknown as Cache, 300);
    for (const name of ["stripes/a", "stripes/b", "stripes/c"]) await entries.put(name, new Uint8Array(100));
    await entries.get("stripes/a");
    await entries.put("stripes/d", new Uint8Array(150));
    expect(["a", "b", "c", "d"].filter((name) => entries.has(`stripes/${name}`))).toEqual(["a", "d"]);
    await entries.put("stripes/e", new Uint8Array(301));
    expect(entries.has("stripes/e")).toBe(false);
  });

  test("holds after any sequence of reads, writes, restarts and refusals, and what is there is what was written", async () => {
    const operation = fc.record({
      what: fc.constantFrom("put", "get", "delete", "restart", "shrink"),
      name: fc.constantFrom("a", "b", "c", "d", "e"),
      bytes: fc.nat(150),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 60 }), async (operations) => {
        const cache = new FakeCache();
        const open = (): OfflineEntries => new OfflineEntries(async () => cache as unknown as Cache, 300);
        const written = new Map<string, Uint8Array>();
        let entries = open();
        for (const [i, { what, name, bytes }] of operations.entries()) {
          const full = `stripes/${name}`;
          if (what === "put") {
            written.set(full, new Uint8Array(bytes).fill(i));
            await entries.put(full, written.get(full)!);
          }
          if (what === "get") {
            const found = await entries.get(full);
            if (found) expect(found).toEqual(written.get(full));
          }
          if (what === "delete") {
            await entries.deleteWhere((other) => other === full);
            expect([entries.has(full), await entries.get(full)]).toEqual([false, undefined]);
          }
          if (what === "restart") entries = open();
          if (what === "shrink") cache.quotaBytes = 200 + 2 * bytes;
          expect(cache.stripeBytes).toBeLessThanOrEqual(300);
        }
      }),
    );
  });
});

test.each([null, 5, {}, { bytes: 0 }, { bytes: 1.5 }, { bytes: "many" }])("offline: %j is refused", (offline) => {
  const config = parseConfig(
    { pops: [{ name: "p", url: "https://p.test" }], unsigned: true, offline },
    "https://app.test/",
  );
  expect(() => offlineStore(config)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});

test("without the field nothing is kept", () => {
  const config = parseConfig({ pops: [{ name: "p", url: "https://p.test" }], unsigned: true }, "https://app.test/");
  expect(offlineStore(config)).toBeUndefined();
});
