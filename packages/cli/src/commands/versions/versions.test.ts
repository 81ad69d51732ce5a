/** The versions of one key, as its regions hold them. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chunkName, manifestName, type Manifest } from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";
import type { VersionEntry } from "@agarose/storage/history/list-versions";

let world: World;

beforeAll(async () => {
  world = await startTestWorld();
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const keep = [{ prefix: "kept/", time: "3d" }];
  await writeFile(world.configPath, JSON.stringify({ ...config, keep }));
});

afterAll(() => world.close());

async function versions(key: string) {
  const { code, stdout, stderr } = await world.run(["versions", key, "--json"]);
  return { code, stderr, answer: JSON.parse(stdout.toString()) as { versions: VersionEntry[]; error?: object } };
}

test("lists the newest first, with what a region that is behind still names", async () => {
  const first = await world.put("behind", Buffer.alloc(40_000, 1));
  const old = await world.read("paulo", manifestName("behind"));
  const second = await world.put("behind", Buffer.alloc(50_000, 2));
  await world.store("paulo").put(manifestName("behind"), old, { bytes: old.length, contentType: "application/json" });
  const { code, answer } = await versions("behind");
  expect(code).toBe(0);
  const others = REGIONS.filter((region) => region !== "paulo");
  expect(answer.versions).toMatchObject([
    { generation: 2, version: second.version, bytes: 50_000, state: "whole", regions: others },
    { generation: 1, version: first.version, bytes: 40_000, state: "whole", regions: ["paulo"] },
  ]);
  const text = (await world.run(["versions", "behind"])).stdout.toString();
  expect(text).toMatch(/^2 {2}\S+Z {2}whole .* in \d of \d regions\n1 {2}/u);
});

test("a version without all chunks is damaged, and one with fewer than k is unreadable", async () => {
  await world.put("chunks", Buffer.alloc(40_000, 1));
  const stored = await world.read("paulo", manifestName("chunks"));
  const { upload, k, placement } = JSON.parse(stored.toString()) as Manifest;
  const removeChunk = (chunk: number) => world.store(placement[chunk]!).remove([chunkName("chunks", upload, chunk)]);
  await removeChunk(0);
  const [damaged] = (await versions("chunks")).answer.versions;
  expect(damaged).toMatchObject({ state: "damaged", chunks: placement.length, chunksListed: placement.length - 1 });
  for (let chunk = 1; chunk <= placement.length - k; chunk++) await removeChunk(chunk);
  expect((await versions("chunks")).answer.versions).toMatchObject([{ state: "unreadable", chunksListed: k - 1 }]);
});

test("shows a removed object as deleted, and refuses a key that never was", async () => {
  await world.put("gone", Buffer.alloc(40_000, 1));
  await world.run(["rm", "gone"]);
  const { code, answer } = await versions("gone");
  expect(code).toBe(0);
  expect(answer.versions).toMatchObject([{ generation: 2, state: "deleted" }]);
  expect(answer.versions).toHaveLength(1);
  expect(await versions("never")).toMatchObject({ code: 1, answer: { error: { code: "OBJECT_NOT_FOUND" } } });
});

test("a region that is down makes the command fail, and may hold another version", async () => {
  await world.put("down", Buffer.alloc(40_000, 1));
  world.faults.set("dublin", DOWN);
  const { code, stderr, answer } = await versions("down");
  world.faults.delete("dublin");
  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  expect(code).toBe(1);
  expect(stderr).toContain("dublin may hold another version");
  expect(answer.versions[0]!.regions).not.toContain("dublin");
});

/** Puts by the command, which keeps what it replaces. */
async function put(key: string, bytes: Uint8Array): Promise<void> {
  const path = join(world.dir, `upload-${crypto.randomUUID()}`);
  await writeFile(path, bytes);
  expect((await world.run(["put", path, "--key", key])).code).toBe(0);
}

test("shows kept versions, and until when each stays at least", async () => {
  const beforeMs = Date.now() - 1_000;
  await put("kept/key", Buffer.alloc(40_000, 1));
  await put("kept/key", Buffer.alloc(50_000, 2));
  await world.run(["rm", "kept/key"]);
  const { code, answer } = await versions("kept/key");
  expect(code).toBe(0);
  expect(answer.versions).toMatchObject([
    { generation: 3, state: "deleted", regions: REGIONS },
    { generation: 2, state: "whole", bytes: 50_000, regions: [], keptUntil: expect.any(String) },
    { generation: 1, state: "whole", bytes: 40_000, regions: [], keptUntil: expect.any(String) },
  ]);
  expect(answer.versions[0]).not.toHaveProperty("keptUntil");
  const untilMs = Date.parse(answer.versions[1]!.keptUntil!);
  expect(untilMs).toBeGreaterThanOrEqual(beforeMs + 3 * 24 * 3_600_000);
  expect(untilMs).toBeLessThanOrEqual(Date.now() + 1_000 + 3 * 24 * 3_600_000);
  const text = (await world.run(["versions", "kept/key"])).stdout.toString();
  expect(text).toMatch(/\n2 {2}\S+Z {2}whole .* kept until 20\S+Z\n1 {2}/u);
});

test("a region that does not list its history makes the command fail, and the others show what is kept", async () => {
  await put("kept/down", Buffer.alloc(40_000, 1));
  await put("kept/down", Buffer.alloc(50_000, 2));
  world.faults.set("tokyo", (request, response, name) => {
    return (request.url ?? "").includes("prefix=history") && DOWN(request, response, name);
  });
  const { code, stderr, answer } = await versions("kept/down");
  world.faults.delete("tokyo");
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(code).toBe(1);
  expect(stderr).toContain("tokyo may keep another version");
  expect(answer.versions).toMatchObject([{ generation: 2 }, { generation: 1, keptUntil: expect.any(String) }]);
});

test("a copy that was changed in one region is read from another one", async () => {
  await put("kept/forged", Buffer.alloc(40_000, 1));
  await put("kept/forged", Buffer.alloc(50_000, 2));
  const name = (await world.names("history/kept/forged!"))[0]!.replace(/^[^/]+\//u, "");
  await world.tamper(REGIONS[0], name, () => Buffer.from("{}"));
  expect(await versions("kept/forged")).toMatchObject({
    code: 0,
    answer: { versions: [{ generation: 2 }, { generation: 1, state: "whole" }] },
  });
  for (const region of REGIONS.slice(1)) await world.tamper(region, name, () => Buffer.from("{}"));
  const { code, stderr, answer } = await versions("kept/forged");
  expect(code).toBe(1);
  expect(stderr).toContain("may keep another version");
  expect(answer.versions).toMatchObject([{ generation: 2 }]);
});
