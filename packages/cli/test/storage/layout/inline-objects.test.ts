/** Objects that travel inside their manifests, through the commands that list, check, mend and sign. */
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manifestName, REGIONS, startTestWorld, type World } from "../../world.ts";

const KEY = "data/small.json";
const BODY = randomBytes(3_000);

let world: World;
beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: 1_000_000 });
  await world.put(KEY, BODY);
});
afterEach(() => world.close());

const run = async (...args: readonly string[]): Promise<unknown> =>
  JSON.parse((await world.run([...args, "--json"])).stdout.toString());

test("an inline object has manifests alone, is listed with its length, and is sound", async () => {
  expect(await world.names()).toEqual(REGIONS.map((region) => `${region}/${manifestName(KEY)}`));
  expect(await run("ls", "--long")).toMatchObject({ objects: [{ key: KEY, bytes: BODY.length }] });
  expect(await run("verify")).toMatchObject({ objects: [{ key: KEY, sound: true, chunks: 0 }] });
  expect(await run("verify", "--quick")).toMatchObject({ objects: [{ key: KEY, sound: true }] });
});

test("repair writes manifests that are lost or damaged again, and the object is the same", async () => {
  const before = await world.read("tokyo", manifestName(KEY));
  await world.tamper("tokyo", manifestName(KEY), () => undefined);
  await world.tamper("paulo", manifestName(KEY), (bytes) => bytes.subarray(0, -9));
  expect(await world.verify(KEY)).toMatchObject({ sound: false });
  await run("repair", KEY);
  for (const region of REGIONS) expect(await world.read(region, manifestName(KEY))).toEqual(before);
  expect(await world.get(KEY)).toEqual(BODY);
});

test("a manifest whose content was changed is not believed: another region's is read", async () => {
  await world.tamper(REGIONS[0], manifestName(KEY), (bytes) => {
    const manifest = JSON.parse(bytes.toString()) as { inline: string };
    const content = Buffer.from(manifest.inline, "base64");
    content[7]! ^= 1;
    return Buffer.from(JSON.stringify({ ...manifest, inline: content.toString("base64") }));
  });
  expect(await world.get(KEY)).toEqual(BODY);
  expect(await world.verify(KEY)).toMatchObject({ sound: false });
});

test("keys apply takes it for current, and gc leaves it", async () => {
  expect(await run("keys", "apply")).toEqual({ objects: [{ key: KEY, outcome: "current" }] });
  expect(await run("gc", "--delete", "--older-than", "1h")).toMatchObject({ uploads: [] });
  expect(await world.get(KEY, { start: 100, end: 200 })).toEqual(BODY.subarray(100, 200));
});
