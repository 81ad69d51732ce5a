/** Objects that are rewritten under another code, and what that takes. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manifestName, type Manifest } from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";
import { loadEncoder } from "@agarose/storage/parts";
import { recodeObject } from "@agarose/storage/maintenance/recode-object";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

async function run(...args: string[]) {
  const { code, stdout, stderr } = await world.run(["recode", ...args, "--json"]);
  return { code, stderr, answer: JSON.parse(stdout.toString()) as Record<string, unknown> };
}

async function configure(change: (json: { regions: object[] }) => object): Promise<void> {
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as { regions: object[] };
  await writeFile(world.configPath, JSON.stringify(change(json)));
}

async function manifestOf(key: string): Promise<Manifest> {
  return JSON.parse((await world.read("paulo", manifestName(key))).toString()) as Manifest;
}

test("stores again what has another code, as it was, and nothing else", async () => {
  const bodies = [randomBytes(9_001), randomBytes(2_000)];
  const about = { contentType: "text/css", headers: { "cache-control": "no-cache" } };
  const first = await world.put("a/one", bodies[0]!, about);
  await world.put("b", bodies[1]!);
  await configure((json) => ({ ...json, code: { k: 2, m: 4 } }));
  await world.put("a/two", bodies[1]!, { config: { ...world.config, code: { k: 2, m: 4 } } });
  const { code, answer } = await run("a/");
  expect(code).toBe(0);
  expect(answer).toMatchObject({
    objects: [{ key: "a/one", outcome: "recoded", from: "4+2", to: "2+4" }],
    recoded: 1,
    failed: 0,
  });
  const manifest = await manifestOf("a/one");
  expect(manifest).toMatchObject({ ...about, k: 2, m: 4, generation: 2 });
  expect(manifest.upload).not.toBe(first.upload);
  expect(await manifestOf("a/two")).toMatchObject({ generation: 1 });
  expect(await manifestOf("b")).toMatchObject({ k: 4, generation: 1 });
  expect(await world.get("a/one")).toEqual(bodies[0]);
  expect(await world.verify("a/one")).toMatchObject({ sound: true });
  expect((await run("a/")).answer).toMatchObject({ objects: [], recoded: 0 });
});

test("--code takes the place of the configuration's, and an unsafe one is refused before anything happens", async () => {
  const body = randomBytes(3_000);
  await world.put("key", body);
  expect(await run("--code", "3+3")).toMatchObject({ code: 0, answer: { recoded: 1 } });
  expect(await manifestOf("key")).toMatchObject({ k: 3, m: 3 });
  expect(await world.get("key")).toEqual(body);
  expect(await run("--code", "5+1")).toMatchObject({ answer: { error: { code: "LAYOUT_UNSAFE" } } });
  expect(await run("--code", "five")).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
  expect(await manifestOf("key")).toMatchObject({ generation: 2 });
});

test("the hottest of a log get another code, and what has cooled gets its own again", async () => {
  const names = ["cold", "warm", "hot", "hotter"];
  for (const name of names) await world.put(name, randomBytes(4_000));
  const log = join(world.dir, "reads.csv");
  const reads = (counts: readonly number[]): Promise<void> => {
    const lines = names.flatMap((name, index) => Array.from({ length: counts[index]! }, () => `1,ec/${name},4000`));
    return writeFile(log, ["seconds,key,bytes", "2,other/hottest,4000", ...lines].join("\n"));
  };
  const codesOf = async (): Promise<string[]> =>
    Promise.all(names.map(async (name) => manifestOf(name).then(({ k, m }) => `${k}+${m}`)));
  const hottest = ["--hottest", "50%", "--log", log, "--log-prefix", "ec/", "--code", "2+4"];

  await reads([1, 2, 30, 40]);
  expect(await run(...hottest, "--dry-run")).toMatchObject({ code: 0, answer: { recoded: 2 } });
  expect(await run(...hottest)).toMatchObject({ code: 0, answer: { recoded: 2, failed: 0 } });
  expect(await codesOf()).toEqual(["4+2", "4+2", "2+4", "2+4"]);
  expect(await run(...hottest), "the same again").toMatchObject({ answer: { recoded: 0 } });

  await reads([1, 90, 2, 40]);
  expect(await run(...hottest)).toMatchObject({ code: 0, answer: { recoded: 2, failed: 0 } });
  expect(await codesOf()).toEqual(["4+2", "2+4", "4+2", "2+4"]);
  for (const name of names) expect(await world.verify(name)).toMatchObject({ sound: true });
});

test.each([
  ["--log without --hottest", ["--log", "reads.csv", "--code", "2+4"]],
  ["--hottest without --log", ["--hottest", "5%", "--code", "2+4"]],
  ["--hottest without a code", ["--hottest", "5%", "--log", "reads.csv"]],
  [
    "a prefix that no key of the log has",
    ["--hottest", "5%", "--log", "reads.csv", "--code", "2+4", "--log-prefix", "x/"],
  ],
])("%s is refused", async (_, args) => {
  await writeFile(join(world.dir, "reads.csv"), "seconds,key,bytes\n1,key,1\n");
  expect(await run(...args)).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
});

test("--dry-run prints what it takes, and stores nothing", async () => {
  await configure((json) => ({
    ...json,
    code: { k: 2, m: 4 },
    regions: json.regions.map((region, index) => ({ ...region, egressUsdPerGb: index, storageUsdPerGbMonth: 100 })),
  }));
  await world.put("key", randomBytes(8_000));
  const before = await world.names();
  const { code, answer } = await run("--dry-run", "--rate", "1KB/s");
  expect(code).toBe(0);
  // Six chunks of 2,000 bytes become six of 4,000, and the dearest four of the old ones are read.
  expect(answer).toMatchObject({ recoded: 1, readBytes: 8_000, writtenBytes: 24_000, requests: 4 + 6 + 4 * 6 });
  expect(answer["readUsdMax"]).toBeCloseTo((2_000 / 1e9) * (5 + 4 + 3 + 2), 15);
  expect(answer["usdPerMonth"]).toBeCloseTo((12_000 / 1e9) * 100, 12);
  expect(await world.names()).toEqual(before);
  const text = (await world.run(["recode", "--dry-run", "--rate", "1KB/s"])).stdout.toString();
  expect(text).toContain("1 object, 1 to be recoded, 0 failed");
  expect(text).toContain("0.01 hours at that rate");
  expect(await run("--rate", "1KB/s")).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
});

test("places chunks again after the regions of the configuration have changed, and the object reads", async () => {
  const body = randomBytes(7_777);
  await world.put("key", body);
  await configure((json) => ({ ...json, code: { k: 3, m: 2 }, regions: json.regions.slice(0, 5) }));
  expect((await run()).answer).toMatchObject({ recoded: 1, failed: 0 });
  const { placement } = await manifestOf("key");
  expect(placement).not.toContain(REGIONS[5]);
  expect(await world.get("key")).toEqual(body);
});

test("a region that drains is emptied of all but manifests while a reader reads, and can then be left out", async () => {
  const big = { ...world.config, code: { k: 3, m: 2 }, stripeBytes: 1_000_000 };
  const bodies = { coded: randomBytes(2_300_000), lists: randomBytes(2_100_000) };
  await world.put("coded", bodies.coded, { config: { ...big, code: { k: 3, m: 3 } } });
  await world.put("lists", bodies.lists, {
    config: { ...big, regions: big.regions.slice(0, 5) },
    stores: world.stores,
  });
  const drained = REGIONS[5];
  expect((await manifestOf("coded")).placement).toContain(drained);
  const { placement, leaves } = await manifestOf("lists");
  expect(placement).not.toContain(drained);
  expect(leaves).not.toContain(drained);
  const drain = (json: { regions: object[] }): object => ({
    ...json,
    code: { k: 3, m: 2 },
    stripeBytes: 1_000_000,
    regions: json.regions.map((region, index) => (index === 5 ? { ...region, drain: true } : region)),
  });
  await configure(drain);
  expect((await run("--dry-run")).answer).toMatchObject({ recoded: 1, failed: 0 });
  let reads = 0;
  // Before each thing that the run stores or removes in one of the regions.
  world.faults.set(REGIONS[0], async ({ method }) => {
    if (method === "GET" || method === "HEAD") return false;
    expect((await world.get("coded")).equals(bodies.coded)).toBe(true);
    reads++;
    return false;
  });
  expect((await run()).answer).toMatchObject({ recoded: 1, failed: 0 });
  world.faults.clear();
  // The claim, a chunk or more, and the manifest.
  expect(reads).toBeGreaterThanOrEqual(3);
  expect((await world.get("coded")).equals(bodies.coded)).toBe(true);
  const moved = await manifestOf("coded");
  expect([...moved.placement, ...moved.leaves!]).not.toContain(drained);
  expect(await run()).toMatchObject({ code: 0, answer: { recoded: 0 } });
  await configure((json) => ({ ...json, regions: json.regions.slice(0, 5) }));
  expect((await world.run(["verify", "coded", "lists"])).code).toBe(0);
});

test("a leaf list alone in a region that drains is left behind, too", async () => {
  const code = { k: 2, m: 2 };
  const stripeBytes = 1_000_000;
  const survive = { regions: 1, providers: 1 };
  await world.put("key", randomBytes(1_500_000), { config: { ...world.config, code, stripeBytes, survive } });
  const { placement, leaves = [] } = await manifestOf("key");
  const drained = leaves.find((name) => !placement.includes(name))!;
  expect(drained).toBeDefined();
  await configure((json) => ({
    ...json,
    code,
    stripeBytes,
    survive,
    regions: json.regions.map((region) => ({ ...region, drain: (region as { name: string }).name === drained })),
  }));
  expect((await run()).answer).toMatchObject({ recoded: 1, failed: 0 });
  expect((await manifestOf("key")).leaves).not.toContain(drained);
  expect((await run()).answer).toMatchObject({ recoded: 0, failed: 0 });
});

test("a drain that breaks the promise of `survive`, or of every region, is refused before anything happens", async () => {
  await world.put("key", randomBytes(3_000));
  await configure((json) => ({ ...json, regions: json.regions.map((region, i) => ({ ...region, drain: i === 5 })) }));
  expect(await run()).toMatchObject({ code: 1, answer: { error: { code: "LAYOUT_UNSAFE" } } });
  await configure((json) => ({ ...json, regions: json.regions.map((region) => ({ ...region, drain: true })) }));
  expect((await run()).answer).toMatchObject({ error: { code: "CONFIG_INVALID" } });
  expect(await manifestOf("key")).toMatchObject({ generation: 1 });
});

test("an object that cannot be read fails, the others are stored, and it is as it was", async () => {
  const body = randomBytes(2_500);
  const bad = await world.put("bad", body);
  await world.put("good", body);
  await configure((json) => ({ ...json, code: { k: 2, m: 4 } }));
  for (const name of await world.names(`chunks/bad!${bad.upload}/`)) {
    const [region = "", ...rest] = name.split("/");
    if (["frankfurt", "dublin", "virginia"].includes(region)) await world.store(region).remove([rest.join("/")]);
  }
  const { code, answer } = await run();
  expect(code).toBe(1);
  expect(answer).toMatchObject({ recoded: 1, failed: 1 });
  expect(JSON.stringify(answer["objects"])).toContain("NOT_ENOUGH_CHUNKS");
  expect(await manifestOf("bad")).toMatchObject({ generation: 1, upload: bad.upload });
  expect(await manifestOf("good")).toMatchObject({ k: 2 });
});

test("reads around a region that is down, and does not hide a put that comes meanwhile", async () => {
  const body = randomBytes(5_000);
  await world.put("key", body);
  world.faults.set("tokyo", DOWN);
  const config = { ...world.config, code: { k: 2, m: 4 } };
  const recoded = await recodeObject("key", world.parts({ config }));
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(recoded).toMatchObject({ outcome: "stored", generation: 2, missing: [expect.any(Number)] });
  world.faults.clear();
  const newer = randomBytes(1_000);
  const encoder = async () => {
    await world.put("key", newer);
    return loadEncoder();
  };
  const other = world.parts({ config: { ...config, code: { k: 3, m: 3 } }, encoder });
  await expect(recodeObject("key", other)).rejects.toMatchObject({ code: "REPLACED_MEANWHILE" });
  expect(await world.get("key")).toEqual(newer);
});
