/** Objects whose files are gone, kept for the pages that are still open. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keyName } from "@agarose/core/format";
import { readManifest } from "@agarose/storage/objects/manifests";
import { syncFolder } from "@agarose/storage/sync/sync-folder";
import type { SyncOptions, SyncTotals } from "@agarose/storage/sync/sync-job";
import { DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const RECORD = "syncs/app/!";

let world: World;
let site: string;
/** How far this machine's clock, and so that of the regions, has come since the start. */
let days = 0;

beforeEach(async () => {
  days = 0;
  world = await startTestWorld();
  site = join(world.dir, "site");
  await write("index.html", "<h1>1");
  await write("old.js", "old");
});
afterEach(() => world.close());

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(site, path)), { recursive: true });
  await writeFile(join(site, path), content);
}
const remove = (path: string): Promise<void> => rm(join(site, path));

async function sync(options: SyncOptions = {}, from = site): Promise<{ outcomes: string[] } & SyncTotals> {
  const outcomes: string[] = [];
  const how = { delete: true, deleteAfter: WEEK_MS, confirm: () => {}, ...options };
  const parts = world.parts({ nowMs: () => Date.now() + days * DAY_MS });
  const totals = await syncFolder(
    { folder: from },
    { prefix: "app" },
    how,
    async (event) => void outcomes.push(`${event.outcome} ${event.key}`),
    parts,
  );
  return { outcomes: outcomes.toSorted(), ...totals };
}

const isThere = (key: string): Promise<boolean> =>
  readManifest(key, world.parts()).then(
    () => true,
    () => false,
  );

const notedIn = async (region: string): Promise<Record<string, number>> =>
  (JSON.parse((await world.read(region, RECORD)).toString()) as { absent: Record<string, number> }).absent;

test("an object goes once its file has been absent for so long, and not a day before", async () => {
  await sync();
  await remove("old.js");
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 1, unchanged: 1 });
  days = 6;
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 1 });
  expect(await isThere("app/old.js")).toBe(true);
  days = 7.01;
  expect(await sync({ dryRun: true })).toMatchObject({ outcomes: ["removed app/old.js"] });
  expect(await isThere("app/old.js")).toBe(true);
  expect(await sync()).toMatchObject({ outcomes: ["removed app/old.js"], waiting: 0 });
  expect(await isThere("app/old.js")).toBe(false);
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 0 });
  for (const region of REGIONS) expect(await notedIn(region)).toEqual({});
});

test("a file that comes back, also with the same content, is absent from anew when it goes again", async () => {
  await sync();
  await remove("old.js");
  await sync();
  days = 5;
  await write("old.js", "old");
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 0, unchanged: 2 });
  await remove("old.js");
  expect(await sync()).toMatchObject({ waiting: 1 });
  days = 10;
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 1 });
  days = 12.01;
  expect(await sync()).toMatchObject({ outcomes: ["removed app/old.js"] });
});

test("an object that somebody stores meanwhile stays for as long again", async () => {
  await sync();
  await remove("old.js");
  days = -30;
  await sync();
  days = 0;
  // Absent for thirty days by the records, and stored just now.
  await world.put("app/old.js", Buffer.from("by another"));
  expect(await sync()).toMatchObject({ outcomes: [], waiting: 1 });
});

test("the clock of a minority of the regions decides nothing, and one that was wrong makes nothing older", async () => {
  await sync();
  await remove("old.js");
  await sync();
  days = 30;
  const forged = Buffer.from(JSON.stringify({ absent: { "app/old.js": Date.now() + 400 * DAY_MS } }));
  for (const region of REGIONS.slice(0, 2)) await world.tamper(region, RECORD, () => forged);
  const old = Buffer.from(JSON.stringify({ absent: { "app/index.html": 1 } }));
  await remove("index.html");
  await write("new.html", "new");
  for (const region of REGIONS.slice(3)) {
    await world.tamper(region, RECORD, (bytes) => {
      const { absent } = JSON.parse(bytes.toString()) as { absent: object };
      return Buffer.from(
        JSON.stringify({ absent: { ...absent, ...(JSON.parse(old.toString()) as { absent: object }).absent } }),
      );
    });
  }
  // Four of six say that the one is due, and three that the other is.
  expect((await sync()).outcomes).toEqual(["removed app/old.js", "stored app/new.html"]);
  expect((await notedIn(REGIONS[0]))["app/old.js"]).toBeLessThan(Date.now() + 31 * DAY_MS);
});

test.each(["{", "[]", '{"absent": 7}', '{"absent": {"app/old.js": "1970"}}', "x".repeat(9_000_000)])(
  "a record that is something else (%.40s) counts as none, and is replaced unless it is too large",
  async (text) => {
    await sync();
    await remove("old.js");
    await sync();
    for (const region of REGIONS.slice(0, 3)) await world.tamper(region, RECORD, () => Buffer.from(text));
    days = 8;
    expect((await sync()).outcomes).toEqual([]);
    expect(await isThere("app/old.js")).toBe(true);
  },
);

test("regions that are down delay nothing while a majority answers, and else nothing is removed", async () => {
  await sync();
  await remove("old.js");
  await sync();
  days = 8;
  for (const region of REGIONS.slice(0, 3)) world.faults.set(region, DOWN);
  expect(await sync()).toMatchObject({ notRemoved: expect.any(String) });
  expect(world.fired.size).toBe(3);
  world.faults.delete(REGIONS[0]);
  expect(await sync()).toMatchObject({ outcomes: ["removed app/old.js"] });
});

test("of two syncs at once, the one that has the file keeps it, and the other removes nothing", async () => {
  await sync();
  await write("../full/index.html", "<h1>1");
  await write("../full/old.js", "old");
  await remove("old.js");
  await sync();
  days = 8;
  let other: Awaited<ReturnType<typeof sync>> | undefined;
  // The confirmation comes once the records are read, and before anything is removed.
  const confirm = async (): Promise<void> => {
    other = await sync({}, join(world.dir, "full"));
  };
  const late = await sync({ confirm });
  expect(other).toMatchObject({ unchanged: 2, waiting: 0 });
  expect(late).toMatchObject({ outcomes: [], notRemoved: expect.stringContaining("another sync") });
  expect(await isThere("app/old.js")).toBe(true);
});

test("a sync that has a file learns that another one has removed its object meanwhile", async () => {
  await sync();
  await write("../less/index.html", "<h1>1");
  await sync({}, join(world.dir, "less"));
  days = 8;
  const held = new Set<string>(REGIONS);
  const other = Promise.withResolvers<Awaited<ReturnType<typeof sync>>>();
  for (const region of REGIONS) {
    world.faults.set(region, async ({ method }, _response, name) => {
      if (method !== "PUT" || name !== RECORD || !held.delete(region)) return false;
      if (held.size === 0) sync({}, join(world.dir, "less")).then(other.resolve, other.reject);
      await other.promise;
      return false;
    });
  }
  expect(await sync()).toMatchObject({ notRemoved: expect.stringContaining("another sync") });
  expect((await other.promise).outcomes).toEqual(["removed app/old.js"]);
  expect((await sync()).outcomes).toEqual(["stored app/old.js"]);
});

test("an object that is stored between the look and the removal stays", async () => {
  await sync();
  await remove("old.js");
  await sync();
  days = 8;
  const confirm = async (): Promise<void> => void (await world.put("app/old.js", Buffer.from("newer")));
  expect(await sync({ confirm })).toMatchObject({ outcomes: [] });
  expect((await world.get("app/old.js")).toString()).toBe("newer");
});

test("a sync with other patterns leaves what it is not about as it was noted", async () => {
  await write("a.map", "map");
  await sync();
  await remove("a.map");
  await remove("old.js");
  await sync();
  const before = await notedIn(REGIONS[0]);
  expect(Object.keys(before)).toEqual(["app/a.map", "app/old.js"]);
  days = 4;
  await sync({ exclude: ["*.map"] });
  expect(await notedIn(REGIONS[0])).toEqual(before);
  days = 8;
  expect((await sync({ exclude: ["*.map"] })).outcomes).toEqual(["removed app/old.js"]);
  expect((await sync()).outcomes).toEqual(["removed app/a.map"]);
});

test("an interrupted sync has removed nothing early, and the next one goes on", async () => {
  await sync();
  await remove("old.js");
  await sync();
  days = 8;
  // The record is stored in no region: what was read says nothing of what another sync has done since.
  for (const region of REGIONS) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "PUT" || name !== `syncs/${keyName("app/")}`) return false;
      response.destroy();
      return true;
    });
  }
  await write("later.js", "later");
  await remove("index.html");
  expect(await sync()).toMatchObject({ outcomes: ["stored app/later.js"], notRemoved: expect.any(String) });
  expect(world.fired.size).toBe(REGIONS.length);
  world.faults.clear();
  expect(await sync()).toMatchObject({ outcomes: ["removed app/old.js"], waiting: 1 });
});

test("is for a folder that is stored, and for `delete` alone", async () => {
  await expect(sync({ delete: false })).rejects.toMatchObject({ code: "USAGE" });
  await expect(sync({ deleteAfter: -1 })).rejects.toMatchObject({ code: "USAGE" });
  const { code, stderr } = await world.run(["sync", "--get", "app/", site, "--delete-after", "7d"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--delete-after")]);
  await world.run(["sync", site, "app/"]);
  await remove("old.js");
  const { stdout } = await world.run(["sync", site, "app/", "--delete-after", "7d"]);
  expect(stdout.toString()).toContain("1 waiting to be removed");
});
