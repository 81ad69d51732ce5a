/** From one set of regions to another, in three steps. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { chunkName, chunkNameOf, manifestName, type Manifest } from "@agarose/core/format";
import { parseConfig } from "@agarose/storage/config/config";
import { storeExtra } from "@agarose/storage/maintenance/scrub/store-extra";
import { readManifest } from "@agarose/storage/objects/manifests";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

interface Json {
  readonly regions: readonly { readonly name: string; readonly bucket: string }[];
}

const [FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH] = REGIONS;
const CODE = { k: 2, m: 2 };
let world: World;
let whole: Json;

beforeEach(async () => {
  world = await startTestWorld({ survive: { regions: 1, providers: 1 } });
  whole = { ...(JSON.parse(await readFile(world.configPath, "utf8")) as Json), code: CODE } as Json;
});

afterEach(() => world.close());

/** Writes a configuration with these regions, and returns its path. */
async function configure(name: string, regions: readonly string[], more: object = {}): Promise<string> {
  const path = join(world.dir, name);
  const chosen = whole.regions.filter((region) => regions.includes(region.name));
  await writeFile(path, JSON.stringify({ ...whole, regions: chosen, ...more }));
  return path;
}

const OLD = [FIRST, SECOND, THIRD, FOURTH, FIFTH];
const NEW = [SECOND, THIRD, FOURTH, FIFTH, SIXTH];

async function migrate(...args: string[]) {
  const { code, stdout } = await world.run(["migrate", ...args, "--json"]);
  return { code, answer: JSON.parse(stdout.toString()) as Record<string, unknown> };
}

/** Stores an object by the configuration as it is, as another process would. */
async function put(key: string, bytes: Uint8Array): Promise<void> {
  const path = join(world.dir, "upload-file");
  await writeFile(path, bytes);
  expect((await world.run(["put", path, "--key", key])).code).toBe(0);
}

async function get(key: string): Promise<Buffer> {
  const { code, stdout, stderr } = await world.run(["get", key, "-"]);
  expect(code, stderr).toBe(0);
  return stdout;
}

async function manifestIn(region: string, key: string): Promise<Manifest> {
  return JSON.parse((await world.read(region, manifestName(key))).toString()) as Manifest;
}

async function regionsOfConfig(): Promise<{ name: string; drain?: boolean }[]> {
  return (JSON.parse(await readFile(world.configPath, "utf8")) as { regions: { name: string; drain?: boolean }[] })
    .regions;
}

test("a region is replaced by another one, and every object can be read at every step", async () => {
  await configure("agarose.config.json", OLD);
  const next = await configure("next.config.json", NEW);
  const bodies = new Map(Array.from({ length: 6 }, (_, i) => [`key-${i}`, randomBytes(1_000 + 700 * i)]));
  for (const [key, body] of bodies) await put(key, body);
  await put("removed", randomBytes(100));
  expect((await world.run(["rm", "removed"])).code).toBe(0);
  const readAll = async (): Promise<void> => {
    for (const [key, body] of bodies) expect((await get(key)).equals(body)).toBe(true);
  };
  const inFirst = await world.names("chunks/").then((names) => names.filter((name) => name.startsWith(`${FIRST}/`)));
  expect(inFirst.length).toBeGreaterThan(0);

  const before = await world.names();
  const dry = await migrate(next, "--dry-run", "--rate", "1KB/s");
  expect(dry).toMatchObject({ code: 0, answer: { recoded: expect.any(Number), failed: 0 } });
  expect(dry.answer["recoded"]).toBeGreaterThan(0);
  expect(await world.names()).toEqual(before);
  expect(await regionsOfConfig()).toHaveLength(OLD.length);

  expect(await migrate(next)).toMatchObject({ code: 0, answer: { step: 1, added: [SIXTH], left: [FIRST] } });
  expect(await regionsOfConfig()).toContainEqual(expect.objectContaining({ name: FIRST, drain: true }));
  await readAll();
  expect(await migrate(next), "the same again").toMatchObject({ code: 0, answer: { left: [FIRST] } });
  expect(await migrate(next, "--finish")).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });

  expect(await migrate(next, "--move")).toMatchObject({
    code: 0,
    answer: { recoded: dry.answer["recoded"], failed: 0 },
  });
  await readAll();
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { recoded: 0, completed: 0 } });
  for (const key of bodies.keys()) {
    const manifest = await manifestIn(SIXTH, key);
    expect([...manifest.placement, ...(manifest.leaves ?? [])]).not.toContain(FIRST);
  }
  expect(await manifestIn(SIXTH, "removed"), "the tombstone").toMatchObject({ key: "removed" });

  const { answer } = await migrate(next, "--finish");
  expect(answer, "the old chunks are there").toMatchObject({ error: { code: "USAGE", message: /`agarose gc`/ } });
  const chunks = (await world.names("chunks/")).filter((name) => name.startsWith(`${FIRST}/`));
  await world.store(FIRST).remove(chunks.map((name) => name.slice(FIRST.length + 1)));
  expect(await migrate(next, "--finish")).toMatchObject({ code: 0, answer: { step: 3 } });
  expect((await regionsOfConfig()).map(({ name }) => name)).toEqual(NEW);
  await readAll();
  expect((await world.run(["verify"])).code).toBe(0);
});

test("an added region gets the manifests of objects whose chunks stay, by copies alone", async () => {
  await configure("agarose.config.json", OLD, { code: { k: 1, m: 4 } });
  const next = await configure("next.config.json", REGIONS, { code: { k: 1, m: 4 } });
  const body = randomBytes(1_500);
  // Five copies in five regions stay where they are for the keys whose placement has not changed.
  for (let i = 0; i < 12; i++) await put(`key-${i}`, body);
  expect((await migrate(next)).code).toBe(0);
  const { answer } = await migrate(next, "--move");
  expect(answer).toMatchObject({ failed: 0 });
  expect(answer["completed"]).toBeGreaterThan(0);
  for (let i = 0; i < 12; i++) expect(await manifestIn(SIXTH, `key-${i}`)).toMatchObject({ key: `key-${i}` });
  expect(await migrate(next, "--finish")).toMatchObject({ code: 0 });
});

test("a region stays while it has an extra chunk, or a manifest says so, and a move takes both away", async () => {
  const config = parseConfig(await readFile(await configure("agarose.config.json", OLD), "utf8"), world.configPath);
  const next = await configure("next.config.json", [FIRST, SECOND, THIRD, FOURTH, SIXTH]);
  const key = "hot";
  const body = randomBytes(3_000);
  await put(key, body);
  expect((await manifestIn(FIFTH, key)).placement).toEqual([FIRST, SECOND, THIRD, FOURTH]);
  const stores = world.stores.filter(({ region }) => region.name !== SIXTH);
  const chunksLeft = async (): Promise<string[]> => {
    const names = await world.names("chunks/");
    return names.flatMap((name) => (name.startsWith(`${FIFTH}/`) ? name.slice(FIFTH.length + 1) : []));
  };
  await storeExtra(await readManifest(key, world.parts({ config, stores })), [FIFTH], world.parts({ config, stores }));
  const [extra] = await chunksLeft();
  expect(extra).toBe(chunkNameOf(await manifestIn(FIFTH, key), 4));

  await migrate(next);
  const { answer } = await migrate(next, "--finish");
  expect(answer).toMatchObject({ error: { code: "USAGE", details: { region: FIFTH, name: extra } } });
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { recoded: 1 } });
  expect(await manifestIn(SIXTH, key)).not.toHaveProperty("extra");
  expect(await migrate(next, "--finish"), "gc has not been here").toMatchObject({
    answer: { error: { code: "USAGE" } },
  });
  await world.store(FIFTH).remove(await chunksLeft());

  const both = world.parts({ config: parseConfig(await readFile(world.configPath, "utf8"), world.configPath) });
  await storeExtra(await readManifest(key, both), [FIFTH], both);
  await world.store(FIFTH).remove(await chunksLeft());
  expect(await migrate(next, "--finish"), "the manifest names it").toMatchObject({
    answer: { error: { code: "USAGE", details: { keys: [key] } } },
  });
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { recoded: 1 } });
  expect(await migrate(next, "--finish")).toMatchObject({ code: 0, answer: { step: 3 } });
  expect((await get(key)).equals(body)).toBe(true);
  expect((await world.run(["verify"])).code).toBe(0);
});

test("an interrupted move continues, and an object that cannot be moved is named", async () => {
  await configure("agarose.config.json", OLD);
  const next = await configure("next.config.json", NEW);
  for (let i = 0; i < 4; i++) await put(`key-${i}`, randomBytes(2_000));
  await migrate(next);
  // Three of five regions are no majority of six.
  for (const region of [SECOND, THIRD, FOURTH]) world.faults.set(region, DOWN);
  const failed = await migrate(next, "--move", "--cursor", join(world.dir, "move.cursor"));
  expect(failed.code).not.toBe(0);
  expect(world.fired.get(SECOND)).toBeGreaterThan(0);
  world.faults.clear();
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { failed: 0 } });
  expect(await migrate(next, "--move")).toMatchObject({ answer: { recoded: 0 } });
});

test("what a put leaves behind in a new region keeps the last step back", async () => {
  await configure("agarose.config.json", OLD);
  const next = await configure("next.config.json", REGIONS);
  await put("key", randomBytes(500));
  await migrate(next);
  expect((await migrate(next, "--move")).code).toBe(0);
  await world.tamper(SIXTH, manifestName("key"), () => undefined);
  const { code, answer } = await migrate(next, "--finish");
  expect([code, answer]).toMatchObject([2, { error: { code: "USAGE", message: /move again/ } }]);
  expect((await migrate(next, "--move")).code).toBe(0);
  expect((await migrate(next, "--finish")).code).toBe(0);
});

test("what cannot be done in one migration is refused, with what to do, and nothing is changed", async () => {
  const current = await configure("agarose.config.json", OLD);
  const before = await readFile(current, "utf8");
  const moved = (name: string, change: object): readonly object[] =>
    whole.regions.flatMap((region) => {
      if (!OLD.includes(region.name as (typeof OLD)[number])) return [];
      return region.name === name ? { ...region, ...change } : region;
    });
  const cases: [what: string, next: () => Promise<string>, words: RegExp][] = [
    [
      "another bucket",
      () => configure("n.json", [], { regions: moved(FIRST, { bucket: "elsewhere" }) }),
      /region a new name/,
    ],
    [
      "two other names at once",
      () =>
        configure("n.json", [], {
          regions: whole.regions.slice(0, 5).map((region, i) => (i < 2 ? { ...region, name: `renamed-${i}` } : region)),
        }),
      /renames 2 regions at once .*one after the other/,
    ],
    [
      "another name beside a new region",
      () => configure("n.json", [], { regions: [...moved(FIRST, { name: "renamed" }), whole.regions.at(-1)!] }),
      /adds .* rename in a separate migration/,
    ],
    [
      "a former name of its own",
      () => configure("n.json", [], { regions: moved(FIRST, { formerly: "older" }) }),
      /leave it out, a migration writes it/,
    ],
    ["other keys", () => configure("n.json", NEW, { publicKeys: [`ed25519:${"A".repeat(43)}=`] }), /keys rotate/],
  ];
  for (const [what, makeNext, words] of cases) {
    const { code, answer } = await migrate(await makeNext());
    expect([code, answer], what).toMatchObject([2, { error: { code: "USAGE", message: words } }]);
  }
  expect(await migrate(await configure("n.json", NEW), "--move")).toMatchObject({
    code: 2,
    answer: { error: { message: /begin with agarose migrate/ } },
  });
  expect(await migrate(await configure("n.json", NEW), "--move", "--finish")).toMatchObject({ code: 2 });
  expect(await readFile(current, "utf8")).toBe(before);
});

test("so many regions at once that two majorities could miss each other are refused", async () => {
  await configure("agarose.config.json", [FIRST, SECOND, THIRD]);
  const added = await migrate(await configure("n.json", [FIRST, SECOND, THIRD, FOURTH]));
  expect(added, "2 of 3, and 3 of 4").toMatchObject({ code: 0 });
  await configure("agarose.config.json", [FIRST, SECOND, THIRD]);
  const { code, answer } = await migrate(await configure("n.json", [FOURTH, FIFTH, SIXTH]));
  expect([code, answer]).toMatchObject([2, { error: { code: "USAGE", message: /adds 3 regions at once/ } }]);
  await configure("agarose.config.json", REGIONS);
  const fewer = await migrate(await configure("n.json", [FIRST, SECOND]));
  expect(fewer.answer).toMatchObject({ error: { code: "USAGE", message: /leaves out 4 regions at once/ } });
});

test("a second migration waits for the move of the first, which leaves an object in a minority else", async () => {
  await configure("agarose.config.json", [FIRST, SECOND, THIRD], { code: { k: 1, m: 1 } });
  const four = await configure("four.json", [FIRST, SECOND, THIRD, FOURTH], { code: { k: 1, m: 1 } });
  const five = await configure("five.json", [FIRST, SECOND, THIRD, FOURTH, FIFTH], { code: { k: 1, m: 1 } });
  world.faults.set(THIRD, DOWN);
  await put("in-two-of-three", randomBytes(500));
  expect(world.fired.get(THIRD)).toBeGreaterThan(0);
  world.faults.clear();

  expect(await migrate(four), "two of three are a majority").toMatchObject({ code: 0, answer: { step: 1 } });
  const before = await regionsOfConfig();
  expect(await migrate(five), "two of four are none").toMatchObject({
    code: 2,
    answer: { error: { code: "USAGE", details: { keys: ["in-two-of-three"], needed: 3 } } },
  });
  expect(await regionsOfConfig()).toEqual(before);

  expect((await migrate(four, "--move")).code).toBe(0);
  expect(await migrate(five)).toMatchObject({ code: 0, answer: { step: 1, added: [FIFTH] } });
});

test("no object moves to a region that a PoP does not know yet", async () => {
  await configure("agarose.config.json", OLD);
  await put("key", randomBytes(2_000));
  // Its status alone is needed: the PoP is a server that says which regions it knows.
  let known: readonly string[] = OLD;
  const pop = createServer((_, response) => {
    const regions = known.map((name) => ({ name, down: false, slow: false }));
    const cache = { capacityBytes: 0, cachedBytes: 0, objects: [] };
    const isolate = { chunkCache: { hits: 0, misses: 0 } };
    response.end(JSON.stringify({ epoch: 1, policy: "agar", lastPeriod: null, cache, isolate, regions }));
  });
  const url = await listenLocally(pop);
  try {
    const pops = [{ name: "own", url }];
    await configure("agarose.config.json", OLD, { pops });
    const next = await configure("next.config.json", NEW, { pops });
    await migrate(next);
    const move = async (env: Record<string, string>) => {
      const { code, stdout, stderr } = await world.run(["migrate", next, "--move", "--json"], env);
      return { code, stderr, answer: JSON.parse(stdout.toString()) as object };
    };
    const token = { AGAROSE_ADMIN_TOKEN: "a token of sixteen" };
    const before = await world.names();
    expect(await move(token)).toMatchObject({
      code: 2,
      answer: { error: { code: "USAGE", message: expect.stringContaining(`not ${SIXTH}`) } },
    });
    expect(await world.names()).toEqual(before);
    known = REGIONS;
    expect(await move(token)).toMatchObject({ code: 0, stderr: "", answer: { failed: 0 } });
    expect((await move({})).stderr).toContain("warning: whether own knows the regions is not known");
  } finally {
    pop.close();
  }
});

test.each([
  ["manifests are copied to it", { code: { k: 1, m: 4 } }, REGIONS, /did not answer|lack its manifest/],
  ["objects are stored in it", {}, NEW, /1 region \(sydney\) lack its manifest/],
])("a move is not done while a new region does not answer: %s", async (_what, more, regions, words) => {
  await configure("agarose.config.json", OLD, more);
  const next = await configure("next.config.json", regions, more);
  for (let i = 0; i < 8; i++) await put(`key-${i}`, randomBytes(500));
  await migrate(next);
  world.faults.set(SIXTH, DOWN);
  const { code, answer } = await migrate(next, "--move");
  expect(world.fired.get(SIXTH)).toBeGreaterThan(0);
  expect([code, answer]).toMatchObject([1, { failed: 8 }]);
  expect(JSON.stringify(answer["objects"])).toMatch(words);
  world.faults.clear();
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { failed: 0 } });
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { recoded: 0, completed: 0 } });
});

/** The regions of OLD, of which the first has another name for the same bucket. */
function renamed(name: string): readonly object[] {
  return whole.regions.flatMap((region) => {
    if (!OLD.includes(region.name as (typeof OLD)[number])) return [];
    return region.name === FIRST ? { ...region, name } : region;
  });
}

/** The regions that the manifest of a key names, as one that has not changed its name holds it. */
async function namedRegions(key: string): Promise<Set<string>> {
  const { placement, leaves = [] } = await manifestIn(SECOND, key);
  return new Set([...placement, ...leaves]);
}

test("a region gets another name, no chunk moves, and every verb works at every step", async () => {
  await configure("agarose.config.json", OLD);
  const next = await configure("next.config.json", [], { regions: renamed("new-name") });
  const bodies = new Map(Array.from({ length: 6 }, (_, i) => [`key-${i}`, randomBytes(50_000 + 700 * i)]));
  for (const [key, body] of bodies) await put(key, body);
  await put("removed", randomBytes(60_000));
  await put("broken", randomBytes(60_000));
  const withOldName: string[] = [];
  for (const key of bodies.keys()) if ((await namedRegions(key)).has(FIRST)) withOldName.push(key);
  expect(withOldName.length, "the old name is in manifests").toBeGreaterThan(0);
  const chunks = async () => (await world.names("chunks/")).filter((name) => !/broken|removed/.test(name)).toSorted();
  const before = await chunks();

  const dry = await migrate(next, "--dry-run");
  expect(dry).toMatchObject({ code: 0, answer: { recoded: 0, failed: 0, writtenBytes: 0 } });
  expect(dry.answer["completed"], "and of the two others").toBeGreaterThanOrEqual(withOldName.length);

  const pair = { from: FIRST, to: "new-name" };
  const begun = { code: 0, answer: { step: 1, added: [], left: [], renamed: pair } };
  expect(await migrate(next)).toMatchObject(begun);
  expect(await migrate(next), "the same again").toMatchObject(begun);
  expect(await regionsOfConfig()).toContainEqual(expect.objectContaining({ name: "new-name", formerly: FIRST }));
  expect(JSON.parse((await world.run(["verify", "--json"])).stdout.toString())).toMatchObject({ damaged: 0 });
  for (const [key, body] of bodies) expect((await get(key)).equals(body)).toBe(true);
  // Objects under the old name are known to be the same, repaired and removed.
  const file = join(world.dir, "same");
  await writeFile(file, bodies.get("key-0")!);
  expect((await world.run(["put", file, "--key", "key-0"])).stdout.toString()).toContain("unchanged");
  await breakFirst("broken");
  expect((await world.run(["repair", "broken"])).code).toBe(0);
  expect(JSON.parse((await world.run(["verify", "broken", "--json"])).stdout.toString())).toMatchObject({ damaged: 0 });
  expect((await world.run(["rm", "removed"])).stderr).toBe("");
  expect((await world.names("chunks/")).filter((name) => name.includes("removed"))).toEqual([]);
  expect(await migrate(next, "--finish")).toMatchObject({
    code: 2,
    answer: { error: { message: /move again/ } },
  });

  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { recoded: 0, failed: 0 } });
  for (const key of bodies.keys()) expect([...(await namedRegions(key))]).not.toContain(FIRST);
  expect(await migrate(next, "--move"), "once").toMatchObject({ code: 0, answer: { recoded: 0, completed: 0 } });
  for (const [key, body] of bodies) expect((await get(key)).equals(body)).toBe(true);
  expect(await chunks(), "no chunk moved").toEqual(before);

  expect(await migrate(next, "--finish")).toMatchObject({ code: 0, answer: { step: 3, renamed: pair } });
  expect(await regionsOfConfig()).toEqual(renamed("new-name"));
  expect((await world.run(["gc", "--delete"])).code).toBe(0);
  expect(JSON.parse((await world.run(["verify", "--json"])).stdout.toString())).toMatchObject({ damaged: 0 });
  for (const [key, body] of bodies) expect((await get(key)).equals(body)).toBe(true);
});

/** Takes the chunk of an object away from the bucket of the first region. */
async function breakFirst(key: string): Promise<void> {
  const { upload, placement } = await manifestIn(SECOND, key);
  const chunk = placement.indexOf(FIRST);
  expect(chunk, "the first region has a chunk of it").toBeGreaterThanOrEqual(0);
  await world.tamper(FIRST, chunkName(key, upload, chunk), () => undefined);
}

test("a name stays known while a kept version has it", async () => {
  const keep = [{ prefix: "", time: "1h" }];
  await configure("agarose.config.json", OLD, { keep });
  const next = await configure("next.config.json", [], { regions: renamed("new-name"), keep });
  const old = randomBytes(50_000);
  await put("key", old);
  await put("key", randomBytes(50_001));
  await migrate(next);
  expect(await migrate(next, "--move")).toMatchObject({ code: 0, answer: { failed: 0 } });
  const { code, answer } = await migrate(next, "--finish");
  expect([code, answer]).toMatchObject([
    2,
    { error: { code: "USAGE", message: /the former name of a region/, details: { keys: ["key"] } } },
  ]);
  expect((await world.run(["restore", "key"])).code).toBe(0);
  expect((await get("key")).equals(old)).toBe(true);
});

test("one more name for a region waits for the end of the rename before", async () => {
  await configure("agarose.config.json", OLD);
  await put("key", randomBytes(500));
  await migrate(await configure("next.config.json", [], { regions: renamed("second-name") }));
  const { code, answer } = await migrate(await configure("third.json", [], { regions: renamed("third-name") }));
  expect([code, answer]).toMatchObject([2, { error: { code: "USAGE", message: /finish that migration/ } }]);
});
