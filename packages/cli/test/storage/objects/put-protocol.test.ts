/** Puts that run at the same time, and while regions fail: nothing acknowledged is lost, nothing hangs. */
import { randomBytes } from "node:crypto";
import { systemClock } from "@agarose/core";
import { LEAF_LIST } from "@agarose/core/format";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { claimName } from "@agarose/storage/commit/names";
import { recordedClock } from "../../recorded-clock.ts";
import { chunkPlace, manifestName, REGIONS, startTestWorld, type Fault, type World } from "../../world.ts";

let world: World;
let key: string;

beforeAll(async () => {
  world = await startTestWorld();
});

beforeEach(() => {
  key = `protocol/${randomBytes(4).toString("hex")}`;
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

/** Answers writes of names that begin with `prefix` with a status. */
const refuse =
  (prefix: string, status = 500): Fault =>
  (request, response, name) => {
    if (request.method !== "PUT" || !name.startsWith(prefix)) return false;
    request.resume();
    response.writeHead(status).end();
    return true;
  };

/** Takes every request and never answers. */
const HANGS: Fault = (request) => {
  request.resume();
  return true;
};

const manifestIn = async (region: string): Promise<Record<string, any>> =>
  JSON.parse((await world.read(region, manifestName(key))).toString()) as Record<string, any>;

const generations = async (): Promise<(number | undefined)[]> =>
  Promise.all(
    REGIONS.map((region) =>
      manifestIn(region).then(
        ({ generation }) => generation as number,
        () => undefined,
      ),
    ),
  );

describe("a put that is repeated", () => {
  test("after a put whose manifest reached too few regions stores in every region", async () => {
    await world.put(key, Buffer.from("one"));
    for (const region of REGIONS.slice(1)) world.faults.set(region, refuse("manifests/", 400));
    await expect(world.put(key, Buffer.from("two"))).rejects.toMatchObject({
      code: "STORE_FAILED",
      details: { written: 1, needed: 4 },
    });
    expect(world.fired.get("sydney")).toBeGreaterThan(0);
    world.faults.clear();
    // Undone where it was written.
    expect(await generations()).toEqual([1, 1, 1, 1, 1, 1]);
    const again = await world.put(key, Buffer.from("two"));
    expect(again).toMatchObject({ outcome: "stored", regionsWithoutManifest: [] });
    expect(new Set(await generations()).size).toBe(1);
    expect((await world.get(key)).toString()).toBe("two");
  });

  test("completes the regions that lack its manifest, and uploads nothing", async () => {
    const first = await world.put(key, Buffer.from("same"));
    const old = await world.read("dublin", manifestName(key));
    await world.tamper("tokyo", manifestName(key), () => undefined);
    const chunks = await world.names("chunks/");
    expect(await world.put(key, Buffer.from("same"))).toEqual({ ...first, outcome: "completed" });
    expect((await world.read("tokyo", manifestName(key))).equals(old)).toBe(true);
    expect(await world.names("chunks/")).toEqual(chunks);
  });

  test("of a version that only a minority holds gives it a generation of its own", async () => {
    const first = await world.put(key, Buffer.from("same"));
    for (const region of REGIONS.slice(2)) await world.tamper(region, manifestName(key), () => undefined);
    const again = await world.put(key, Buffer.from("same"));
    expect(again).toMatchObject({ outcome: "completed", upload: first.upload, generation: 2 });
    expect(await generations()).toEqual([2, 2, 2, 2, 2, 2]);
  });

  test("of the version before the newest stores it, though one region still has it", async () => {
    await world.put(key, Buffer.from("A"));
    const a = await world.read("frankfurt", manifestName(key));
    await world.put(key, Buffer.from("B"));
    await world.tamper("frankfurt", manifestName(key), () => a);
    expect(await world.put(key, Buffer.from("A"))).toMatchObject({ outcome: "stored", generation: 3 });
    expect(await generations()).toEqual([3, 3, 3, 3, 3, 3]);
  });

  test("whose chunks are gone stores them again", async () => {
    const body = randomBytes(100);
    const first = await world.put(key, body);
    await world.tamper(...chunkPlace(first, 2), () => undefined);
    expect(await world.put(key, body)).toMatchObject({ outcome: "stored", generation: 2 });
    expect(await world.verify(key)).toMatchObject({ sound: true });
  });

  test("while a region does not answer names it, and leaves it to a repair, instead of calling it unchanged", async () => {
    const { generation } = await world.put(key, Buffer.from("same"));
    const silent = (request: { destroy(): unknown }): boolean => Boolean(request.destroy());
    world.faults.set("paulo", silent);
    const again = await world.put(key, Buffer.from("same"));
    expect(world.fired.get("paulo")).toBeGreaterThan(0);
    expect(again).toMatchObject({ outcome: "kept", regionsWithoutManifest: [{ region: "paulo" }] });
    const entry = JSON.parse((await world.read("dublin", `repairs/${key}!`)).toString());
    expect(entry).toEqual({ key, generation, missing: [], regions: ["paulo"] });
  });

  test("does not call unchanged what it did not ask, because the region hung shortly before", async () => {
    await world.put(key, Buffer.from("same"));
    const breaker = new Breaker(systemClock);
    breaker.open("tokyo");
    const again = await world.put(key, Buffer.from("same"), { breaker });
    expect(again).toMatchObject({ outcome: "kept", regionsWithoutManifest: [{ region: "tokyo" }] });
    expect(await world.put(key, Buffer.from("same"))).toMatchObject({
      outcome: "unchanged",
      regionsWithoutManifest: [],
    });
  });
});

describe("order", () => {
  test("a put by a clock that is an hour behind still wins over what was there", async () => {
    await world.put(key, Buffer.from("old"), { nowMs: () => Date.now() + 3_600_000 });
    world.faults.set("tokyo", refuse("manifests/"));
    await world.put(key, Buffer.from("NEW"));
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    world.faults.clear();
    const [before, after] = [await manifestIn("tokyo"), await manifestIn("dublin")];
    expect([before["generation"], after["generation"]]).toEqual([1, 2]);
    expect(Date.parse(after["modified"])).toBe(Date.parse(before["modified"]) + 1);
  });

  test("two puts at once leave one version in every region, and a loser says so", async () => {
    for (let round = 0; round < 3; round++) {
      const bodies = ["A", "B", "C"].map((name) => Buffer.from(`${name}${round}`));
      const results = await Promise.allSettled(bodies.map((body) => world.put(key, body)));
      const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason.code] : []));
      expect(failures.every((code) => code === "REPLACED_MEANWHILE")).toBe(true);
      expect(failures.length).toBeLessThan(3);
      const uploads = await Promise.all(REGIONS.map(async (region) => (await manifestIn(region))["upload"]));
      expect(new Set(uploads).size).toBe(1);
      const stored = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
      expect(new Set(stored.map(({ generation }) => generation)).size).toBe(stored.length);
      expect(stored.map(({ upload }) => upload)).toContain(uploads[0]);
      // Those of writers that lost go by `gc`.
      const claimed = (await world.names(`claims/${key}!`)).map((name) => Number(name.split("!")[1]));
      for (const { generation } of stored) expect(claimed).not.toContain(generation);
      expect(await world.verify(key)).toMatchObject({ sound: true });
    }
  });

  test("ignores the claim of a writer that died", async () => {
    await world.put(key, Buffer.from("one"));
    for (const { put } of world.stores.map((store) => ({ put: store.put.bind(store) }))) {
      await put(claimName(key, 2), Buffer.from(`{"upload":"dead"}`), { bytes: 17, contentType: "application/json" });
    }
    expect(await world.put(key, Buffer.from("two"))).toMatchObject({ outcome: "stored", generation: 3 });
  });

  test("with a condition withdraws its claim when it is refused, so that it holds up no later one", async () => {
    await world.put(key, Buffer.from("one"));
    const claim = Buffer.from(`{"upload":"dead"}`);
    const options = { bytes: claim.length, contentType: "application/json" };
    for (const region of REGIONS) await world.store(region).put(claimName(key, 2), claim, options);
    const put = (text: string) => world.put(key, Buffer.from(text), { onlyIf: () => {} });
    await expect(put("two")).rejects.toMatchObject({ code: "REPLACED_MEANWHILE" });
    const left = (await world.names(`claims/${key}!`)).filter((name) => name.endsWith("!3"));
    expect(left.length, "the refused writer had a claim").toBeGreaterThan(REGIONS.length / 2);
    const ended = Buffer.from(`{"upload":"dead","withdrawn":true}`);
    const again = { ...options, bytes: ended.length };
    for (const region of REGIONS) await world.store(region).put(claimName(key, 2), ended, again);
    expect(await put("three")).toMatchObject({ outcome: "stored" });
    expect((await world.get(key)).toString()).toBe("three");
  });

  test("ignores claims that no writer can have made, such as a bucket's owner plants", async () => {
    await world.put(key, Buffer.from("one"));
    const claim = Buffer.from(`{"upload":"dead"}`);
    const options = { bytes: claim.length, contentType: "application/json" };
    for (const region of REGIONS) await world.store(region).put(claimName(key, 2), claim, options);
    for (const generation of ["9007199254740990", "9007199254740991", "abc", "-1", "1e400"]) {
      await world.store("tokyo").put(claimName(key, generation as never), claim, options);
    }
    expect(await world.put(key, Buffer.from("two"))).toMatchObject({ outcome: "stored", generation: 3 });
    expect((await world.get(key)).toString()).toBe("two");
  });

  test("a claim far ahead that a bucket's owner plants neither fails a put nor makes it remove a million names", async () => {
    await world.put(key, Buffer.from("one"));
    const claim = Buffer.from(`{"upload":"dead"}`);
    const options = { bytes: claim.length, contentType: "application/json" };
    for (const region of REGIONS) await world.store(region).put(claimName(key, 2), claim, options);
    await world.store("tokyo").put(claimName(key, 1_000_001), claim, options);
    let removals = 0;
    world.faults.set("dublin", (request) => {
      if (request.method === "POST") removals++;
      return false;
    });
    expect(await world.put(key, Buffer.from("two"))).toMatchObject({ outcome: "stored", generation: 1_000_002 });
    expect(removals).toBe(1);
    expect((await world.get(key)).toString()).toBe("two");
    const left = (await world.names(`claims/${key}!`)).filter((name) => name.startsWith("tokyo/"));
    expect(left).toEqual([`tokyo/claims/${key}!1000001`, `tokyo/claims/${key}!2`]);
  });
});

describe("regions that fail", () => {
  test("a region that refuses chunks leaves the put stored, the chunk missing and an entry in the queue", async () => {
    world.faults.set("tokyo", refuse("chunks/"));
    const body = randomBytes(5000);
    const put = await world.put(key, body);
    expect(world.fired.get("tokyo")).toBe(3);
    expect(put).toMatchObject({ outcome: "stored", missing: [4], regionsWithoutManifest: [] });
    expect(await manifestIn("dublin")).toMatchObject({ missing: [4] });
    expect(JSON.parse((await world.read("dublin", `repairs/${key}!`)).toString())).toEqual({
      key,
      generation: put.generation,
      missing: [4],
      regions: [],
    });
    expect((await world.get(key)).equals(body)).toBe(true);
  });

  test("more regions that refuse chunks than the promise allows fail the put", async () => {
    const old = randomBytes(100);
    await world.put(key, old);
    for (const region of ["tokyo", "dublin", "paulo"]) world.faults.set(region, refuse("chunks/"));
    await expect(world.put(key, randomBytes(100))).rejects.toMatchObject({
      code: "STORE_FAILED",
      details: { regions: expect.arrayContaining(["tokyo", "dublin", "paulo"]) },
    });
    expect(world.fired.size).toBe(3);
    expect((await world.get(key)).equals(old)).toBe(true);
  });

  test("write.happy asks for more chunks than the promise does", async () => {
    world.faults.set("tokyo", refuse("chunks/"));
    const config = { ...world.config, write: { happy: 6 } };
    await expect(world.put(key, randomBytes(100), { config })).rejects.toMatchObject({ code: "STORE_FAILED" });
    expect(world.fired.get("tokyo")).toBe(3);
  });

  test.each([500, 502, 503, 504])(
    "a write of the manifest that is answered by %i may have been executed, so it is uncertain",
    async (status) => {
      await world.put(key, Buffer.from("one"));
      for (const region of REGIONS.slice(2)) world.faults.set(region, refuse("manifests/", status));
      await expect(world.put(key, Buffer.from("two"))).rejects.toMatchObject({
        code: "WRITE_UNCERTAIN",
        details: { written: 2, needed: 4, regions: REGIONS.slice(2) },
      });
      expect(world.fired.get("sydney")).toBeGreaterThan(0);
      world.faults.clear();
      expect(await world.put(key, Buffer.from("two"))).toMatchObject({ outcome: "completed" });
    },
  );

  test("a claim that a region cannot read is no claim of another writer", async () => {
    await world.put(key, Buffer.from("one"));
    const claim = Buffer.from(`{"upload":"dead"}`);
    const options = { bytes: claim.length, contentType: "application/json" };
    for (const region of REGIONS) await world.store(region).put(claimName(key, 2), claim, options);
    for (const region of REGIONS.slice(2)) {
      world.faults.set(region, (request, response, name) => {
        if (request.method !== "GET" || !name.startsWith("claims/")) return false;
        response.writeHead(503).end();
        return true;
      });
    }
    await expect(world.put(key, Buffer.from("two"))).rejects.toMatchObject({ code: "NO_QUORUM" });
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  });

  test("without a majority nothing is written", async () => {
    for (const region of REGIONS.slice(0, 3)) world.faults.set(region, (request) => !!request.destroy());
    await expect(world.put(key, randomBytes(100))).rejects.toMatchObject({ code: "NO_QUORUM" });
    expect(world.fired.size).toBe(3);
    world.faults.clear();
    expect((await world.names()).filter((name) => name.includes(key))).toEqual([]);
  });

  test.each([
    ["of one stripe", 1_000_000, 4_000_000],
    ["of many stripes", 1_000_000, 30_000],
  ])(
    "a region that hangs holds a put of 1 MB %s for less than 5 s, and the next one not at all",
    async (_, bytes, stripe) => {
      world.faults.set("virginia", HANGS);
      const { clock, waitedMs } = recordedClock();
      const breaker = new Breaker(clock);
      const config = { ...world.config, stripeBytes: stripe };
      const put = await world.put(key, randomBytes(bytes), { config, clock, breaker });
      expect(put).toMatchObject({ missing: [2], regionsWithoutManifest: [{ region: "virginia" }] });
      expect(world.fired.get("virginia")).toBeGreaterThan(0);
      expect(waitedMs()).toBeGreaterThan(0);
      expect(waitedMs()).toBeLessThan(5_000);
      const before = waitedMs();
      world.fired.clear();
      await world.put(`${key}/next`, randomBytes(bytes), { config, clock, breaker });
      expect(waitedMs() - before).toBe(0);
      expect(world.fired.get("virginia")).toBeUndefined();
    },
  );

  test("one request that hangs is sent once more while its region answers others", async () => {
    let hung: string | undefined;
    const tries: string[] = [];
    world.faults.set("tokyo", (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith(`chunks/${key}!`)) return false;
      tries.push(name);
      if (hung !== undefined) return false;
      hung = name;
      request.resume();
      return true;
    });
    const breaker = new Breaker(systemClock);
    const over = new AbortController();
    const late = world.put(key, randomBytes(1_000), { breaker }).finally(() => over.abort());
    for (let other = 0; !over.signal.aborted; other++) {
      expect(await world.put(`${key}/${other}`, randomBytes(1_000), { breaker })).toMatchObject({ missing: [] });
    }
    expect(await late).toMatchObject({ missing: [], regionsWithoutManifest: [] });
    expect(tries.filter((name) => name === hung)).toHaveLength(2);
  });

  test.each([
    ["of one stripe", 4_000_000],
    ["of many stripes", 300_000],
  ])("the leaf list of an object %s is on its way while a far region takes its chunks", async (_, stripeBytes) => {
    const listed = Promise.withResolvers<void>();
    let held = 0;
    world.faults.set("dublin", (_request, _response, name) => {
      if (name.endsWith(`/${LEAF_LIST}`)) listed.resolve();
      return false;
    });
    world.faults.set("tokyo", async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/") || name.endsWith(`/${LEAF_LIST}`)) return false;
      held++;
      await listed.promise;
      return false;
    });
    const { clock, waitedMs } = recordedClock();
    const config = { ...world.config, stripeBytes };
    expect(await world.put(key, randomBytes(1_000_000), { config, clock })).toMatchObject({ missing: [] });
    expect(held).toBeGreaterThan(0);
    expect(waitedMs()).toBe(0);
    expect(await world.verify(key)).toMatchObject({ sound: true });
  });

  describe("whose chunks a cleaner takes before the manifest is written", () => {
    let removed: number;
    /** After the removal, these regions take no chunk. */
    let refusing: readonly string[];

    beforeEach(() => {
      removed = 0;
      refusing = [];
      for (const region of REGIONS) {
        world.faults.set(region, async (request, response, name) => {
          if (removed > 0) return refusing.includes(region) && refuse("chunks/")(request, response, name);
          if (request.method !== "PUT" || !name.startsWith("manifests/")) return false;
          removed++;
          for (const store of world.stores) {
            const names = [];
            for await (const listed of store.list(`chunks/${key}!`)) names.push(listed.name);
            if (names.length > 0) await store.remove(names);
          }
          return false;
        });
      }
    });
    afterEach(() => expect(removed).toBe(1));

    test("uploads them again", async () => {
      expect(await world.put(key, randomBytes(5000))).toMatchObject({ outcome: "stored", missing: [] });
      world.faults.clear();
      expect(await world.verify(key)).toMatchObject({ sound: true });
    });

    test("says which one a region does not take again, and leaves it to a repair", async () => {
      refusing = ["virginia"];
      const content = randomBytes(5000);
      const { missing } = await world.put(key, content);
      expect(missing).toHaveLength(1);
      expect(world.fired.get("virginia")).toBeGreaterThan(0);
      world.faults.clear();
      expect((await world.get(key)).equals(content)).toBe(true);
    });

    test("is uncertain when too few of them are stored again, because its manifest is committed", async () => {
      refusing = REGIONS;
      await expect(world.put(key, randomBytes(5000))).rejects.toMatchObject({ code: "WRITE_UNCERTAIN" });
    });
  });
});
