/** `agarose report` over buckets that lose things, and PoPs in workerd. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { chunkPlace, DOWN, startTestWorld, type World } from "../../../test/world.ts";
import type { Facts } from "./gather.ts";

const ADMIN_TOKEN = "admin-token-of-tests";
/** A key that would be an element of the page. */
const HOSTILE = `<img src=x onerror="alert(1)">`;
let world: World;
let pops: Pops;

beforeAll(async () => {
  world = await startTestWorld();
  await world.put("sound", Buffer.alloc(9_000, 1));
  await world.put(HOSTILE, Buffer.alloc(6_000, 2));
  const worn = await world.put("worn", Buffer.alloc(6_000, 3));
  for (const chunk of [0, 1]) await world.tamper(...chunkPlace(worn, chunk), () => undefined);
  const regions = world.config.regions.map(({ name, url }) => ({ name, url }));
  const vars = { REGIONS: JSON.stringify(regions), ADMIN_TOKEN, UNSIGNED: "true" };
  pops = await startPops({ pops: [{ name: "fra", vars }] });
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as { regions: object[] };
  const priced = config.regions.map((region) => ({ ...region, storageUsdPerGbMonth: 0.02 }));
  await writeFile(world.configPath, JSON.stringify({ ...config, regions: priced, pops: pops.pops }));
  for (let i = 0; i < 5; i++) {
    await (await fetch(`${pops.pops[0]!.url}/o/${encodeURIComponent(HOSTILE)}`)).arrayBuffer();
  }
  await pops.cron();
});

afterAll(async () => {
  await pops.dispose();
  await world.close();
});

async function report(...args: string[]): Promise<{ code: number; facts: Facts; page: string; stderr: string }> {
  const output = join(world.dir, "report.html");
  const env = { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN };
  const { code, stdout, stderr } = await world.run(["report", "-o", output, ...args, "--json"], env);
  return {
    code,
    facts: JSON.parse(stdout.toString()) as Facts,
    page: await readFile(output, "utf8"),
    stderr: stderr.toString(),
  };
}

test("names what is nearest to loss, and fails while an object needs repair", async () => {
  const { code, facts, page } = await report();
  expect(code).toBe(1);
  const { m } = world.config.code as { m: number };
  expect(facts.redundancy).toEqual([
    { beyondK: m - 2, objects: 1 },
    { beyondK: m, objects: 2 },
  ]);
  expect(facts.endangered).toMatchObject([{ key: "worn", state: "damaged", beyondK: m - 2 }]);
  expect(facts.attention).toContain("the first object to repair is worn: run agarose scrub");
  expect(page).toContain("worn");
});

test("shows what is stored and paid, and what a PoP caches and measures", async () => {
  const { facts, page } = await report();
  expect(facts.use).toMatchObject({ objects: 3, objectBytes: 21_000, orphanedBytes: 0 });
  expect(facts.use.usdPerMonth).toBeCloseTo((facts.use.storedBytes / 1e9) * 0.02, 12);
  const { state, problems } = facts.pops[0]!;
  expect(problems).toEqual([]);
  expect(state!.popular).toEqual([{ key: HOSTILE, popularity: expect.any(Number) }]);
  expect(state!.regions.map(({ name }) => name)).toEqual(world.config.regions.map(({ name }) => name));
  for (const { p50Ms, p99Ms } of state!.regions) expect(p99Ms!).toBeGreaterThanOrEqual(p50Ms!);
  for (const heading of ["Redundancy", "Storage", "PoP fra", "Most popular objects"]) expect(page).toContain(heading);
});

test("a page asks for nothing and runs nothing, whatever keys are called", async () => {
  const { page } = await report();
  expect(page).toContain("&#60;img src=x");
  expect(page).not.toMatch(/<(?:img|script|link|iframe)|\son\w+="|url\(|@import|https?:\/\/(?!127\.0\.0\.1)/);
});

test("only keys below a prefix, and 0 when nothing needs attention", async () => {
  const { code, facts } = await report("--prefix", "sound");
  expect(code).toBe(0);
  expect(facts).toMatchObject({ prefix: "sound", use: { objects: 1 }, attention: [], endangered: [] });
});

test("a region that is down is missing and named, and an object keeps what the others hold", async () => {
  world.faults.set("dublin", DOWN);
  const { code, facts, page } = await report("--prefix", "sound");
  world.faults.clear();
  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  expect(code).toBe(1);
  expect(facts.attention[0]).toMatch(/^dublin is missing in this report: /);
  expect(page).toContain("did not answer");
});

test("a file that cannot be written is refused before the page is lost", async () => {
  const run = await world.run(["report", "-o", join(world.dir, "no/such/folder.html")]);
  expect(run.code).toBe(2);
  expect(run.stderr.toString()).toContain("cannot be written");
});
