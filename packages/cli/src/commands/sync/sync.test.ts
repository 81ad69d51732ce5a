/** Folders and prefixes as they are found, kept equal in both directions. */
import { execFileSync, spawnSync } from "node:child_process";
import { appendFile, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { hash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { partialPathOf } from "@agarose/storage/files/owned-files";
import { readManifest } from "@agarose/storage/objects/manifests";
import { DOWN, manifestName, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

interface Event {
  readonly key: string;
  readonly outcome: "stored" | "fetched" | "removed" | "failed";
  readonly error?: { readonly code: string; readonly message: string };
}

interface Answer {
  readonly objects: Event[];
  readonly stored: number;
  readonly fetched: number;
  readonly removed: number;
  readonly failed: number;
  readonly unchanged: number;
  readonly kept: number;
  readonly notRemoved?: string;
  readonly skipped: { path: string; reason: string }[];
  readonly pops: { pop: string; purged: boolean; problem?: string }[];
}

let world: World;

beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: 100_000, survive: { regions: 1, providers: 1 } });
  await write({
    "dist/index.html": "<h1>1",
    "dist/assets/app-1.js": "app 1",
    "dist/assets/big.bin": "x".repeat(40_000),
  });
});

afterEach(() => world.close());

async function write(files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(world.dir, path)), { recursive: true });
    await writeFile(join(world.dir, path), content);
  }
}

async function sync(...args: string[]) {
  const { code, stdout, stderr } = await world.run(["sync", ...args, "--json"]);
  const answer = JSON.parse(stdout.toString()) as Answer & { error?: { code: string; message: string } };
  const outcomes = (answer.objects ?? []).map(({ key, outcome }) => `${outcome} ${key}`).toSorted();
  return { code, stderr, answer, outcomes };
}

async function keys(): Promise<string[]> {
  const { stdout } = await world.run(["ls", "--json"]);
  return (JSON.parse(stdout.toString()) as { objects: { key: string }[] }).objects.map(({ key }) => key);
}

/** Counts the requests to all regions, by what they ask for. */
function countRequests() {
  const counts = { lists: 0, manifests: 0, others: 0 };
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      if ((request.url ?? "").includes("list-type=2")) counts.lists++;
      else if (request.method === "GET" && name.startsWith("manifests/")) counts.manifests++;
      else counts.others++;
      return false;
    });
  }
  return counts;
}

test("stores text compressed, as `put` does, and other content as it is", async () => {
  const text = randomBytes(15_000).toString("hex");
  await writeFile(join(world.dir, "dist/assets/random.bin"), randomBytes(30_000));
  await write({ "dist/text.txt": text });
  expect((await sync("dist/", "app/")).code).toBe(0);
  expect((await world.run(["put", "dist/text.txt", "--key", "put/text.txt"])).code).toBe(0);
  const [synced, put] = await Promise.all(
    ["app/text.txt", "put/text.txt"].map((key) => readManifest(key, world.parts())),
  );
  expect(synced!.gzip).toMatchObject({ bytes: text.length });
  expect(synced!.gzip).toEqual(put!.gzip);
  expect(await readManifest("app/assets/random.bin", world.parts())).not.toHaveProperty("gzip");
  expect((await sync("app/", "copy/", "--get")).code).toBe(0);
  expect(await readFile(join(world.dir, "copy/text.txt"), "utf8")).toBe(text);
});

test("stores a folder, then only what has changed, and removes what is gone", async () => {
  const first = await sync("dist/", "app/", "--delete");
  expect(first.code).toBe(0);
  expect(first.outcomes).toEqual(["stored app/assets/app-1.js", "stored app/assets/big.bin", "stored app/index.html"]);
  // A build writes all files again.
  await rm(join(world.dir, "dist"), { recursive: true });
  await write({
    "dist/index.html": "<h1>2",
    "dist/assets/app-2.js": "app 2",
    "dist/assets/big.bin": "x".repeat(40_000),
  });
  const second = await sync("dist/", "app/", "--delete");
  expect(second.code).toBe(0);
  expect(second.outcomes).toEqual([
    "removed app/assets/app-1.js",
    "stored app/assets/app-2.js",
    "stored app/index.html",
  ]);
  expect(second.answer.unchanged).toBe(1);
  // Pages come after what they name, and removals last.
  expect(second.answer.objects.map(({ key }) => key)).toEqual([
    "app/assets/app-2.js",
    "app/index.html",
    "app/assets/app-1.js",
  ]);
  expect((await world.get("app/index.html")).toString()).toBe("<h1>2");
  expect(await keys()).toEqual(["app/assets/app-2.js", "app/assets/big.bin", "app/index.html"]);
});

test("a sync of nothing new lists, and reads one manifest of each object; with --cache it only lists", async () => {
  await sync("dist/", "app/", "--cache", "known.json");
  const old = new Date(Date.now() - 60_000);
  for (const file of ["index.html", "assets/app-1.js", "assets/big.bin"])
    await utimes(join(world.dir, "dist", file), old, old);
  // The time of the inode is not ours to set, so it has to pass.
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  const counts = countRequests();
  const plain = await sync("dist/", "app/", "--cache", "known.json");
  expect(plain).toMatchObject({ code: 0, answer: { unchanged: 3, stored: 0 } });
  expect(counts).toMatchObject({ lists: REGIONS.length, others: 0 });
  // A region that takes a second on a busy machine brings spares.
  expect([3, 8, 13, 18]).toContain(counts.manifests);
  counts.manifests = 0;
  const cached = await sync("dist/", "app/", "--cache", "known.json");
  expect(cached).toMatchObject({ code: 0, answer: { unchanged: 3, stored: 0 } });
  expect(counts).toEqual({ lists: 2 * REGIONS.length, manifests: 0, others: 0 });
  // A file of the same length and time in its place has another inode.
  await write({ "other.js": "APP 1" });
  await utimes(join(world.dir, "other.js"), old, old);
  await rename(join(world.dir, "other.js"), join(world.dir, "dist/assets/app-1.js"));
  expect((await sync("dist/", "app/", "--cache", "known.json")).outcomes).toEqual(["stored app/assets/app-1.js"]);
  // Another writer's object has another ETag.
  await world.put("app/index.html", Buffer.from("<h1>X"), { contentType: "text/html" });
  expect((await sync("dist/", "app/", "--cache", "known.json")).outcomes).toEqual(["stored app/index.html"]);
});

test("a file of old times and equal length is found to differ", async () => {
  await sync("dist", "app");
  await write({ "dist/index.html": "<h1>9" });
  await utimes(join(world.dir, "dist/index.html"), 0, 0);
  expect((await sync("dist", "app")).outcomes).toEqual(["stored app/index.html"]);
});

test("what is excluded is neither stored nor removed, and --include makes exceptions", async () => {
  await sync("dist/", "app/");
  await write({ "dist/assets/app-1.js.map": "map", "dist/node_modules/a/index.js": "a", "dist/keep.map": "keep" });
  await rm(join(world.dir, "dist/assets/big.bin"));
  const args = [
    "dist/",
    "app/",
    "--delete",
    "--exclude",
    "*.map",
    "--exclude",
    "node_modules",
    "--exclude",
    "assets/*.bin",
  ];
  const excluded = await sync(...args);
  expect(excluded.outcomes).toEqual([]);
  expect((await sync(...args, "--include", "keep.map")).outcomes).toEqual(["stored app/keep.map"]);
  expect((await sync("dist", "other", "--include", "*.js")).outcomes).toEqual([
    "stored other/assets/app-1.js",
    "stored other/node_modules/a/index.js",
  ]);
});

test("a dry run says the same and changes nothing", async () => {
  await sync("dist", "app");
  await rm(join(world.dir, "dist/assets/app-1.js"));
  await write({ "dist/new.txt": "new" });
  const names = await world.names();
  const dry = await sync("dist", "app", "--delete", "--dry-run");
  expect(dry.outcomes).toEqual(["removed app/assets/app-1.js", "stored app/new.txt"]);
  expect(await world.names()).toEqual(names);
  expect((await sync("dist", "app", "--delete")).outcomes).toEqual(dry.outcomes);
});

test("a file that fails does not stop the others, but keeps --delete from removing", async () => {
  await sync("dist", "app");
  await rm(join(world.dir, "dist/assets/app-1.js"));
  await write({ "dist/good.txt": "good", [`dist/${"long/".repeat(200)}name`]: "too long for a key" });
  const { code, answer, outcomes } = await sync("dist", "app", "--delete");
  expect(code).toBe(1);
  expect(outcomes).toEqual([`failed app/${"long/".repeat(200)}name`, "stored app/good.txt"]);
  expect(answer.objects.find(({ outcome }) => outcome === "failed")?.error?.code).toBe("KEY_TOO_LONG");
  expect(answer.notRemoved).toBe("1 of the files failed");
  expect(await keys()).toContain("app/assets/app-1.js");
});

test("links, FIFOs and dot files: what is left out at the source is not removed at the target", async () => {
  await write({ "dist/pipe": "was a file", "dist/.well-known/x": "x", "outside/secret": "secret" });
  await sync("dist", "app");
  await rm(join(world.dir, "dist/pipe"));
  execFileSync("mkfifo", [join(world.dir, "dist/pipe")]);
  await symlink("index.html", join(world.dir, "dist/alias.html"));
  await symlink(join(world.dir, "outside"), join(world.dir, "dist/tree"));
  const { code, answer, outcomes } = await sync("dist", "app", "--delete");
  expect(code).toBe(0);
  expect(outcomes).toEqual(["stored app/alias.html"]);
  expect(answer.skipped.map(({ reason }) => reason)).toEqual([
    "it is neither a file nor a folder",
    expect.stringContaining("outside of the folder"),
  ]);
  expect(await keys()).toContain("app/pipe");
});

test("what another command is writing is neither removed nor stored, and what a killed one has left is removed", async () => {
  await sync("dist", "app");
  await sync("--get", "app", "copy");
  const written = await partialPathOf(join(world.dir, "copy/film"));
  const { pid: dead } = spawnSync(process.execPath, ["-e", ""]);
  const left = written.replace(`-${process.pid}-`, `-${dead}-`);
  for (const path of [written, left]) await writeFile(path, "half");
  const got = await sync("--get", "app", "copy", "--delete");
  expect(got.outcomes).toEqual([`removed app/${basename(left)}`]);
  expect(await readFile(written, "utf8")).toBe("half");
  const put = await sync("copy", "app");
  expect(put.outcomes).toEqual([]);
  expect(put.answer.skipped.map(({ reason }) => reason)).toEqual(["another command is writing it"]);
});

test("the next sync without --delete removes the file by which a killed one tried whether the folder folds case", async () => {
  await sync("dist", "app");
  await mkdir(join(world.dir, "copy"));
  const probe = await partialPathOf(join(world.dir, "copy/Case"));
  const { pid: dead } = spawnSync(process.execPath, ["-e", ""]);
  await writeFile(probe.replace(`-${process.pid}-`, `-${dead}-`), "");
  await sync("--get", "app", "copy");
  expect((await readdir(join(world.dir, "copy"))).toSorted()).toEqual(["assets", "index.html"]);
});

test("a source that is gone or empty removes nothing", async () => {
  await sync("dist", "app");
  await mkdir(join(world.dir, "empty"));
  const empty = await sync("empty", "app", "--delete");
  expect(empty).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
  // A build that failed leaves no folder. Objects never come to a folder without --get.
  await mkdir(join(world.dir, "app"));
  expect(await sync("gone", "app", "--delete")).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
  expect(await sync("--get", "gone", "dist", "--delete")).toMatchObject({
    code: 2,
    answer: { error: { code: "USAGE" } },
  });
  expect(await keys()).toHaveLength(3);
  expect(await readdir(join(world.dir, "dist"))).toEqual(["assets", "index.html"]);
});

test("without a majority of the listings nothing is removed; with one region down everything is done", async () => {
  await sync("dist", "app");
  await rm(join(world.dir, "dist/assets/app-1.js"));
  for (const region of REGIONS.slice(0, 4)) world.faults.set(region, DOWN);
  const dark = await sync("dist", "app", "--delete");
  expect(dark.code).toBe(1);
  expect(dark.answer.removed).toBe(0);
  world.faults.clear();
  world.faults.set("dublin", DOWN);
  await write({ "dist/new.txt": "new" });
  const { code, outcomes, answer } = await sync("dist", "app", "--delete");
  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  expect({ code, outcomes }).toEqual({ code: 0, outcomes: ["removed app/assets/app-1.js", "stored app/new.txt"] });
  expect(answer, "Dublin was not looked at").toMatchObject({ unchanged: 0, kept: 2 });
});

test("what only a minority of the regions shows is not called equal, because its put failed", async () => {
  await sync("dist", "app");
  await write({ "dist/index.html": "<h1>2" });
  const refusing = REGIONS.slice(1);
  for (const region of refusing) {
    world.faults.set(region, (request, response, name) => {
      const isManifest = request.method === "PUT" && name.startsWith("manifests/");
      return isManifest && DOWN(request, response, name);
    });
  }
  expect(await sync("dist", "app")).toMatchObject({ code: 1, answer: { failed: 1 } });
  for (const region of refusing) world.faults.set(region, DOWN);
  const dark = await sync("dist", "app");
  expect(dark.code).toBe(1);
  expect(dark.answer).toMatchObject({ kept: 0, unchanged: 0, failed: 3 });
  for (const region of refusing) expect(world.fired.get(region)).toBeGreaterThan(0);
});

test("a key that was removed is stored again above its tombstone", async () => {
  await sync("dist", "app");
  await world.run(["rm", "app/index.html"]);
  expect((await sync("dist", "app")).outcomes).toEqual(["stored app/index.html"]);
  expect((await world.get("app/index.html")).toString()).toBe("<h1>1");
});

test("a file that changes while it is stored is stored as it is in the end", async () => {
  const file = join(world.dir, "dist/assets/big.bin");
  let isChanged = false;
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (!isChanged && request.method === "PUT" && name.startsWith("manifests/app/assets/big.bin")) {
        isChanged = true;
        await appendFile(file, "y");
      }
      return false;
    });
  }
  expect((await sync("dist", "app")).code).toBe(0);
  expect(isChanged).toBe(true);
  expect((await world.get("app/assets/big.bin")).toString()).toBe(await readFile(file, "utf8"));
});

test("objects come to a folder, with their times; later only what has changed, and extra files go", async () => {
  await sync("dist", "app");
  const first = await sync("--get", "app", "copy");
  expect(first.outcomes).toEqual([
    "fetched app/assets/app-1.js",
    "fetched app/assets/big.bin",
    "fetched app/index.html",
  ]);
  expect(await readFile(join(world.dir, "copy/assets/big.bin"), "utf8")).toBe("x".repeat(40_000));
  await world.put("app/index.html", Buffer.from("<h1>3"));
  await write({ "copy/extra/deep/file": "extra", "copy/extra.log": "log" });
  const second = await sync("--get", "app", "copy", "--delete", "--exclude", "*.log");
  expect(second.outcomes).toEqual(["fetched app/index.html", "removed app/extra/deep/file"]);
  expect((await readdir(join(world.dir, "copy"))).toSorted()).toEqual(["assets", "extra.log", "index.html"]);
  // Equal length and time, other content: only --checksum sees it.
  const path = join(world.dir, "copy/assets/app-1.js");
  const { mtime } = await stat(path);
  await writeFile(path, "APP 1");
  await utimes(path, mtime, mtime);
  expect((await sync("--get", "app", "copy")).outcomes).toEqual([]);
  expect((await sync("--get", "app", "copy", "--checksum")).outcomes).toEqual(["fetched app/assets/app-1.js"]);
  expect(await readFile(path, "utf8")).toBe("app 1");
});

test("with --consistency eventual, what is left of the regions is fetched, and a sync from a folder refuses it", async () => {
  await world.put("app/a", Buffer.from("a"));
  for (const region of REGIONS.slice(0, 5)) world.faults.set(region, DOWN);
  expect(await sync("--get", "app", "copy")).toMatchObject({ code: 1 });
  const eventual = await sync("--get", "app", "copy", "--consistency", "eventual");
  expect(eventual).toMatchObject({ code: 0, outcomes: ["fetched app/a"] });
  expect(await readFile(join(world.dir, "copy/a"), "utf8")).toBe("a");
  expect(world.fired.size).toBe(5);
  expect(await sync("copy", "app", "--consistency", "eventual")).toMatchObject({ code: 2 });
});

test("a link in the folder does not lead a download out of it, and a key below a file's is refused", async () => {
  await world.put("app/link/passwd", Buffer.from("evil"));
  await world.put("app/a", Buffer.from("file"));
  await world.put("app/a/b", Buffer.from("below"));
  await mkdir(join(world.dir, "outside"));
  await mkdir(join(world.dir, "copy"));
  await symlink(join(world.dir, "outside"), join(world.dir, "copy/link"));
  const { code, outcomes } = await sync("--get", "app", "copy", "--delete");
  expect(code).toBe(1);
  expect(outcomes).toEqual(["failed app/a", "failed app/link/passwd", "fetched app/a/b"]);
  expect(await readdir(join(world.dir, "outside"))).toEqual([]);
});

test("an empty object that a client of S3 keeps for a folder becomes one, and no sync removes it", async () => {
  await sync("dist", "app");
  await world.put("app/empty/deep/", new Uint8Array());
  await world.put("app/", new Uint8Array());
  expect((await sync("--get", "app", "copy", "--dry-run")).code).toBe(0);
  await expect(stat(join(world.dir, "copy"))).rejects.toMatchObject({ code: "ENOENT" });
  expect((await sync("--get", "app", "copy")).code).toBe(0);
  expect(await readdir(join(world.dir, "copy/empty"), { recursive: true })).toEqual(["deep"]);
  expect(await sync("--get", "app", "copy", "--delete")).toMatchObject({ code: 0, outcomes: [] });
  expect(await sync("dist", "app", "--delete")).toMatchObject({ code: 0, outcomes: [] });
  expect(await keys()).toEqual(expect.arrayContaining(["app/", "app/empty/deep/"]));
});

test("an object that has bytes and the name of a folder fails, and leads through no link out of the folder", async () => {
  await world.put("app/full/", Buffer.from("bytes"));
  await world.put("app/link/deep/", new Uint8Array());
  await mkdir(join(world.dir, "outside"));
  await mkdir(join(world.dir, "copy"));
  await symlink(join(world.dir, "outside"), join(world.dir, "copy/link"));
  const { code, outcomes } = await sync("--get", "app", "copy");
  expect([code, outcomes]).toEqual([1, ["failed app/full/", "failed app/link/deep/"]]);
  expect(await readdir(join(world.dir, "outside"))).toEqual([]);
  expect((await world.run(["get", "app/full/"])).code).toBe(2);
  expect((await world.run(["get", "app/full/", "copy"])).code).toBe(2);
  expect((await world.run(["get", "app/full/", "copy/full.bin"])).code).toBe(0);
  expect(await readFile(join(world.dir, "copy/full.bin"), "utf8")).toBe("bytes");
});

test("PoPs forget what was replaced or removed, and nothing else", async () => {
  const purged: unknown[] = [];
  const pop = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      purged.push({
        path: request.url,
        token: request.headers.authorization,
        body: JSON.parse(Buffer.concat(parts).toString()),
      });
      response.end("{}");
    });
  });
  const url = await listenLocally(pop);
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: [{ name: "fra", url }] }));
  const run = (): Promise<{ code: number }> =>
    world.run(["sync", "dist", "app", "--delete"], { AGAROSE_ADMIN_TOKEN: "secret" });
  try {
    expect((await run()).code).toBe(0);
    expect(purged).toEqual([]);
    await rm(join(world.dir, "dist/assets/app-1.js"));
    await write({ "dist/index.html": "<h1>2", "dist/assets/app-2.js": "app 2" });
    expect((await run()).code).toBe(0);
    const keysStale = ["app/index.html", "app/assets/app-1.js"];
    expect(purged).toEqual([{ path: "/v1/purge", token: "Bearer secret", body: { keys: keysStale } }]);
    await write({ "dist/index.html": "<h1>3" });
    const { code, answer } = await sync("dist", "app");
    expect(code).toBe(1);
    expect(answer.pops).toEqual([
      { pop: "fra", purged: false, problem: expect.stringContaining("AGAROSE_ADMIN_TOKEN") },
    ]);
  } finally {
    pop.close();
  }
});

test.each([
  ["has the version before", (old: Buffer) => old],
  ["has no manifest", () => undefined],
])("a region that %s, as a killed put leaves it, gets what the others have", async (_, left) => {
  const name = manifestName("app/index.html");
  await sync("dist", "app");
  const old = await world.read("tokyo", name);
  await write({ "dist/index.html": "<h1>2" });
  await sync("dist", "app");
  const now = await world.read("tokyo", name);
  for (const region of REGIONS.slice(0, 3)) {
    await world.tamper(region, name, () => left(old));
    expect((await sync("dist", "app", "--dry-run")).outcomes, region).toEqual(["stored app/index.html"]);
    expect((await sync("dist", "app")).answer, region).toMatchObject({ stored: 1, unchanged: 2 });
    expect(await world.read(region, name)).toEqual(now);
  }
  expect((await sync("dist", "app")).answer).toMatchObject({ stored: 0, unchanged: 3 });
});

test("a minority that missed an update does not make a file of the version before pass for stored", async () => {
  const name = manifestName("app/index.html");
  await sync("dist", "app");
  const old = await world.read("tokyo", name);
  await world.put("app/index.html", Buffer.from("<h1>2"), { contentType: "text/html" });
  const now = await world.read("tokyo", name);
  for (const region of REGIONS) {
    await world.tamper(region, name, () => old);
    expect((await sync("dist", "app", "--dry-run")).outcomes, region).toEqual(["stored app/index.html"]);
    await world.tamper(region, name, () => now);
  }
});

test.each([
  { what: "sync --delete", args: ["sync", "dist", "app", "--delete"] },
  { what: "rm -r", args: ["rm", "app/assets/app-1.js", "-r"] },
])("$what ends a removal that was killed between two regions", async ({ args }) => {
  const key = "app/assets/app-1.js";
  await sync("dist", "app");
  await rm(join(world.dir, "dist/assets/app-1.js"));
  const name = manifestName(key);
  const old = await world.read("tokyo", name);
  await world.run(["rm", key]);
  await world.tamper("tokyo", name, () => old);
  const { code, stdout } = await world.run([...args, "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout.toString())).toMatchObject({ objects: [{ key, outcome: "removed" }] });
  expect(JSON.parse((await world.read("tokyo", name)).toString())).toMatchObject({ deleted: true });
  const again = await world.run([...args, "--json"]);
  expect(JSON.parse(again.stdout.toString())).toMatchObject({ objects: [] });
});

test("an object of another type or with other headers is stored again", async () => {
  const header = ["--header", "cache-control: max-age=60"];
  await sync("dist", "app", ...header);
  expect((await sync("dist", "app", ...header)).answer).toMatchObject({ stored: 0, unchanged: 3 });
  await world.put("app/index.html", Buffer.from("<h1>1"), {
    contentType: "text/plain",
    headers: { "cache-control": "max-age=60" },
  });
  expect((await sync("dist", "app", ...header)).outcomes).toEqual(["stored app/index.html"]);
  expect((await sync("dist", "app")).answer).toMatchObject({ stored: 3, unchanged: 0 });
});

test("what a client of the gateway has put is unchanged while its bytes are, and keeps its checksums", async () => {
  const headers = { "x-amz-checksum-md5": hash("md5", "<h1>1", "base64") };
  const text = { contentType: "text/html; charset=utf-8", headers };
  await sync("dist", "app");
  await world.put("app/index.html", Buffer.from("<h1>1"), text);
  expect((await sync("dist", "app")).answer).toMatchObject({ stored: 0, unchanged: 3 });
  const { stdout } = await world.run(["put", "dist/index.html", "--key", "app/index.html", "--json"]);
  expect(String(stdout)).toContain('"unchanged"');
  const read = () => readManifest("app/index.html", world.parts());
  expect((await read()).headers).toEqual(headers);
  await write({ "dist/index.html": "<h1>2" });
  expect((await sync("dist", "app")).outcomes).toEqual(["stored app/index.html"]);
  expect((await read()).headers).toEqual({});
});

test("while too few regions can be listed, files are moved but nothing is removed, in either direction", async () => {
  await sync("dist", "app");
  await rm(join(world.dir, "dist/assets/app-1.js"));
  await write({ "dist/new.txt": "new", "copy/extra": "extra" });
  for (const region of REGIONS.slice(0, 4)) {
    world.faults.set(region, (request) => {
      if (!(request.url ?? "").includes("list-type=2")) return false;
      request.destroy();
      return true;
    });
  }
  const there = await sync("dist", "app", "--delete");
  expect(there).toMatchObject({ code: 1, outcomes: ["stored app/new.txt"] });
  expect(there.answer.notRemoved).toBe("too few regions could be listed");
  const back = await sync("--get", "app", "copy", "--delete");
  expect(back.code).toBe(1);
  expect(back.answer).toMatchObject({ failed: 0, removed: 0, notRemoved: "too few regions could be listed" });
  expect(await readFile(join(world.dir, "copy/extra"), "utf8")).toBe("extra");
});

test("a region that lists but then hangs does not keep a sync from its end", async () => {
  await sync("dist", "app");
  let hangs = 0;
  for (const region of REGIONS.slice(0, 2)) {
    world.faults.set(region, (request, _response, name) => {
      if (request.method !== "GET" || !name.startsWith("manifests/") || (request.url ?? "").includes("list-type=2"))
        return false;
      hangs++;
      return true;
    });
  }
  await write({ "dist/a": "a", "dist/assets/b": "b" });
  expect(await sync("dist", "app")).toMatchObject({ code: 0, answer: { stored: 2, unchanged: 3 } });
  expect(await sync("--get", "app", "copy")).toMatchObject({ code: 0, answer: { fetched: 5 } });
  expect(hangs).toBeGreaterThan(0);
});
