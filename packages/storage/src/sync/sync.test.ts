/** A folder and the keys below a prefix, kept equal by a program. */
import { appendFileSync, writeFileSync } from "node:fs";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { allOf, startThreeRegions, type ThreeRegions } from "../../test/three-regions.ts";
import { openDeployment, type Deployment } from "../deployment.ts";
import { publish } from "../../test/sync-example.ts";
import type { SyncOptions, SyncRemoval, SyncTotals } from "./sync-job.ts";

const FILES = { "index.html": "<h1>1", "assets/app.js": "app", "assets/big.bin": "x".repeat(40_000) };
const STORED = ["stored app/assets/app.js", "stored app/assets/big.bin", "stored app/index.html"];

let world: ThreeRegions;
let store: Deployment;
let site: string;
let copy: string;

beforeEach(async () => {
  world = await startThreeRegions();
  store = await openDeployment(world.config);
  [site, copy] = [join(world.folder, "site"), join(world.folder, "copy")];
  await write(FILES);
});

afterEach(async () => {
  store.close();
  await world.close();
});

async function write(files: Record<string, string>, folder = site): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** The outcomes as text, in the order of their keys, and the sums. */
async function ended(walk: ReturnType<Deployment["sync"]>): Promise<{ outcomes: string[]; totals: SyncTotals }> {
  const outcomes: string[] = [];
  for (;;) {
    const { done, value } = await walk.next();
    if (done) return { outcomes: outcomes.toSorted(), totals: value };
    outcomes.push(`${value.outcome} ${value.key}${value.outcome === "failed" ? ` ${value.error.code}` : ""}`);
  }
}

const push = (options: SyncOptions = {}, from = site) =>
  ended(store.sync({ folder: from }, { prefix: "app" }, options));
const pull = (options: SyncOptions = {}) => ended(store.sync({ prefix: "app/" }, { folder: copy }, options));

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

async function keys(): Promise<string[]> {
  return (await allOf(store.list())).map(({ key }) => key);
}

test("stores a folder, then only what has changed, and by default removes nothing", async () => {
  expect(await push()).toEqual({ outcomes: STORED, totals: { unchanged: 0, kept: 0 } });
  expect(await store.stat("app/index.html")).toMatchObject({ bytes: 5, contentType: "text/html; charset=utf-8" });
  await rm(join(site, "assets/app.js"));
  await write({ "index.html": "<h1>2" });
  expect(await push()).toEqual({
    outcomes: ["stored app/index.html"],
    totals: { unchanged: 1, kept: 0 },
  });
  expect(await keys()).toContain("app/assets/app.js");
});

test("fetches objects into a folder that it makes, then only what has changed, and by default removes nothing", async () => {
  await push();
  const fetched = STORED.map((line) => line.replace("stored", "fetched"));
  expect(await pull()).toEqual({ outcomes: fetched, totals: { unchanged: 0, kept: 0 } });
  expect(await readFile(join(copy, "assets/big.bin"), "utf8")).toBe(FILES["assets/big.bin"]);
  await write({ extra: "extra" }, copy);
  await store.put("app/index.html", "<h1>3");
  expect(await pull()).toMatchObject({ outcomes: ["fetched app/index.html"], totals: { unchanged: 2 } });
  expect(await readFile(join(copy, "extra"), "utf8")).toBe("extra");
});

test("a dry run reports the same and changes nothing, in either direction", async () => {
  await push();
  await rm(join(site, "assets/app.js"));
  await write({ new: "new" });
  const before = await keys();
  const dry = await push({ delete: true, dryRun: true });
  expect(dry.outcomes).toEqual(["removed app/assets/app.js", "stored app/new"]);
  expect(await keys()).toEqual(before);
  expect((await push({ delete: true })).outcomes).toEqual(dry.outcomes);
  expect((await pull({ delete: true, dryRun: true })).outcomes).toHaveLength(3);
  await expect(readdir(copy)).rejects.toMatchObject({ code: "ENOENT" });
});

test("removes what the source does not have where it is asked to, once `confirm` has seen it", async () => {
  await push();
  await pull();
  const seen: SyncRemoval[] = [];
  const confirm = (removal: SyncRemoval): void => void seen.push(removal);
  await rm(join(site, "assets/app.js"));
  expect((await push({ delete: true, confirm })).outcomes).toEqual(["removed app/assets/app.js"]);
  expect((await pull({ delete: true, confirm })).outcomes).toEqual(["removed app/assets/app.js"]);
  expect(seen).toEqual([
    { names: ["app/assets/app.js"], isTotal: false },
    { names: ["assets/app.js"], isTotal: false },
  ]);
  await rm(join(site, "assets"), { recursive: true });
  const no = new Error("no");
  await expect(push({ delete: true, confirm: () => Promise.reject(no) })).rejects.toBe(no);
  expect(await keys()).toContain("app/assets/big.bin");
});

test("another folder than was meant removes nothing: neither one without a common name, nor an empty one", async () => {
  await push();
  const other = join(world.folder, "other");
  await write({ notes: "notes" }, other);
  await expect(push({ delete: true }, other)).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("`confirm`"),
  });
  expect(await keys()).not.toContain("app/notes");
  await rm(join(other, "notes"));
  await expect(push({ delete: true }, other)).rejects.toMatchObject({ code: "USAGE", details: { objects: 3 } });
  const from = store.sync({ prefix: "elsewhere" }, { folder: site }, { delete: true });
  await expect(ended(from)).rejects.toMatchObject({ code: "USAGE", details: { files: 3 } });
  expect(await keys()).toHaveLength(3);
  expect(await filesIn(site)).toHaveLength(3);
});

test("after a failure nothing is removed, and the totals say why", async () => {
  await push();
  await rm(join(site, "assets/app.js"));
  const long = `${"long/".repeat(200)}name`;
  await write({ [long]: "too long for a key", good: "good" });
  expect(await push({ delete: true })).toMatchObject({
    outcomes: [`failed app/${long} KEY_TOO_LONG`, "stored app/good"],
    totals: { notRemoved: "1 of the files failed" },
  });
  expect(await keys()).toContain("app/assets/app.js");
});

test("a file that changes while it is read is stored as it is in the end, and one that never rests fails", async () => {
  const file = join(site, "assets/big.bin");
  let changes = 0;
  const changing = (times: number) => ({
    addTotal: () => {},
    add: () => {
      if (changes < times) writeFileSync(file, "x".repeat(40_000) + String(changes++).padStart(5));
    },
  });
  expect((await push({ progress: changing(1), include: ["*.bin"] })).outcomes).toEqual(["stored app/assets/big.bin"]);
  expect(changes, "the file has changed").toBe(1);
  expect(await store.stat("app/assets/big.bin")).toMatchObject({ bytes: 40_005 });
  appendFileSync(file, "!");
  expect((await push({ progress: changing(Infinity), include: ["*.bin"] })).outcomes).toEqual([
    "failed app/assets/big.bin FILE_UNREADABLE",
  ]);
});

test("a key that leads out of the folder, or that no file can have, is not fetched and stops no other", async () => {
  await push();
  const odd = ["app/../../out", "app/./here", "app//twice", "app/..", "app//"];
  for (const key of odd) await store.put(key, Buffer.from("odd"));
  const { outcomes } = await ended(store.sync({ prefix: "app" }, { folder: join(copy, "deep") }));
  const failed = odd.map((key) => `failed ${key} KEY_INVALID`);
  expect(outcomes.toSorted()).toEqual(
    [...failed, ...STORED.map((line) => line.replace("stored", "fetched"))].toSorted(),
  );
  expect((await readdir(world.folder)).toSorted()).toEqual(["copy", "credentials", "site"]);
  expect(await readdir(copy)).toEqual(["deep"]);
  for (const key of odd) expect((await store.stat(key))?.bytes).toBe(3);
});

test("a link in the folder leads no object out of it", async () => {
  const outside = join(world.folder, "outside");
  await mkdir(outside);
  await mkdir(copy);
  await symlink(outside, join(copy, "assets"));
  await push();
  expect((await pull()).outcomes).toEqual([
    "failed app/assets/app.js USAGE",
    "failed app/assets/big.bin USAGE",
    "fetched app/index.html",
  ]);
  expect(await readdir(outside)).toEqual([]);
});

test("a signal that has aborted begins nothing, and one that aborts later leaves nothing half-written", async () => {
  await push();
  const abort = new AbortController();
  const stopped = await openDeployment(world.config, { signal: abort.signal });
  const walk = stopped.sync({ prefix: "app" }, { folder: copy }, { jobs: 1 });
  expect((await walk.next()).done).toBe(false);
  abort.abort(new Error("enough"));
  await expect(ended(walk)).rejects.toThrow("enough");
  const left = await filesIn(copy);
  expect(left.length).toBeLessThan(3);
  expect(left.filter((name) => name.endsWith(".part"))).toEqual([]);
  await write({ new: "new" });
  await expect(ended(stopped.sync({ folder: site }, { prefix: "app" }))).rejects.toThrow("enough");
  expect(await keys()).not.toContain("app/new");
  stopped.close();
});

test("a reader who leaves ends the sync", async () => {
  for await (const { outcome } of store.sync({ folder: site }, { prefix: "app" }, { jobs: 1 })) {
    expect(outcome).toBe("stored");
    break;
  }
  const stored = await keys();
  expect(stored.length).toBeLessThan(3);
  expect((await push()).totals.unchanged).toBe(stored.length);
});

test("leaves out what patterns exclude, and reports what it skips, below which nothing is removed", async () => {
  await push();
  await rm(join(site, "assets"), { recursive: true });
  await symlink(world.folder, join(site, "assets"));
  await write({ "site.map": "map" });
  const { outcomes } = await push({ delete: true, exclude: ["*.map"] });
  expect(outcomes).toEqual(["skipped app/assets"]);
  expect(await keys()).toHaveLength(3);
});

test("stores with a region down, and says that objects are incomplete until they are repaired", async () => {
  world.down.add("tokyo");
  const incomplete: number[] = [];
  const onIncomplete = (objects: number): void => void incomplete.push(objects);
  expect((await push({ headers: { "cache-control": "no-cache" }, onIncomplete })).outcomes).toEqual(STORED);
  expect(incomplete, "the page comes after the others").toEqual([2, 1]);
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
  expect(await store.stat("app/index.html")).toMatchObject({ headers: { "cache-control": "no-cache" } });
});

test("refuses ends and options that make no sense, each with what is wrong", async () => {
  const usage = (text: string) => ({ code: "USAGE", message: expect.stringContaining(text) as string });
  await expect(ended(store.sync({ folder: site }, { folder: copy }))).rejects.toMatchObject(usage("one { prefix }"));
  await expect(push({}, join(world.folder, "gone"))).rejects.toMatchObject(usage("does not exist"));
  await expect(push({ consistency: "eventual" })).rejects.toMatchObject(usage("`consistency`"));
  await expect(push({ jobs: 0 })).rejects.toMatchObject(usage("`jobs`"));
});

test("the README shows the example that runs here", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await store.put("app/old", "old");
  expect(await publish(world.config, site).catch((error: unknown) => error)).toMatchObject({ code: "USAGE" });
  await store.put("app/index.html", "<h1>0");
  expect(await publish(world.config, site)).toBe(true);
  expect(log.mock.calls.map((line) => line.join(" ")).toSorted()).toEqual(["removed app/old", ...STORED]);
  const read = (path: string): Promise<string> => readFile(new URL(path, import.meta.url), "utf8");
  expect(await read("../../README.md")).toContain(`\`\`\`ts\n${await read("../../test/sync-example.ts")}\`\`\``);
});

test("objects get the headers that the configuration has for their keys, and a changed rule changes them alone", async () => {
  const rules = (pages: string): object[] => [
    { keys: "app/assets/*", headers: { "cache-control": "immutable" } },
    { keys: "*.html", headers: { "cache-control": pages, "cross-origin-opener-policy": "same-origin" } },
  ];
  const configured = async <T>(pages: string, work: (own: Deployment) => Promise<T>): Promise<T> => {
    const own = await openDeployment({ ...world.config, headers: rules(pages) });
    try {
      return await work(own);
    } finally {
      own.close();
    }
  };
  const pushTo = (own: Deployment, options: SyncOptions = {}): Promise<{ outcomes: string[] }> =>
    ended(own.sync({ folder: site }, { prefix: "app" }, options));
  await configured("no-cache", async (own) => {
    expect((await pushTo(own)).outcomes).toEqual(STORED);
    expect((await own.stat("app/assets/app.js")).headers).toEqual({ "cache-control": "immutable" });
    expect((await own.stat("app/index.html")).headers).toEqual({
      "cache-control": "no-cache",
      "cross-origin-opener-policy": "same-origin",
    });
    expect((await pushTo(own)).outcomes).toEqual([]);
    await own.put("other.html", "a", { headers: { "cache-control": "max-age=5" } });
    expect((await own.stat("other.html")).headers).toMatchObject({ "cache-control": "max-age=5" });
  });
  await configured("max-age=60", async (own) => {
    expect((await pushTo(own)).outcomes).toEqual(["stored app/index.html"]);
    expect((await own.stat("app/index.html")).headers).toMatchObject({ "cache-control": "max-age=60" });
    expect((await pushTo(own, { headers: { "cache-control": "private" } })).outcomes).toHaveLength(3);
    expect((await own.stat("app/assets/app.js")).headers).toEqual({ "cache-control": "private" });
  });
});
