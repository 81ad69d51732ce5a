/** Reads of the command line once a region has missed a write, and while regions are away. */
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import { CREDENTIALS, DOWN, REGIONS, startTestWorld, storesOf, type World } from "../../world.ts";
import { repairName } from "@agarose/storage/commit/names";
import { readManifest } from "@agarose/storage/objects/manifests";
import { removeObject } from "@agarose/storage/objects/remove-object";
import { KnownRegions } from "@agarose/storage/regions/known-regions";

const NEAREST = REGIONS[0];
/** Inline objects need no chunks, so that only manifests decide. */
let world: World;

beforeAll(async () => void (world = await startTestWorld({ auto: true })));
afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});
afterAll(() => world.close());

const options = () => world.parts();
const text = (value: string): Buffer => Buffer.from(value);

/** Does something while regions are down. */
async function without<T>(regions: readonly string[], run: () => Promise<T>): Promise<T> {
  for (const region of regions) world.faults.set(region, DOWN);
  try {
    return await run();
  } finally {
    expect(world.fired.size).toBeGreaterThan(0);
    world.faults.clear();
    world.fired.clear();
  }
}

/** Puts the manifest of one region into others, as a writer does that is killed or still at work. */
async function copyManifest(key: string, bytes: Buffer | undefined, to: readonly string[]): Promise<void> {
  for (const region of to) {
    if (bytes) await storeIn(region, manifestName(key), bytes);
    else await world.store(region).remove([manifestName(key)]);
  }
}

const storeIn = (region: string, name: string, bytes: Buffer) =>
  world.store(region).put(name, bytes, { bytes: bytes.length, contentType: "application/json" });

/** A key whose newest generation, 2, is in the regions given only. */
async function unsettled(key: string, holders: readonly string[]): Promise<void> {
  await world.put(key, text("first"));
  const before = await world.read(NEAREST, manifestName(key));
  await world.put(key, text("second"));
  await copyManifest(
    key,
    before,
    REGIONS.filter((region) => !holders.includes(region)),
  );
}

test("a region that missed a put and a removal shows neither to anyone once it is back", async () => {
  await world.put("changed", text("first"));
  await world.put("removed", text("first"));
  await without([NEAREST], async () => {
    await world.put("changed", text("second"));
    await removeObject("removed", options());
    await world.put("new", text("new"));
  });
  for (let n = 0; n < 3; n++) expect(String((await world.run(["get", "changed", "-"])).stdout)).toBe("second");
  expect((await world.run(["get", "removed", "-"])).stderr).toContain("OBJECT_NOT_FOUND");
  expect(String((await world.run(["get", "new", "-"])).stdout)).toBe("new");
  expect(String((await world.run(["ls"])).stdout)).toBe("changed\nnew\n");
  const long = String((await world.run(["ls", "--long"])).stdout);
  expect(long).toContain("6 B");
  // The fault is real: a read that takes the first sound copy shows the version before.
  expect(String((await world.run(["get", "changed", "-", "--consistency", "eventual"])).stdout)).toBe("first");
});

test("a read that finds a region behind asks it last, and enters the key into the repair queue, which scrub empties", async () => {
  const key = "behind";
  await world.put(key, text("first"));
  await without([NEAREST], () => world.put(key, text("second")));
  for (const region of REGIONS) await world.store(region).remove([repairName(key)]);
  const known = new KnownRegions(options(), false);
  await readManifest(key, options(), { knownRegions: known });
  await known.flush();
  const entry = JSON.parse(String(await world.read("sydney", repairName(key)))) as object;
  expect(entry).toMatchObject({ key, generation: 2, regions: [NEAREST] });
  const asked: string[] = [];
  for (const region of REGIONS) world.faults.set(region, () => (asked.push(region), false));
  await readManifest(key, options(), { knownRegions: known });
  expect(asked.slice(0, 4)).not.toContain(NEAREST);
  world.faults.clear();
  expect((await world.run(["scrub"])).code).toBe(0);
  expect(await world.names("repairs/behind!")).toEqual([]);
  expect(await world.read(NEAREST, manifestName(key))).toEqual(await world.read("sydney", manifestName(key)));
});

test("a get enters what it finds behind, and one that finds nothing writes nothing", async () => {
  const key = "entered";
  await world.put(key, text("first"));
  await without([NEAREST], () => world.put(key, text("second")));
  for (const region of REGIONS) await world.store(region).remove([repairName(key)]);
  const names = await world.names();
  await world.put("whole", text("whole"));
  await world.run(["get", "whole", "-"]);
  expect(await world.names("repairs/whole")).toEqual([]);
  await world.run(["get", key, "-"]);
  expect(await world.names(`repairs/${key}`)).toHaveLength(6);
  expect((await world.names()).length).toBe(names.length + 6 + 6);
});

test("what a minority of all regions holds is not shown, and what a majority holds is", async () => {
  await unsettled("three of six", ["frankfurt", "dublin"]);
  expect(String(await world.get("three of six"))).toBe("first");
  await unsettled("five of six", ["frankfurt", "dublin", "virginia", "paulo", "tokyo"]);
  expect(String(await world.get("five of six"))).toBe("second");
});

test("where nobody can know, a read gives the newest a generation of its own, and every later read shows it", async () => {
  const key = "uncertain";
  await unsettled(key, ["frankfurt", "dublin", "virginia"]);
  const shown = await without(["sydney"], () => readManifest(key, options()));
  expect(shown).toMatchObject({ generation: 3 });
  for (const away of REGIONS.slice(0, 4)) {
    expect(String(await without([away], () => world.get(key)))).toBe("second");
  }
});

test("a reader that may not write says so, with both numbers and the way out", async () => {
  const key = "read only";
  await unsettled(key, ["frankfurt", "dublin", "virginia"]);
  const uncertain = { code: "READ_UNCERTAIN", message: expect.stringContaining("--consistency eventual") as string };
  const numbers = { generation: 2, holders: 3, needed: 4 };
  await without(["sydney"], async () => {
    await expect(readManifest(key, options(), { isReadOnly: true })).rejects.toMatchObject({
      ...uncertain,
      details: numbers,
    });
    for (const region of REGIONS.slice(0, 5)) {
      world.faults.set(region, (request, response) => {
        if (request.method !== "PUT") return false;
        response.writeHead(403).end();
        return true;
      });
    }
    await expect(readManifest(key, options())).rejects.toMatchObject({
      ...uncertain,
      details: { ...numbers, cause: "CREDENTIALS_REFUSED" },
    });
  });
});

/** Keeps the manifests of all regions but the nearest back until a chunk is requested. Returns which chunks are. */
function holdManifests(): string[] {
  const chunks: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "GET") return false;
      if (name.startsWith("chunks/")) {
        chunks.push(name);
        resolve();
      } else if (name.startsWith("manifests/") && region !== NEAREST) await promise;
      return false;
    });
  }
  return chunks;
}

test("chunks are requested by the first manifest while a majority answers, and each of them once", async () => {
  const bytes = randomBytes(30_000);
  await world.put("early", bytes);
  const chunks = holdManifests();
  const { code, stdout } = await world.run(["get", "early", "-"]);
  expect([code, stdout.equals(bytes)]).toEqual([0, true]);
  expect(chunks.length).toBeGreaterThan(0);
  expect(new Set(chunks).size).toBe(chunks.length);
});

test("chunks that were requested by the manifest of a region that is behind are not shown", async () => {
  const [first, second] = [randomBytes(300_000), randomBytes(300_000)];
  const { upload } = await world.put("early-old", first);
  await without([NEAREST], () => world.put("early-old", second));
  for (const args of [[], ["--range", "100-199999"]]) {
    const chunks = holdManifests();
    const { code, stdout } = await world.run(["get", "early-old", "-", ...args]);
    expect([code, stdout.equals(args.length > 0 ? second.subarray(100, 200_000) : second)]).toEqual([0, true]);
    expect(chunks.some((name) => name.includes(upload))).toBe(true);
  }
});

test("with most regions gone, get and ls say what they need, and read what is left when they are told to", async () => {
  const key = "disaster";
  await world.put(key, randomBytes(30_000));
  await world.put("whole", text("whole"));
  const gone = REGIONS.slice(0, 4);
  const strong = await without(gone, () => world.run(["get", key, "-"]));
  expect(strong).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/NO_QUORUM: 2 of 6.*--consistency eventual/u),
  });
  const listed = await without(gone, () => world.run(["ls"]));
  expect(listed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/NO_QUORUM: 2 of 6.*--consistency eventual/u),
  });
  // Two of six have too few of its chunks, and the small ones are whole in any manifest.
  const eventual = ["--consistency", "eventual"];
  expect(String((await without(gone, () => world.run(["get", "whole", "-", ...eventual]))).stdout)).toBe("whole");
  expect(String((await without(gone, () => world.run(["ls", ...eventual]))).stdout)).toContain("disaster\n");
});

test("a conditional put neither passes nor fails by what only a minority holds", async () => {
  const key = "conditional";
  await unsettled(key, ["frankfurt"]);
  const seen: (number | undefined)[] = [];
  const onlyIf = (current: { generation: number } | undefined): void => void seen.push(current?.generation);
  await without(["sydney"], () => world.put(key, text("third"), { onlyIf }));
  // It was completed as generation 3 before the condition saw it.
  expect(seen).toEqual([3]);
  expect(String(await world.get(key))).toBe("third");
});

test("wrong keys are refused, and no outage", async () => {
  const stores = storesOf(world.config, { ...CREDENTIALS, secretAccessKey: "wrong" });
  await expect(readManifest("changed", world.parts({ stores }))).rejects.toMatchObject({ code: "CREDENTIALS_REFUSED" });
  for (const store of stores) store.close();
});
