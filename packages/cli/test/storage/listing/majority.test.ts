/** Messages of commands while too few regions can be listed, or while only a minority holds an object. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DOWN, REGIONS, startTestWorld, type Fault, type World } from "../../world.ts";

/** Of six regions: with four of them down, what the others have may be in no majority. */
const MOST = REGIONS.slice(2);
const NO_MANIFEST: Fault = (request, response, name) => {
  if (request.method !== "PUT" || !name.startsWith("manifests/")) return false;
  response.writeHead(503).end();
  return true;
};

let world: World;
beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: 100_000, survive: { regions: 1, providers: 1 } });
  await mkdir(join(world.dir, "d"));
  await writeFile(join(world.dir, "d/page"), "version one");
  expect((await world.run(["sync", "d", "d/"])).code).toBe(0);
});
afterEach(() => world.close());

const fail = (regions: readonly string[], fault: Fault): void =>
  regions.forEach((name) => world.faults.set(name, fault));
const firedIn = (regions: readonly string[]): boolean => regions.every((name) => (world.fired.get(name) ?? 0) > 0);

async function sync(): Promise<{ code: number; kept?: number; unchanged?: number; objects: { outcome: string }[] }> {
  const { code, stdout } = await world.run(["sync", "d", "d/", "--json"]);
  return { code, ...JSON.parse(stdout.toString()) };
}

describe("sync", () => {
  test("of a file that only a minority has taken fails while the others are down, and does not call it kept", async () => {
    await writeFile(join(world.dir, "d/page"), "version TWO");
    fail(MOST, NO_MANIFEST);
    expect((await sync()).code).toBe(1);
    expect(firedIn(MOST)).toBe(true);
    fail(MOST, DOWN);
    const again = await sync();
    expect(again).toMatchObject({ code: 1, objects: [{ outcome: "failed", error: { code: "NO_QUORUM" } }] });
    world.faults.clear();
    expect(await sync()).toMatchObject({ code: 0 });
    expect((await world.get("d/page")).toString()).toBe("version TWO");
  });

  test("with the buckets of a majority misnamed fails, and does not call anything kept or unchanged", async () => {
    const config = JSON.parse(await readFile(world.configPath, "utf8"));
    for (const region of config.regions) if (MOST.includes(region.name)) region.bucket = `${region.bucket}-typo`;
    await writeFile(world.configPath, JSON.stringify(config));
    expect(await sync()).toMatchObject({ code: 1, kept: 0, unchanged: 0, objects: [{ outcome: "failed" }] });
    expect((await world.run(["put", "d/page", "--key", "d/page"])).code).toBe(1);
  });

  test("calls an object kept that a majority has, and enters it in the repair queue for the region that is down", async () => {
    fail(["tokyo"], DOWN);
    expect(await sync()).toMatchObject({ code: 0, kept: 1, unchanged: 0 });
    expect(firedIn(["tokyo"])).toBe(true);
    world.faults.clear();
    expect((await world.names("repairs/")).length).toBeGreaterThanOrEqual(4);
    expect((await world.run(["repair", "--queued"])).code).toBe(0);
    expect(await world.names("repairs/")).toEqual([]);
    expect(await sync()).toMatchObject({ code: 0, kept: 0, unchanged: 1 });
  });

  test("--dry-run enters nothing in the repair queue", async () => {
    fail(["tokyo"], DOWN);
    expect((await world.run(["sync", "d", "d/", "--dry-run"])).code).toBe(0);
    world.faults.clear();
    expect(await world.names("repairs/")).toEqual([]);
  });
});

describe("while most regions cannot be listed", () => {
  beforeEach(async () => {
    // The earlier put is in these regions only, as far as the others know.
    const config = JSON.parse(await readFile(world.configPath, "utf8"));
    const others = { expire: [{ prefix: "d/", time: "1d" }] };
    await writeFile(world.configPath, JSON.stringify({ ...config, ...others }));
    fail(MOST, DOWN);
  });

  test.each([
    ["ls", "none/"],
    ["verify", "--prefix", "none/"],
    ["verify", "--quick", "--prefix", "none/"],
    ["repair", "--prefix", "none/"],
    ["repair", "--queued"],
    ["scrub", "--prefix", "none/"],
    ["du", "none/"],
    ["recode", "none/"],
    ["expire"],
    ["keys", "apply", "--prefix", "none/"],
    ["gc", "none/"],
    ["rm", "--recursive", "none/"],
    ["sync", "--get", "none", "out"],
    ["migrate", "next.json"],
  ])("%s does not succeed, for it cannot know that there is nothing to do", async (...args) => {
    const config = JSON.parse(await readFile(world.configPath, "utf8"));
    await writeFile(join(world.dir, "next.json"), JSON.stringify({ ...config, regions: config.regions.slice(1) }));
    const { code, stdout, stderr } = await world.run(args);
    expect({ args, code, said: stdout.toString() + stderr }).toMatchObject({ code: 1 });
    expect(firedIn(MOST)).toBe(true);
    if (!["ls", "du", "expire", "gc"].includes(args[0]!)) expect(stderr).toContain("NO_QUORUM");
  });
});

test("a walk does not pass what it may have missed: its cursor stays before it", async () => {
  fail(MOST, DOWN);
  const run = await world.run(["verify", "--quick", "--cursor", "cursor"]);
  expect(run.code).toBe(1);
  world.faults.clear();
  const whole = await world.run(["verify", "--quick", "--cursor", "cursor", "--json"]);
  expect(JSON.parse(whole.stdout.toString())).toMatchObject({ objects: [{ key: "d/page" }], damaged: 0 });
});
