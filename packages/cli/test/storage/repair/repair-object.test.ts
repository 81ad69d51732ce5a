import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { claimName } from "@agarose/storage/commit/names";
import { repairObject } from "@agarose/storage/repair/repair-object";
import { chunkPlace, DOWN, manifestName, startTestWorld, type World } from "../../world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

const repair = (key: string) => repairObject(key, world.parts());

test.each([
  ["of many stripes", 12_345],
  ["of one stripe", 700],
])("an object %s with as many bad chunks as it survives is whole again, byte for byte", async (_name, bytes) => {
  const body = randomBytes(bytes);
  const put = await world.put("broken", body);
  const [lost, spoiled] = [chunkPlace(put, 1), chunkPlace(put, 4)];
  const before = await Promise.all([world.read(...lost), world.read(...spoiled)]);
  await world.tamper(...lost, () => undefined);
  await world.tamper(...spoiled, (chunk) => chunk.subarray(0, -3));
  const report = await repair("broken");
  expect(report).toMatchObject({
    before: { sound: false },
    after: { sound: true },
    chunksWritten: 2,
    manifestsWritten: 0,
  });
  const after = await Promise.all([world.read(...lost), world.read(...spoiled)]);
  expect(after.every((chunk, index) => chunk.equals(before[index]!))).toBe(true);
});

describe("connections that are cut while all but one chunk is there", () => {
  const body = randomBytes(12_345);
  let asked: string[];

  /** Answers the first `times` GETs of each of `chunks` with 700 bytes, or `bytes`, and then closes the connection. */
  const cut = async (chunks: readonly number[], times: number, bytes = 700, then = (stored: Buffer) => stored) => {
    const put = await world.put("cut", body);
    await world.tamper(...chunkPlace(put, 0), () => undefined);
    asked = [];
    for (const chunk of chunks) {
      const [region, name] = chunkPlace(put, chunk);
      const stored = await world.read(region, name);
      let tries = 0;
      world.faults.set(region, ({ method, socket, headers: { range } }, response, path) => {
        if (method !== "GET" || path !== name) return false;
        asked.push(`${chunk} ${range}`);
        const isCut = tries++ < times;
        const start = Number(range?.slice("bytes=".length, -1) ?? 0);
        const rest = (tries > 1 ? then(stored) : stored).subarray(start);
        response.writeHead(range === undefined ? 200 : 206, { "content-length": String(rest.length) });
        if (isCut) response.write(rest.subarray(0, bytes), () => socket.destroy());
        else response.end(rest);
        return true;
      });
    }
  };

  test("end no repair, even in several stripes of several chunks", async () => {
    await cut([1, 2, 3], 2);
    const report = await repair("cut");
    expect(asked.toSorted()).toEqual(
      [1, 2, 3].flatMap((chunk) => [`${chunk} bytes=1400-`, `${chunk} bytes=700-`, `${chunk} undefined`]),
    );
    expect(report).toMatchObject({ before: { damage: [{ chunk: 0 }] }, chunksWritten: 1, after: { sound: true } });
    world.faults.clear();
    expect(await world.verify("cut")).toMatchObject({ sound: true });
    expect((await world.get("cut")).equals(body)).toBe(true);
  });

  test("are not waited for when they are cut every time", async () => {
    await cut([1, 2], 100, 0);
    await expect(repair("cut")).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    expect(asked.toSorted()).toEqual(["1 undefined", "2 undefined"]);
  });

  test("and go on with bytes of another object cost that chunk, and no byte of the object", async () => {
    await cut([1], 1, 700, (stored) => Buffer.alloc(stored.length + 1_000));
    const report = await repair("cut");
    expect(asked.slice(0, 2)).toEqual(["1 undefined", "1 bytes=700-"]);
    expect(report).toMatchObject({ chunksWritten: 2, after: { sound: true } });
    expect(report.before.damage).toMatchObject([{ chunk: 0 }, { chunk: 1, code: "CHUNK_CORRUPT" }]);
    world.faults.clear();
    expect(await world.verify("cut")).toMatchObject({ sound: true });
    expect((await world.get("cut")).equals(body)).toBe(true);
  });
});

test("manifests that are missing, damaged or old are rewritten", async () => {
  await world.put("manifests", randomBytes(10));
  const put = await world.put("manifests", randomBytes(20));
  await world.tamper("tokyo", manifestName("manifests"), () => undefined);
  await world.tamper("sydney", manifestName("manifests"), () => Buffer.from("{"));
  expect(await repair("manifests")).toMatchObject({
    chunksWritten: 0,
    manifestsWritten: 2,
    after: { sound: true, version: put.version },
  });
});

test("gives what only a minority holds a new generation in every region", async () => {
  await world.put("minority", randomBytes(10));
  const old = await world.read("paulo", manifestName("minority"));
  const put = await world.put("minority", randomBytes(20));
  await world.tamper("paulo", manifestName("minority"), () => old);
  await world.tamper("tokyo", manifestName("minority"), () => undefined);
  await world.tamper("sydney", manifestName("minority"), () => Buffer.from("{"));
  expect(await repair("minority")).toMatchObject({
    chunksWritten: 0,
    manifestsWritten: 6,
    after: { sound: true, version: put.version },
  });
  const after = JSON.parse((await world.read("tokyo", manifestName("minority"))).toString()) as unknown;
  expect(after).toMatchObject({ generation: put.generation + 1, upload: put.upload });
});

test("passes over a writer that died while it claimed, and over its own first attempt beside that", async () => {
  const put = await world.put("claimed", randomBytes(10));
  for (const region of ["tokyo", "sydney", "paulo"]) {
    await world.tamper(region, manifestName("claimed"), () => undefined);
  }
  const claim = claimName("claimed", put.generation + 1);
  const dead = Buffer.from('{"upload":"dead"}');
  const died = world.stores.slice(0, 4);
  for (const store of died) await store.put(claim, dead, { bytes: dead.length, contentType: "application/json" });
  // No store takes a time from outside, so the listings of these claims say that they are 40 seconds older.
  for (const store of died) {
    const list = store.list.bind(store);
    store.list = async function* (...args) {
      for await (const entry of list(...args)) {
        yield entry.name === claim ? { ...entry, modifiedMs: entry.modifiedMs - 40_000 } : entry;
      }
    };
  }
  expect(await repair("claimed")).toMatchObject({ manifestsWritten: 6, after: { sound: true } });
});

test("a sound object is left alone", async () => {
  await world.put("sound", randomBytes(100));
  let puts = 0;
  world.faults.set("dublin", (request) => {
    if (request.method === "PUT") puts++;
    return false;
  });
  expect(await repair("sound")).toMatchObject({ before: { sound: true }, chunksWritten: 0, manifestsWritten: 0 });
  expect(puts).toBe(0);
});

test("an object that cannot be read any more is an error, and nothing is written", async () => {
  const put = await world.put("gone", randomBytes(100));
  for (const chunk of [0, 2, 5]) await world.tamper(...chunkPlace(put, chunk), () => undefined);
  const names = await world.names();
  await expect(repair("gone")).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
  expect(await world.names()).toEqual(names);
});

test.each([[["repair", "--queued"]], [["repair", "--quick"]], [["repair", "page"]]])(
  "%j --dry-run says what is damaged, and writes and removes nothing",
  async (args) => {
    world.faults.set("tokyo", DOWN);
    const put = await world.put("page", randomBytes(5_000));
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    world.faults.clear();
    await world.tamper(...chunkPlace(put, put.placement.indexOf("dublin")), () => undefined);
    const written: string[] = [];
    for (const { region } of world.stores) {
      world.faults.set(region.name, ({ method }, _response, name) => {
        if (method !== "GET" && method !== "HEAD") written.push(`${method} ${name}`);
        return false;
      });
    }
    const { code, stdout } = await world.run([...args, "--dry-run", "--json-lines"]);
    const lines = stdout.toString().trim().split("\n");
    expect([code, written]).toEqual([1, []]);
    expect(JSON.parse(lines[0]!)).toMatchObject({ key: "page", outcome: "damaged", chunksWritten: 0 });
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ summary: { repaired: 0, dryRun: true } });
    expect((await world.run(args)).code).toBe(0);
    expect(written.some((request) => request.startsWith("PUT chunks/page"))).toBe(true);
  },
);

test("what a region that is down holds cannot be repaired: exit 1", async () => {
  await world.put("down", randomBytes(100));
  world.faults.set("virginia", DOWN);
  const { code, stdout } = await world.run(["repair", "down", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout.toString()).objects).toMatchObject([
    { key: "down", outcome: "damaged", before: { readable: true }, after: { sound: false } },
  ]);
  expect(world.fired.get("virginia")).toBeGreaterThan(0);
  world.faults.clear();
  expect((await world.run(["repair"])).stdout.toString()).toMatch(/^sound +down/);
});
