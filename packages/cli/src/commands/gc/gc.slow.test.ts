import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgaroseError } from "@agarose/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CLOCK_PREFIX, claimName, garbageName, GARBAGE_PREFIX } from "@agarose/storage/commit/names";
import { removeObject } from "@agarose/storage/objects/remove-object";
import type { ListedObject, Store } from "@agarose/storage/buckets/store";
import { collectGarbage } from "@agarose/storage/maintenance/gc/collect-garbage";
import type { GarbageReport, GarbageUpload } from "@agarose/storage/maintenance/gc/search";
import { heapInUse } from "../../../test/heap.ts";
import { keyGroups } from "@agarose/storage/listing/key-groups";
import { DOWN, manifestName, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

/** The name of what a killed run left. */
const LEFT_PROBE = `${CLOCK_PREFIX}left`;
const HOUR_MS = 3_600_000;
const { signal } = new AbortController();
let world: World;
beforeEach(async () => {
  world = await startTestWorld();
});
afterEach(() => world.close());

/** A run of gc, as if everything, or what has names of `aged`, had been stored `hours` earlier. */
const gc = async (
  hours = 0,
  removes = true,
  prefix = "",
  nowMs = Date.now,
  aged = "",
  forgets = false,
): Promise<Found> => {
  const stores = world.stores.map((store) => olderBy(hours * HOUR_MS, store, aged));
  const uploads: GarbageUpload[] = [];
  const onUpload = (upload: GarbageUpload): unknown => uploads.push(upload);
  const search = { prefix, removes, olderThanMs: 24 * HOUR_MS, onUpload, forgets };
  const report = await collectGarbage(search, world.parts({ stores, nowMs }));
  expect(report.found).toBe(uploads.length);
  return { ...report, uploads };
};

type Found = GarbageReport & { readonly uploads: readonly GarbageUpload[] };

/** A store that lists all but a run's own probes of its clock as older than they are. */
function olderBy(ms: number, store: Store, aged: string): Store {
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(target, property, target) as unknown;
      if (property === "list") {
        return async function* (...args: Parameters<Store["list"]>) {
          for await (const object of target.list(...args)) {
            const isProbe = object.name.startsWith(CLOCK_PREFIX) && object.name !== LEFT_PROBE;
            yield isProbe || !object.name.startsWith(aged) ? object : { ...object, modifiedMs: object.modifiedMs - ms };
          }
        };
      }
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

const states = ({ uploads }: Found): string[] => uploads.map(({ key, state }) => `${key} ${state}`).toSorted();
const body = (): Buffer => randomBytes(5_000);
const chunks = async (): Promise<string[]> => (await world.names("chunks/")).toSorted();

/** A put whose manifests no region takes, so that its chunks stay behind. */
async function failedPut(key: string, content = body()): Promise<string[]> {
  const before = new Set(await chunks());
  for (const region of REGIONS) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("manifests/")) return false;
      response.writeHead(403).end();
      return true;
    });
  }
  await expect(world.put(key, content)).rejects.toMatchObject({ code: "STORE_FAILED" });
  world.faults.clear();
  expect(world.fired.get(REGIONS[0])).toBeGreaterThan(0);
  return (await chunks()).filter((name) => !before.has(name));
}

test("chunks of puts that failed and of versions that were replaced are garbage, and nothing else is", async () => {
  await world.put("kept/ü & x.bin", body());
  await world.put("kept/two.bin", body());
  await world.put("kept/two.bin", body());
  expect(await failedPut("kept/failed.bin")).toHaveLength(6);
  const before = await world.names();
  const found = await gc(0, false);
  expect(states(found)).toEqual(["kept/failed.bin unmarked", "kept/two.bin unmarked"]);
  expect(found).toMatchObject({ bytes: 15_000, skipped: [], leftovers: [] });
  expect(states(await gc(0, false, "kept/failed"))).toEqual(["kept/failed.bin unmarked"]);
  expect(states(await gc(0, false, "elsewhere/"))).toEqual([]);
  expect(await world.names()).toEqual(before);
});

test("what is found is marked first, and deleted by a run a day later", async () => {
  await world.put("page", body());
  const kept = await chunks();
  await failedPut("failed.bin");
  expect(states(await gc())).toEqual(["failed.bin marked"]);
  expect(await world.names("garbage/")).toHaveLength(6);
  expect(states(await gc(23))).toEqual(["failed.bin waiting"]);
  expect(await chunks()).toHaveLength(12);
  expect(states(await gc(25))).toEqual(["failed.bin removed"]);
  expect(await chunks()).toEqual(kept);
  expect(await world.names("garbage/")).toEqual([]);
});

test("a version that was replaced a moment ago survives a run, however old its chunks are", async () => {
  const old = await world.put("page", body());
  await world.put("page", body());
  expect(states(await gc(1000))).toEqual(["page marked"]);
  // A day counts from the mark.
  expect(states(await gc(1000, true, "", Date.now, "chunks/"))).toEqual(["page waiting"]);
  expect((await chunks()).filter((name) => name.includes(old.upload))).toHaveLength(6);
});

test("a region that lists an old mark which it never got does not end the wait of the others", async () => {
  const { upload } = await world.put("page", body());
  await world.put("page", body());
  const options = { bytes: 2, contentType: "application/json" };
  await world.store("tokyo").put(garbageName("page", upload, "second"), Buffer.from("{}"), options);
  expect(states(await gc(1000, true, "", Date.now, GARBAGE_PREFIX))).toEqual(["page marked"]);
  expect((await chunks()).filter((name) => name.includes(upload))).toHaveLength(6);
  expect(states(await gc(25))).toEqual(["page removed"]);
  expect((await chunks()).filter((name) => name.includes(upload))).toEqual([]);
});

test("a put in the middle of a run keeps its chunks, whatever was garbage before", async () => {
  const content = body();
  await failedPut("page", content);
  await gc();
  let stored: Promise<unknown> | undefined;
  world.faults.set(REGIONS[0], (request, _response, name) => {
    if (request.method === "GET" && name === manifestName("page")) stored ??= world.put("page", content);
    return false;
  });
  expect(states(await gc(25))).toEqual(["page removed"]);
  expect(stored).toBeDefined();
  await stored;
  expect((await world.get("page")).equals(content)).toBe(true);
  expect(await world.verify("page")).toMatchObject({ sound: true });
});

test("a put that runs for longer than its mark has to wait keeps its chunks", async () => {
  const arrived = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || name !== manifestName("page")) return false;
      arrived.resolve();
      await go.promise;
      return false;
    });
  }
  const content = body();
  const stored = world.put("page", content);
  await arrived.promise;
  expect(states(await gc(0))).toEqual(["page marked"]);
  const young = await gc(25, true, "", Date.now, GARBAGE_PREFIX);
  go.resolve();
  await stored;
  expect(states(young)).toEqual(["page waiting"]);
  expect(await world.verify("page")).toMatchObject({ sound: true });
  expect((await world.get("page")).equals(content)).toBe(true);
  expect(await gc(25)).toMatchObject({ found: 0 });
  expect(await world.names("garbage/")).toEqual([]);
});

test("a version that a put committed after its mark waits a day from the run that finds it replaced", async () => {
  const put = await world.put("page", body());
  const manifest = await world.read("tokyo", manifestName("page"));
  for (const region of REGIONS) await world.tamper(region, manifestName("page"), () => undefined);
  expect(states(await gc()), "its put is under way").toEqual(["page marked"]);
  const options = { bytes: manifest.length, contentType: "application/json" };
  for (const region of REGIONS) await world.store(region).put(manifestName("page"), manifest, options);
  await world.put("page", body());
  expect(states(await gc(25)), "replaced a moment ago").toEqual(["page waiting"]);
  expect((await chunks()).filter((name) => name.includes(put.upload))).toHaveLength(6);
  await world.put("page", body());
  expect(states(await gc(23))).toEqual(["page marked", "page waiting"]);
  expect(states(await gc(25)), "however often the object changes").toEqual(["page removed", "page removed"]);
  expect(await world.names("garbage/")).toEqual([]);
});

test("an upload that is named again loses its mark", async () => {
  const put = await world.put("page", body());
  const manifest = await world.read("tokyo", manifestName("page"));
  for (const region of REGIONS) await world.tamper(region, manifestName("page"), () => undefined);
  expect(states(await gc())).toEqual(["page marked"]);
  const options = { bytes: manifest.length, contentType: "application/json" };
  await world.store("tokyo").put(manifestName("page"), manifest, options);
  expect(states(await gc(25))).toEqual([]);
  expect(await world.names("garbage/")).toEqual([]);
  expect((await chunks()).filter((name) => name.includes(put.upload))).toHaveLength(6);
});

test("a region that cannot be listed ends the run, and a manifest that cannot be read spares its key", async () => {
  await failedPut("lost.bin");
  await world.put("page", body());
  await world.put("page", body());
  await gc();
  world.faults.set(REGIONS[2], DOWN);
  await expect(gc(25)).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(world.fired.get(REGIONS[2])).toBeGreaterThan(0);
  world.fired.clear();
  world.faults.set(REGIONS[2], (request, response) => request.method === "GET" && DOWN(request, response, ""));
  await expect(gc(25)).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(world.fired.get(REGIONS[2])).toBeGreaterThan(0);
  world.faults.clear();
  await world.tamper(REGIONS[3], manifestName("page"), (bytes) => bytes.subarray(0, 100));
  const report = await gc(25);
  expect(states(report)).toEqual(["lost.bin removed"]);
  expect(report.skipped).toMatchObject([{ key: "page", problem: expect.stringContaining(REGIONS[3]) }]);
  expect(await chunks()).toHaveLength(12);
});

test("a clock that is wrong, of this machine or of a region, stops a run before it marks or deletes", async () => {
  await failedPut("failed.bin");
  await gc();
  const before = await world.names();
  for (const hours of [30, -30, 0.1]) {
    const error = await gc(0, true, "", () => Date.now() + hours * HOUR_MS).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "CLOCKS_DISAGREE",
      message: expect.stringMatching(/is \d+ s ahead of that of .*, at most 300 s are allowed/),
      details: { skewMsMax: 300_000 },
    });
    const { skewMs } = (error as AgaroseError).details as { skewMs: number };
    expect(Math.abs(skewMs - Math.abs(hours) * HOUR_MS)).toBeLessThan(60_000);
  }
  expect(await world.names()).toEqual(before);
});

test("probes that killed runs left are removed after an hour", async () => {
  const left = world.stores.map(async (store) => {
    await store.put(LEFT_PROBE, Buffer.from("{}"), { bytes: 2, contentType: "application/json" });
  });
  await Promise.all(left);
  await gc(0.5);
  expect(await world.names(CLOCK_PREFIX)).toHaveLength(6);
  await gc(2);
  expect(await world.names()).toEqual([]);
});

test("what cannot be removed is reported and tried again", async () => {
  await failedPut("failed.bin");
  await gc();
  world.faults.set(REGIONS[0], (request, response) => {
    if (request.method !== "POST") return false;
    response.writeHead(403).end();
    return true;
  });
  const partly = await gc(25);
  expect(partly.leftovers.map(({ region }) => region)).toContain(REGIONS[0]);
  expect(states(partly)).toEqual(["failed.bin left"]);
  world.faults.clear();
  expect(states(await gc(26))).toEqual(["failed.bin removed"]);
  expect(await chunks()).toEqual([]);
});

test("claims to generations that are passed go after two hours, and those of a put under way stay", async () => {
  await world.put("page", body());
  for (const generation of [1, 2]) {
    for (const store of world.stores) {
      await store.put(claimName("page", generation), Buffer.from("{}"), { bytes: 2, contentType: "application/json" });
    }
  }
  expect(await gc(1.9)).toMatchObject({ claimsRemoved: 0 });
  expect(await gc(2)).toMatchObject({ claimsRemoved: 6 });
  expect(await world.names("claims/")).toEqual(REGIONS.map((region) => `${region}/claims/page!2`));
});

test("where asked for, tombstones go after 30 days, once nothing of the object is left", async () => {
  const forget = (days: number): Promise<Found> => gc(24 * days, true, "", Date.now, "", true);
  await world.put("page", body());
  await removeObject("page", world.parts());
  expect(await forget(29)).toMatchObject({ tombstonesRemoved: 0 });
  expect(await forget(31)).toMatchObject({ tombstonesRemoved: 1 });
  expect(await world.names()).toEqual([]);
});

test("a removed key keeps its order for ever, so an old signed manifest never comes before a later put", async () => {
  const name = manifestName("page");
  const [hostile] = world.stores;
  await world.put("page", Buffer.from("old"));
  await world.put("page", Buffer.from("older than what comes"));
  const { body: kept } = await hostile!.get(name);
  const replayed = Buffer.from(await new Response(kept as BodyInit).arrayBuffer());
  await removeObject("page", world.parts());
  // The chunks of the first put are marked, then deleted, and then nothing but the tombstone is left.
  for (let run = 0; run < 3; run++) await gc(24 * 365);
  expect(await chunks()).toEqual([]);
  expect(await world.put("page", Buffer.from("new"))).toMatchObject({ generation: 4 });
  await hostile!.put(name, replayed, { bytes: replayed.length, contentType: "application/json" });
  expect((await world.run(["repair", "page"])).code).toBe(0);
  const { body: mended } = await hostile!.get(name);
  expect(await new Response(mended as BodyInit).json()).toMatchObject({ generation: 4 });
});

test("the command lists without --delete, marks with it, and refuses too short a wait", async () => {
  await failedPut("failed.bin");
  const listed = await world.run(["gc", "--json"]);
  expect(listed.code).toBe(0);
  expect(JSON.parse(listed.stdout.toString())).toMatchObject({
    uploads: [{ key: "failed.bin", chunks: 6, bytes: 7_500, state: "unmarked" }],
    bytes: 7_500,
    leftovers: [],
  });
  expect((await world.run(["gc", "--delete"])).stdout.toString()).toMatch(/^marked +failed.bin/);
  expect(await chunks()).toHaveLength(6);
  expect((await world.run(["gc", "--older-than", "0"])).code).toBe(2);
});

test("a gc that was killed continues after its cursor, and reports what it had found before", async () => {
  const KEYS = Array.from({ length: 40 }, (_, index) => `killed/${String(index).padStart(3, "0")}`);
  for (const key of KEYS) await failedPut(key);
  const cursor = join(world.dir, "gc-cursor");
  const args = ["gc", "killed/", "--json-lines", "--cursor", cursor];
  for (const region of REGIONS) {
    world.faults.set(region, async (_request, _response, name) => {
      if (name.startsWith("manifests/")) await sleep(15);
      return false;
    });
  }
  const enough = Promise.withResolvers<void>();
  let printed = "";
  const killed = await world.spawn(args, {
    killWhen: enough.promise,
    killSignal: "SIGKILL",
    onStdout(part) {
      printed += part.toString();
      if (printed.split("\n").length > 20) enough.resolve();
    },
  });
  expect(killed.code).toBe(-1);
  const keysOf = (text: string): string[] =>
    text
      .slice(0, text.lastIndexOf("\n"))
      .split("\n")
      .flatMap((line) => (JSON.parse(line) as { key?: string }).key ?? []);
  const before = keysOf(printed);
  expect(before.length).toBeLessThan(KEYS.length);
  const again = await world.spawn(args);
  const after = keysOf(again.stdout.toString());
  expect(again.code, again.stderr).toBe(0);
  expect(after.length).toBeLessThan(KEYS.length);
  expect([...new Set([...before, ...after])].toSorted()).toEqual(KEYS);
  expect(JSON.parse(again.stdout.toString().trimEnd().split("\n").at(-1)!)).toMatchObject({ summary: { found: 40 } });
  // The walk has ended, so the next one is a new one. Another walk must not continue this one.
  expect(keysOf((await world.spawn(args)).stdout.toString())).toEqual(KEYS);
  await writeFile(cursor, JSON.stringify({ walk: "gc", after: "a", totals: {} }));
  expect((await world.run(args)).code).toBe(2);
});

test("an object whose regions list one manifest is cleared by one request", async () => {
  for (let i = 0; i < 10; i++) await world.put(`sound/${i}`, body());
  await failedPut("sound/5");
  let reads = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (_request, _response, name) => {
      if (name.startsWith("manifests/")) reads++;
      return false;
    });
  }
  // The put that failed has left a claim, which is a reason to ask every region.
  expect(states(await gc(0, false))).toEqual(["sound/5 unmarked"]);
  expect(reads).toBeGreaterThanOrEqual(9 + REGIONS.length);
  // On a busy machine a region may count as late, and five spares are asked.
  expect(reads).toBeLessThan(10 * REGIONS.length);
});

test("a region that hides what its manifest names makes gc delete nothing", async () => {
  const { upload } = await world.put("key", body());
  const other = await world.put("other", body());
  const lie = Buffer.from((await world.read("tokyo", manifestName("key"))).toString().replaceAll(upload, other.upload));
  for (const region of REGIONS) {
    world.faults.set(region, async (request, response, name) => {
      if (request.method !== "GET" || name !== manifestName("key") || region !== "tokyo") return false;
      response.writeHead(200, { "content-type": "application/json", "content-length": lie.length }).end(lie);
      return true;
    });
  }
  for (const hours of [0, 25, 50]) expect(states(await gc(hours))).toEqual([]);
  world.faults.clear();
  expect(await world.verify("key")).toMatchObject({ sound: true });
});

test("100,000 objects are searched in constant memory, and read only where there is more than one version", async () => {
  const OBJECTS = 100_000;
  let read = 0;
  const stores = REGIONS.map((region) => storeOf(region, OBJECTS, () => read++));
  const before = heapInUse();
  let most = 0;
  let keys = 0;
  for await (const group of keyGroups(stores, "", signal)) {
    if (++keys % 10_000 === 0) most = Math.max(most, heapInUse() - before);
    expect(group.manifests).toHaveLength(6);
  }
  expect(keys).toBe(OBJECTS);
  expect(most).toBeLessThan(20_000_000);
  const search = { prefix: "", removes: false, olderThanMs: 0, onUpload: () => {} };
  const report = await collectGarbage(search, world.parts({ stores }));
  // Every 1,000th has two.
  expect(read).toBe((OBJECTS / 1_000) * REGIONS.length);
  expect(report.skipped).toHaveLength(OBJECTS / 1_000);
});

test("uploads are reported while the search continues, so that memory does not grow with them", async () => {
  let listed = 0;
  const stores = REGIONS.map((name) => {
    const list = async function* (prefix: string): AsyncGenerator<ListedObject> {
      if (prefix !== "chunks/") return;
      for (let index = 0; index < 1_000; index++) {
        listed++;
        yield { name: `chunks/${String(index).padStart(4, "0")}!${"a".repeat(32)}/0`, bytes: 1, modifiedMs: 0 };
      }
    };
    const get = async () => ({ status: 404, headers: new Headers(), body: null });
    return { region: { name }, list, get } as unknown as Store;
  });
  const listedAtUpload: number[] = [];
  const onUpload = (): unknown => listedAtUpload.push(listed);
  const search = { prefix: "", removes: false, olderThanMs: 0, onUpload };
  const { found } = await collectGarbage(search, world.parts({ stores }));
  expect(found).toBe(1_000);
  // Up to 16 keys are looked at ahead.
  for (const [index, count] of listedAtUpload.entries())
    expect(count).toBeLessThanOrEqual((index + 2 + 16) * REGIONS.length);
});

/** A store of many objects that exist in its listings only. */
function storeOf(region: string, objects: number, onRead: () => void): Store {
  const names = function* (prefix: string): Generator<ListedObject> {
    for (let index = 0; index < objects; index++) {
      const key = String(index).padStart(7, "0");
      if (prefix === "manifests/") yield { name: `manifests/${key}!.json`, bytes: 40_000, modifiedMs: 0 };
      if (prefix !== "chunks/") continue;
      yield { name: `chunks/${key}!${"a".repeat(32)}/0`, bytes: 1, modifiedMs: 0 };
      if (index % 1_000 === 0) yield { name: `chunks/${key}!${"b".repeat(32)}/0`, bytes: 1, modifiedMs: 0 };
    }
  };
  return {
    region: { name: region },
    list: async function* (prefix: string) {
      yield* names(prefix);
    },
    get: async () => {
      onRead();
      return { status: 200, headers: new Headers(), body: new Blob(["{}"]).stream() };
    },
  } as unknown as Store;
}
