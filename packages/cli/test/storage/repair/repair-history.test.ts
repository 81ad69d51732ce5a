/** Versions that are kept are healed like the objects themselves. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { chunkName, type Manifest } from "@agarose/core/format";
import { DOWN, startTestWorld, type World } from "../../world.ts";
import type { Config } from "@agarose/storage/config/config";
import { repairOne } from "@agarose/storage/repair/repair-outcome";

const DAY_MS = 24 * 3_600_000;

let world: World;
let config: Config;

beforeAll(async () => {
  world = await startTestWorld();
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ prefix: "kept/", time: "30d" }] }));
  config = { ...world.config, keep: [{ prefix: "kept/", time: 30 * DAY_MS }] };
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

/** A key with one kept version, and where the chunks of that are. */
async function keptVersion(key: string, isRemoved = false) {
  const bytes = randomBytes(6_000);
  const { upload } = await world.put(key, bytes, { config });
  if (isRemoved) await world.run(["rm", key]);
  else await world.put(key, randomBytes(6_000), { config });
  const [name = ""] = await world.names(`history/${key}!${upload}`);
  const [region = "", ...rest] = name.split("/");
  const { placement } = JSON.parse((await world.read(region, rest.join("/"))).toString()) as Manifest;
  const places = placement.map((at, chunk) => [at, chunkName(key, upload, chunk)] as const);
  const lose = async (...chunks: number[]): Promise<void> => {
    for (const chunk of chunks) await world.store(places[chunk]![0]).remove([places[chunk]![1]]);
  };
  const stored = (): Promise<Buffer[]> => Promise.all(places.map(([at, chunk]) => world.read(at, chunk)));
  return { key, bytes, places, lose, stored };
}

test("verify finds a chunk that a kept version has lost, by listings and by reading, also of a removed object", async () => {
  for (const [key, isRemoved] of [
    ["kept/find/here", false],
    ["kept/find/removed", true],
  ] as const) {
    const kept = await keptVersion(key, isRemoved);
    for (const options of [["--quick"], []]) {
      expect(await world.run(["verify", ...options, "--prefix", key])).toMatchObject({ code: 0 });
    }
    await kept.lose(2);
    for (const options of [["--quick"], []]) {
      const { code, stdout } = await world.run(["verify", ...options, "--prefix", key]);
      expect([code, stdout.toString()]).toEqual([1, expect.stringContaining("kept generation 1: 5 of 6 chunks")]);
    }
  }
});

test("repair writes the chunks again as they were, and no manifest", async () => {
  const kept = await keptVersion("kept/repair");
  const before = await kept.stored();
  const manifests = await world.names("manifests/kept/repair!");
  await kept.lose(0, 5);
  const { code, stdout } = await world.run(["repair", "kept/repair", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout.toString())).toMatchObject({
    objects: [{ outcome: "repaired", chunksWritten: 2, manifestsWritten: 0, after: { sound: true } }],
  });
  expect(await kept.stored()).toEqual(before);
  expect(await world.names("manifests/kept/repair!")).toEqual(manifests);
  await world.tamper(kept.places[1]![0], kept.places[1]![1], (bytes) => bytes.fill(3));
  expect((await world.run(["repair", "kept/repair"])).code).toBe(0);
  expect(await kept.stored()).toEqual(before);
});

test("a scrub makes again what kept versions have lost with a bucket, and they can be restored", async () => {
  const all = [await keptVersion("kept/scrub/here"), await keptVersion("kept/scrub/removed", true)];
  const before = await Promise.all(all.map((kept) => kept.stored()));
  for (const region of ["frankfurt", "tokyo"]) {
    for (const { places } of all) {
      await world.store(region).remove(places.filter(([at]) => at === region).map(([, name]) => name));
    }
  }
  const args = ["scrub", "--prefix", "kept/scrub/"];
  expect((await world.run([...args, "--dry-run"])).code).toBe(1);
  expect((await world.run(args)).code).toBe(0);
  expect(await Promise.all(all.map((kept) => kept.stored()))).toEqual(before);
  for (const { key, bytes } of all) {
    await world.run(["restore", key]);
    expect(await world.get(key)).toEqual(bytes);
  }
});

test("a kept version that cannot be read stays damaged, and the object is repaired all the same", async () => {
  const kept = await keptVersion("kept/unreadable");
  await kept.lose(0, 1, 2);
  await world.store("dublin").remove([`manifests/kept/unreadable!.json`]);
  const { code, stdout } = await world.run(["repair", "kept/unreadable"]);
  expect([code, stdout.toString()]).toEqual([1, expect.stringContaining("kept generation 1: 3 of 6 chunks")]);
  expect(await world.names("manifests/kept/unreadable!")).toHaveLength(6);
});

test("a version whose time is over is left to gc", async () => {
  const kept = await keptVersion("kept/over");
  await kept.lose(0);
  const later = world.parts({ config, nowMs: () => Date.now() + 31 * DAY_MS });
  expect(await repairOne("kept/over", later, { quick: true })).toMatchObject({ outcome: "sound", chunksWritten: 0 });
  expect(await repairOne("kept/over", world.parts({ config }), { quick: true })).toMatchObject({
    outcome: "repaired",
    chunksWritten: 1,
  });
});

test("a region that does not say what it keeps makes verify and scrub fail", async () => {
  await keptVersion("kept/silent");
  world.faults.set("sydney", (request, response, name) => {
    // The listing of one key, and not that of the walk.
    return /prefix=history[^&]*%21|prefix=history[^&]*!/u.test(request.url ?? "") && DOWN(request, response, name);
  });
  for (const args of [["verify", "--quick"], ["scrub"]]) {
    const { code, stdout } = await world.run([...args, "--prefix", "kept/silent"]);
    expect([code, stdout.toString()]).toEqual([1, expect.stringContaining("unreachable  sydney")]);
  }
  expect(world.fired.get("sydney")).toBeGreaterThan(1);
});
