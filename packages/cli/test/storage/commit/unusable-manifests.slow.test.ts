/** Writers that meet manifests which they cannot use: by other keys, over a limit, damaged, or forged. */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeManifest } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DOWN, manifestName, REGIONS, startTestWorld, type RunResult, type World } from "../../world.ts";
import { CONTROL_NAME } from "@agarose/storage/commit/control-record";
import { claimName } from "@agarose/storage/commit/names";

const NAME = manifestName("page");
/** Four of six: what a put that succeeds may have reached. */
const MAJORITY = REGIONS.slice(0, 4);
const FORGED_GENERATION = Number.MAX_SAFE_INTEGER;

let world: World;
let old: string;

beforeEach(async () => {
  world = await startTestWorld();
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ prefix: "", time: "30d" }] }));
  await world.run(["keys", "new", "publisher.pem"]);
  old = join(world.dir, "old.json");
  for (const text of ["one", "two"]) await put(text);
});

afterEach(() => world.close());

const run = (...args: string[]): Promise<RunResult> => world.run(args);
/** The command as a machine runs it whose configuration is from before. */
const runOld = (...args: string[]): Promise<RunResult> => world.run([...args, "--config", old]);
const generations = async (): Promise<number[]> => (await held()).map((text) => JSON.parse(text).generation as number);

async function put(text: string): Promise<RunResult> {
  await writeFile(join(world.dir, "upload-page"), text);
  return run("put", "upload-page", "--key", "page");
}

/** The contents of each region under the name of the manifest. */
function held(): Promise<string[]> {
  return Promise.all(REGIONS.map(async (region) => (await world.read(region, NAME)).toString("latin1")));
}

/** Rotates the key and puts with the new one. The old configuration stays in `old`. */
async function putByNewKey(): Promise<void> {
  await writeFile(old, await readFile(world.configPath));
  await run("keys", "rotate", "next.pem");
  await run("keys", "rotate", "next.pem", "--sign");
  expect((await put("three")).code).toBe(0);
}

/** Replaces what `regions` hold. */
async function tamper(regions: readonly string[], change: (bytes: Buffer) => Uint8Array): Promise<void> {
  await writeFile(old, await readFile(world.configPath));
  for (const region of regions) await world.tamper(region, NAME, change);
}

function changed(bytes: Buffer, more: object): Uint8Array {
  const { crc32: _crc32, ...manifest } = JSON.parse(bytes.toString()) as { crc32: string };
  return encodeManifest({ ...manifest, ...more } as never);
}

const KINDS: [kind: string, code: string, make: () => Promise<void>][] = [
  ["a key that it does not trust has signed", "MANIFEST_UNTRUSTED", putByNewKey],
  [
    "nobody has signed",
    "MANIFEST_UNTRUSTED",
    () => tamper(MAJORITY, (bytes) => changed(bytes, { generation: 3, signature: undefined })),
  ],
  [
    "has a code beyond its limits",
    "CODE_INVALID",
    () => tamper(MAJORITY, (bytes) => changed(bytes, { generation: 3, k: 300 })),
  ],
  ["is longer than it reads", "MANIFEST_TOO_LARGE", () => tamper(MAJORITY, () => Buffer.alloc(8 * 1024 ** 2 + 1, 32))],
];

const VERBS: [verb: string, args: readonly string[]][] = [
  ["put", ["put", "upload-page", "--key", "page"]],
  ["sync", ["sync", "folder", ""]],
  ["rm", ["rm", "page"]],
  ["restore", ["restore", "page", "--version", "1"]],
  ["recode", ["recode", "page"]],
  ["repair", ["repair", "page"]],
  ["keys apply", ["keys", "apply", "page"]],
];

describe.each(KINDS)("a version of which a majority holds what %s", (_kind, code, make) => {
  test.each(VERBS)("is not replaced by %s", async (_verb, args) => {
    await make();
    const before = await held();
    await writeFile(join(world.dir, "upload-page"), "by the other machine");
    await mkdir(join(world.dir, "folder"));
    await writeFile(join(world.dir, "folder/page"), "by the other machine");
    const { code: exit, stdout, stderr } = await runOld(...args);
    expect(exit, `${stdout.toString()}${stderr}`).not.toBe(0);
    expect(`${stdout.toString()}${stderr}`).toContain(code);
    expect(await held()).toEqual(before);
  });
});

test("a version by a key that a writer does not trust stays, though the region that shares it with few is down", async () => {
  await putByNewKey();
  const stale = Buffer.from((await held())[0]!, "latin1");
  for (const region of REGIONS.slice(4)) await world.tamper(region, NAME, () => changed(stale, { generation: 2 }));
  world.faults.set(REGIONS[0], DOWN);
  await writeFile(join(world.dir, "upload-page"), "by the other machine");
  const { code, stderr } = await runOld("put", "upload-page", "--key", "page");
  expect(world.fired.get(REGIONS[0])).toBeGreaterThan(0);
  expect([code, stderr]).toEqual([1, expect.stringContaining("MANIFEST_UNTRUSTED")]);
  world.faults.clear();
  expect((await run("get", "page", "-")).stdout.toString()).toBe("three");
});

test("a version by a writer with another key that is still at work is left where it is", async () => {
  const before = await world.read(REGIONS[0], NAME);
  await putByNewKey();
  // The other writer has reached one region so far, and its claim shows that it continues.
  for (const region of REGIONS.slice(1)) await world.tamper(region, NAME, () => before);
  await writeFile(world.configPath, await readFile(old));
  const foreign = await world.read(REGIONS[0], NAME);
  for (const region of MAJORITY) {
    const claim = Buffer.from(JSON.stringify({ upload: randomBytes(16).toString("hex") }));
    await world
      .store(region)
      .put(claimName("page", 4), claim, { bytes: claim.length, contentType: "application/json" });
  }
  // Of a deployment that has no control records yet, which would end the put before it comes to this.
  for (const region of REGIONS) await world.tamper(region, CONTROL_NAME, () => undefined);
  const result = await put("by the other machine");
  expect([result.code, result.stderr]).toEqual([0, expect.stringContaining(`${REGIONS[0]} did not take the manifest`)]);
  expect((await world.read(REGIONS[0], NAME)).equals(foreign)).toBe(true);
});

describe("what a minority forges", () => {
  const forge = (bytes: Buffer): Uint8Array => changed(bytes, { generation: FORGED_GENERATION });

  test.each([
    [1, 0],
    [1, 1],
    [2, 0],
  ])("in %i of six regions, with %i more down, holds up no put and inflates no generation", async (liars, down) => {
    await tamper(REGIONS.slice(0, liars), forge);
    for (const region of REGIONS.slice(6 - down)) world.faults.set(region, DOWN);
    expect((await put("three")).code).toBe(0);
    expect(down === 0 || world.fired.size > 0).toBe(true);
    world.faults.clear();
    expect((await run("get", "page", "-")).stdout.toString()).toBe("three");
    expect((await run("repair", "page")).code).toBe(0);
    expect(new Set(await generations())).toEqual(new Set([down === 0 ? 3 : expect.any(Number)]));
    expect(Math.max(...(await generations()))).toBeLessThan(5);
  });
});

describe("damage in a majority", () => {
  test("counts by the generation that it states, so that a put goes above it and stays", async () => {
    await tamper(MAJORITY, (bytes) => bytes.subarray(0, bytes.length - 20));
    for (const region of REGIONS.slice(4)) {
      await world.tamper(region, NAME, (bytes) => bytes.subarray(0, bytes.length - 20));
    }
    expect((await put("three")).code).toBe(0);
    expect(await generations()).toEqual(REGIONS.map(() => 3));
    expect((await run("repair", "page")).code).toBe(0);
    expect((await run("get", "page", "-")).stdout.toString()).toBe("three");
  });

  test("that states no generation is replaced only once every region has answered", async () => {
    await tamper(MAJORITY, () => Buffer.from("<html>"));
    world.faults.set(REGIONS[5], DOWN);
    const refused = await put("three");
    expect(world.fired.get(REGIONS[5])).toBeGreaterThan(0);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("MANIFEST_INVALID")]);
    world.faults.clear();
    expect((await put("three")).code).toBe(0);
    expect(await generations()).toEqual(REGIONS.map(() => 3));
  });

  test("that states a generation far ahead does not use it up", async () => {
    await tamper(MAJORITY, (bytes) =>
      Buffer.from(bytes.toString().replace(/"generation":\d+/, '"generation":9007199254740990')),
    );
    expect((await put("three")).code).toBe(0);
    expect(await generations()).toEqual(REGIONS.map(() => 3));
  });
});
