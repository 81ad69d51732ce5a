import { randomBytes, randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { manifestName } from "@agarose/core/format";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";
import { readManifest } from "@agarose/storage/objects/manifests";
import { keyGroups, type KeyGroup } from "@agarose/storage/listing/key-groups";
import type { AgeOf } from "@agarose/storage/listing/region-clocks";
import { commonPrefix, expireObject, type ExpireOutcome } from "@agarose/storage/maintenance/expire-objects";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RULES = [
  { prefix: "tmp/", time: DAY_MS },
  { prefix: "tmp/week/", time: 7 * DAY_MS },
];
const { signal } = new AbortController();

let world: World;
beforeAll(async () => {
  world = await startTestWorld();
});
afterAll(() => world.close());

const put = (key: string): Promise<{ generation: number }> => world.put(key, randomBytes(5_000));

async function groupOf(key: string): Promise<KeyGroup> {
  for await (const group of keyGroups(world.stores, key, signal)) if (group.key === key) return group;
  throw new Error(`${key} is not listed`);
}

/** Judges a listed object as if the regions had stored it so long ago, each by its own clock. */
function expire(
  group: KeyGroup,
  hoursOf: (region: string) => number,
  dryRun = false,
): Promise<ExpireOutcome | undefined> {
  const ageOf: AgeOf = ({ store }) => hoursOf(store.region.name) * HOUR_MS;
  const config = { ...world.config, expire: RULES };
  return expireObject(group, world.parts({ config, trust: async () => {} }), { ageOf, dryRun });
}

describe("an object", () => {
  test("is removed once it is as old as its rule says, and not an hour before", async () => {
    await put("tmp/a");
    expect(await expire(await groupOf("tmp/a"), () => 23)).toBeUndefined();
    expect(await expire(await groupOf("tmp/a"), () => 24)).toMatchObject({ outcome: "removed", bytes: 5_000 });
    await expect(world.get("tmp/a")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    expect(await world.names("chunks/tmp/a!")).toEqual([]);
  });

  test("goes by the rule of the longest prefix, and without a rule it stays", async () => {
    await put("tmp/week/a");
    await put("photos/a");
    expect(await expire(await groupOf("tmp/week/a"), () => 6 * 24)).toBeUndefined();
    expect(await expire(await groupOf("photos/a"), () => 1_000_000)).toBeUndefined();
    expect(await expire(await groupOf("tmp/week/a"), () => 7 * 24)).toMatchObject({ outcome: "removed" });
  });

  test("is as old as a majority of the regions say, whatever the clocks of the others are", async () => {
    await put("tmp/clocks");
    const minority = new Set<string>(REGIONS.slice(0, 3));
    const hoursOf = (region: string): number => (minority.has(region) ? 1_000_000 : 1);
    expect(await expire(await groupOf("tmp/clocks"), hoursOf)).toBeUndefined();
    expect(await expire(await groupOf("tmp/clocks"), (region) => (minority.has(region) ? -5 : 1_000))).toBeUndefined();
  });

  test("that is due stays in a dry run", async () => {
    await put("tmp/dry");
    expect(await expire(await groupOf("tmp/dry"), () => 25, true)).toMatchObject({ outcome: "due" });
    expect((await world.get("tmp/dry")).length).toBe(5_000);
  });

  test("is removed although a minority holds an older version, and with the tombstone of a run that was killed", async () => {
    for (const [key, other] of [
      ["tmp/stale", "older version"],
      // A removal that was begun is completed first, and then nothing is left to remove.
      ["tmp/killed", "tombstone"],
    ] as const) {
      await put(key);
      const older = await world.read(REGIONS[0], manifestName(key));
      await put(key);
      const current = await world.read(REGIONS[0], manifestName(key));
      await world.run(["rm", key]);
      const tombstone = await world.read(REGIONS[0], manifestName(key));
      for (const [index, store] of world.stores.entries()) {
        const bytes = index > 0 ? current : other === "tombstone" ? tombstone : older;
        await store.put(manifestName(key), bytes, { bytes: bytes.length, contentType: "application/json" });
      }
      const outcome = await expire(await groupOf(key), () => 25);
      if (other === "tombstone") expect(outcome).toBeUndefined();
      else expect(outcome).toMatchObject({ outcome: "removed" });
      await expect(world.get(key), other).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    }
  });

  test("whose removal was killed with the tombstone in a majority is removed by the next run, however young that is", async () => {
    await put("tmp/killed");
    const store = world.stores.find(({ region }) => region.name === REGIONS[5])!;
    const response = await store.get(manifestName("tmp/killed"));
    const before = Buffer.from(await new Response(response.body as BodyInit).arrayBuffer());
    await world.run(["rm", "tmp/killed"]);
    await store.put(manifestName("tmp/killed"), before, { bytes: before.length, contentType: "application/json" });
    const listed = await groupOf("tmp/killed");
    expect(await expire(listed, () => 0, true)).toMatchObject({ outcome: "due" });
    expect(await expire(listed, () => 0)).toMatchObject({ outcome: "removed" });
    const left = await store.get(manifestName("tmp/killed"));
    expect(JSON.parse(await new Response(left.body as BodyInit).text())).toMatchObject({ deleted: true });
    expect(await expire(await groupOf("tmp/killed"), () => 0), "nothing is left to do").toBeUndefined();
    expect(await expire(await groupOf("tmp/killed"), () => 1_000), "nor of an old tombstone").toBeUndefined();
  });

  test("that is put behind a listed tombstone is not expired; a removal of it that was killed is completed", async () => {
    await put("tmp/behind");
    await world.run(["rm", "tmp/behind"]);
    const name = manifestName("tmp/behind");
    const write = (region: number, text: string): Promise<unknown> => {
      const bytes = Buffer.from(text);
      return world.stores[region]!.put(name, bytes, { bytes: bytes.length, contentType: "application/json" });
    };
    const read = async (region: number): Promise<string> =>
      new Response((await world.stores[region]!.get(name)).body as BodyInit).text();
    const first = await read(0);
    await put("tmp/behind");
    const object = await read(0);
    await world.run(["rm", "tmp/behind"]);
    const second = await read(0);
    // The listing is of the first tombstone, and one region has missed it.
    for (const region of REGIONS.keys()) await write(region, region === 5 ? object : first);
    const group = await groupOf("tmp/behind");
    // Between the read of the tombstone and its removal, the object is put, and a removal of it is killed.
    let reads = 0;
    let change: Promise<unknown> | undefined;
    for (const region of REGIONS) {
      world.faults.set(region, async (request, _response, asked) => {
        if (request.method !== "GET" || asked !== name || ++reads === 1) return false;
        change ??= Promise.all([...REGIONS.keys()].map((at) => write(at, at === 0 ? second : object)));
        await change;
        return false;
      });
    }
    const outcome = await expire(group, () => 0);
    world.faults.clear();
    expect(change, "the fault fired").toBeDefined();
    expect(outcome).toMatchObject({ outcome: "skipped" });
    // The removal had begun, so it may take effect at any time: under its own generation, above the object's.
    const { generation } = JSON.parse(second) as { generation: number };
    expect(JSON.parse(await read(3))).toMatchObject({ deleted: true, generation: generation + 1 });
  });

  test("that another writer replaces after the listing stays", async () => {
    await put("tmp/replaced");
    const group = await groupOf("tmp/replaced");
    const { generation } = await put("tmp/replaced");
    expect(await expire(group, () => 25), "the listing is older than the object").toMatchObject({ outcome: "skipped" });
    const readAgain = { ...(await groupOf("tmp/replaced")) };
    // The replacement comes between the read of the manifest and the removal.
    let isReplaced = false;
    for (const region of REGIONS) {
      world.faults.set(region, async (request, _response, name) => {
        if (request.method !== "PUT" || !name.startsWith("claims/tmp/replaced!") || isReplaced) return false;
        isReplaced = true;
        world.faults.clear();
        await put("tmp/replaced");
        return false;
      });
    }
    expect(await expire(readAgain, () => 25)).toMatchObject({ outcome: "skipped" });
    expect(isReplaced, "the fault fired").toBe(true);
    const { generation: newest } = await readManifest("tmp/replaced", world.parts());
    expect(newest).toBeGreaterThan(generation);
    expect((await world.get("tmp/replaced")).length).toBe(5_000);
  });

  test("of which too few regions list a manifest stays", async () => {
    await put("tmp/silent");
    for (const region of REGIONS.slice(0, 3)) world.faults.set(region, DOWN);
    const listed: KeyGroup[] = [];
    const groups = keyGroups(world.stores, "tmp/silent", signal, { onFailure: () => {} });
    for await (const group of groups) listed.push(group);
    world.faults.clear();
    expect(world.fired.get(REGIONS[0]!), "the fault fired").toBeGreaterThan(0);
    expect(await expire(listed[0]!, () => 1_000)).toBeUndefined();
  });
});

test("what is listed is what all rules have in common", () => {
  const prefixOf = (...prefixes: string[]): string =>
    commonPrefix({ expire: prefixes.map((prefix) => ({ prefix, time: DAY_MS })) });
  expect([prefixOf("tmp/", "tmp/week/"), prefixOf("tmp/", "test/"), prefixOf("a", "b"), prefixOf("logs/")]).toEqual([
    "tmp/",
    "t",
    "",
    "logs/",
  ]);
});

describe("agarose expire", () => {
  const path = `expire-${randomUUID()}.json`;
  const run = async (rules: readonly object[], ...args: string[]) => {
    const config = { ...(JSON.parse(await readFile(world.configPath, "utf8")) as object), expire: rules };
    await writeFile(`${world.dir}/${path}`, JSON.stringify(config));
    const { code, stdout, stderr } = await world.run(["expire", "--config", path, ...args]);
    return { code, stdout: stdout.toString(), problem: stderr };
  };

  test("without a rule says what to add", async () => {
    const { code, problem } = await run([]);
    expect([code, problem]).toEqual([2, expect.stringContaining("`expire` in the configuration has no rule")]);
  });

  test("leaves young objects, and counts them nowhere", async () => {
    await put("tmp/young");
    const { code, stdout } = await run([{ prefix: "tmp/", time: "1h" }], "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ expired: 0, skipped: 0, failed: 0, objects: [] });
    expect((await world.get("tmp/young")).length).toBe(5_000);
  });

  test("--dry-run writes nothing, and judges by the clock of the regions where this machine's is wrong", async () => {
    const behind = await startTestWorld({ nowMs: () => Date.now() - 3 * DAY_MS });
    try {
      await behind.put("tmp/young", randomBytes(5_000));
      const config = JSON.parse(await readFile(behind.configPath, "utf8")) as object;
      await writeFile(behind.configPath, JSON.stringify({ ...config, expire: [{ prefix: "tmp/", time: "1d" }] }));
      const methods = new Set<string>();
      for (const region of REGIONS) behind.faults.set(region, ({ method }) => (methods.add(method!), false));
      const { code, stdout } = await behind.run(["expire", "--dry-run", "--json"]);
      expect([code, JSON.parse(stdout.toString())]).toMatchObject([0, { expired: 0 }]);
      expect([...methods]).toEqual(["GET"]);
    } finally {
      await behind.close();
    }
  });

  test.each([
    [{ prefix: "", time: "1d" }, "is empty"],
    [{ prefix: "tmp/", time: "1s" }, "must be hours or days"],
  ])("refuses the rule %j", async (rule, reason) => {
    const { code, problem } = await run([rule]);
    expect([code, problem]).toEqual([2, expect.stringContaining(reason)]);
  });
});
