/** Tiles of PMTiles archives, sound and damaged, in both runtimes. */
import { gzipSync } from "node:zlib";
import { mapFile } from "@agarose/core/testing";
import { zxyToTileId } from "pmtiles";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomBytes, REGIONS, startWorld, type TestWorld } from "../../../test/world.ts";

const READ_TOKEN = "a token for all readers";
const tileOf = (id: number): Uint8Array => randomBytes(20 + (id % 7), id);
const MAP = mapFile(zxyToTileId, tileOf);

let world: TestWorld;

/** The map with its one directory done by `compress`, at the place that it had, and compressed as a method says. */
function compressed(method: number, compress: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  const made = new Uint8Array(MAP);
  const header = new DataView(made.buffer);
  const at = Number(header.getBigUint64(8, true));
  const directory = compress(MAP.subarray(at, at + Number(header.getBigUint64(16, true))));
  made.set(directory, at);
  header.setBigUint64(16, BigInt(directory.length), true);
  made[97] = method;
  return made;
}

/** The map with its directory at its end, and a root that leads there for every tile. */
function withLeaf(): Uint8Array {
  const header = new DataView(MAP.buffer, MAP.byteOffset);
  const at = Number(header.getBigUint64(8, true));
  const leaf = MAP.subarray(at, at + Number(header.getBigUint64(16, true)));
  const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(value >> 7)]);
  const made = Buffer.concat([compressed(1, () => Uint8Array.from([1, 0, 0, ...varint(leaf.length), 1])), leaf]);
  made.writeBigUInt64LE(BigInt(MAP.length), 40);
  return made;
}

beforeAll(async () => {
  world = await startWorld({ PRIVATE_PREFIXES: '["members/"]', READ_TOKEN });
  await world.put("maps/world.pmtiles", MAP, { stripeBytes: 10_000 });
  await world.put("members/world.pmtiles", MAP);
  await world.put("maps/leaf.pmtiles", withLeaf());
  await world.put("maps/gzip.pmtiles", compressed(2, gzipSync));
  await world.put("maps/brotli.pmtiles", compressed(3, gzipSync));
  await world.put(
    "maps/damaged.pmtiles",
    compressed(2, (bytes) => gzipSync(bytes).subarray(0, 40)),
  );
  await world.put(
    "maps/bomb.pmtiles",
    compressed(2, () => gzipSync(Buffer.alloc(9_000_000))),
  );
  await world.put("maps/short.pmtiles", MAP.subarray(0, 100));
  await world.put("page", Buffer.from("<html>".repeat(100)));
});
afterAll(() => world.close());

const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(`${world.url}/t/${path}`, init);

test.each(["world.pmtiles/0/0/0", "world.pmtiles/5/31/31.png", "gzip.pmtiles/3/2/1", "leaf.pmtiles/2/1/3"])(
  "/t/maps/%s is the tile, with its type and the version of the archive",
  async (name) => {
    const path = `maps/${name}`;
    const [z, x, y] = path.replace(".png", "").split("/").slice(-3).map(Number);
    const answer = await get(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/png"]);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.equals(tileOf(zxyToTileId(z!, x!, y!)))).toBe(true);
    const etag = answer.headers.get("etag")!;
    expect((await get(path, { headers: { "if-none-match": etag } })).status).toBe(304);
    const head = await get(path, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(bytes.length)]);
  },
);

test("reads the parts of a large archive that the tile takes, and a known directory no more", async () => {
  const before = world.buckets.sentBytes;
  await (await get("maps/world.pmtiles/4/1/1")).arrayBuffer();
  expect(world.buckets.sentBytes - before).toBeLessThan(MAP.length);
});

test("a tile that is not there is no failure of the map", async () => {
  const answer = await get("maps/world.pmtiles/9/1/1");
  expect([answer.status, await answer.text()]).toEqual([204, ""]);
});

test("a private archive is closed, and its tiles are kept by no shared cache", async () => {
  expect((await get("members/world.pmtiles/0/0/0")).status).toBe(403);
  const opened = await get("members/world.pmtiles/0/0/0", { headers: { authorization: `Bearer ${READ_TOKEN}` } });
  expect([opened.status, opened.headers.get("cache-control")]).toEqual([200, "private, no-cache"]);
});

test.each([
  ["maps/none.pmtiles/0/0/0", 404, "OBJECT_NOT_FOUND", /none/],
  ["maps/world.pmtiles", 400, "REQUEST_INVALID", /path/],
  ["maps/world.pmtiles/0/0", 400, "REQUEST_INVALID", /path/],
  ["maps/world.pmtiles/3/8/0", 400, "REQUEST_INVALID", /outside/],
  ["maps/world.pmtiles/99/0/0", 400, "REQUEST_INVALID", /outside/],
  ["/0/0/0", 400, "REQUEST_INVALID", /path/],
  ["page/0/0/0", 400, "REQUEST_INVALID", /version 3/],
  ["maps/short.pmtiles/0/0/0", 400, "REQUEST_INVALID", /./],
  ["maps/brotli.pmtiles/0/0/0", 400, "REQUEST_INVALID", /method 3/],
  ["maps/damaged.pmtiles/0/0/0", 400, "REQUEST_INVALID", /./],
  ["maps/bomb.pmtiles/0/0/0", 400, "REQUEST_INVALID", /more than 8388608 bytes/],
])("/t/%s is answered by %d %s", async (path, status, code, message) => {
  const answer = await get(path);
  expect([answer.status, answer.headers.get("x-agarose-error")]).toEqual([status, code]);
  expect(await answer.text()).toMatch(message);
});

test("an outage is an error", async () => {
  await world.put("maps/out.pmtiles", MAP);
  for (const region of REGIONS) world.buckets.faults.set(region, { status: 503 });
  const answer = await get("maps/out.pmtiles/0/0/0");
  world.buckets.faults.clear();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(world.buckets.fired.size).toBe(REGIONS.length);
});
