/** The meaning of a listed manifest's length, and lists that rely on it. */
import { hash } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  acceptUnsigned,
  encodeManifest,
  isTombstone,
  manifestName,
  parseManifest,
  sealTombstone,
  versionText,
  type ManifestRecord,
  type Signer,
} from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type Fault, type World } from "../../world.ts";
import { KeyListing, liveGroups, removableKeys } from "@agarose/storage/listing/keys";
import { removeObject } from "@agarose/storage/objects/remove-object";
import { nodeSha256 } from "@agarose/storage/objects/sha256";
import { mayBeTombstone, mustBeTombstone } from "@agarose/storage/listing/listed-object";

let world: World;

beforeAll(async () => void (world = await startTestWorld({ auto: true })));
afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});
afterAll(() => world.close());

const parse = (bytes: Uint8Array, key: string): Promise<ManifestRecord> =>
  parseManifest(bytes, { key, sha256: nodeSha256, trust: acceptUnsigned });

/** The shortest object that a reader takes: empty, and its text values as short as they may be. */
function shortestObject(key: string): Record<string, unknown> {
  const none = hash("sha256", "");
  const content = { bytes: 0, contentType: "", headers: {}, k: 1, m: 0, stripeBytes: 1, blockBytes: 1, sha256: none };
  const version = hash("sha256", versionText({ key, ...content, hashesSha256: none })).slice(0, 32);
  const about = { agarose: 2, key, generation: 1, modified: "2026-01-02T03:04:05Z", upload: "0".repeat(32) };
  return { ...about, ...content, placement: ["r"], version, hashesSha256: none, hashes: [] };
}

const KEYS = ["a", 'ü"\u0001\u{1f600}', "k".repeat(300)];

test.each(KEYS)("the shortest object that a reader takes is longer than every tombstone: key %j", async (key) => {
  const object = shortestObject(key);
  const bytes = encodeManifest(object as unknown as ManifestRecord);
  expect(isTombstone(await parse(bytes, key))).toBe(false);
  expect(mustBeTombstone(key, { bytes: bytes.length })).toBe(false);
  expect(mustBeTombstone(key, { bytes: bytes.length - 1 })).toBe(true);
  for (const field of Object.keys(object)) {
    const { [field]: _left, ...rest } = object;
    await expect(parse(encodeManifest(rest as unknown as ManifestRecord), key), field).rejects.toThrow();
  }
});

test.each(KEYS)("every tombstone that is written is known by its length, signed or not: key %j", async (key) => {
  const sign: Signer = async () => ({ keyId: "0".repeat(16), value: "A".repeat(86) + "==" });
  const shortest = await sealTombstone({ key, generation: 1, modified: "2026-01-02T03:04:05Z" });
  const draft = { key, generation: Number.MAX_SAFE_INTEGER, modified: "2026-01-02T03:04:05.678Z" };
  for (const record of [shortest, await sealTombstone(draft, sign)]) {
    const object = { bytes: encodeManifest(record).length, name: manifestName(key) };
    expect(mustBeTombstone(key, object)).toBe(true);
    expect(mayBeTombstone(object)).toBe(true);
  }
  expect(mustBeTombstone(key, { bytes: encodeManifest(shortest).length - 1 })).toBe(false);
  expect(mustBeTombstone(key, { bytes: 0 })).toBe(false);
});

async function listed(prefix: string): Promise<string[]> {
  const context = world.parts();
  const keys: string[] = [];
  for await (const { key } of liveGroups(new KeyListing(prefix, context), context)) keys.push(key);
  return keys;
}

/** Counts what is asked of the regions beside listings, and lets it through. */
function countReads(): () => number {
  let reads = 0;
  const count: Fault = (request, _response, name) => {
    if (request.method === "GET" && name !== "") reads++;
    return false;
  };
  for (const region of REGIONS) if (!world.faults.has(region)) world.faults.set(region, count);
  return () => reads;
}

const removed = async (key: string): Promise<void> => {
  await removeObject(key, world.parts());
};

test("a list of one object and many tombstones reads none of them, also while a region is down", async () => {
  await world.put("many/live", Buffer.from("live"));
  for (let n = 0; n < 2; n++) {
    await world.put(`many/${n}`, Buffer.from("x"));
    await removed(`many/${n}`);
  }
  const reads = countReads();
  expect(await listed("many/")).toEqual(["many/live"]);
  expect(await removableKeys("many/", world.parts(), (line) => expect.unreachable(line))).toEqual(["many/live"]);
  world.faults.set("tokyo", DOWN);
  expect(await listed("many/")).toEqual(["many/live"]);
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(reads()).toBe(0);
});

test("a removal that a region missed is gone from lists, and stays removable for that region", async () => {
  await world.put("missed", Buffer.from("x"));
  world.faults.set("dublin", DOWN);
  await removed("missed");
  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  world.faults.clear();
  const reads = countReads();
  expect(await listed("missed")).toEqual([]);
  expect(reads()).toBe(0);
  expect(await removableKeys("missed", world.parts(), (line) => expect.unreachable(line))).toEqual(["missed"]);
});

/** Answers lists of manifests with another length or ETag of what they name. */
function lyingList(change: (xml: string) => string): Fault {
  return async (request, response, name) => {
    const url = new URL(request.url ?? "/", "http://x");
    if (request.method !== "GET" || name !== "" || url.searchParams.get("prefix")?.startsWith("manifests/") !== true)
      return false;
    const keys = await world.store("sydney").list(url.searchParams.get("prefix")!);
    const contents: string[] = [];
    for await (const { name: key, bytes, etag } of keys)
      contents.push(`<Contents><Key>${key}</Key><Size>${bytes}</Size><ETag>${etag}</ETag></Contents>`);
    response.writeHead(200, { "content-type": "application/xml" });
    response.end(change(`<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}</ListBucketResult>`));
    return true;
  };
}

test("a minority of regions that lies about lengths hides no object and revives none", async () => {
  await world.put("lied/live", Buffer.from("x"));
  await world.put("lied/gone", Buffer.from("x"));
  await removed("lied/gone");
  for (const bytes of [250, 5000, 0]) {
    world.fired.clear();
    world.faults.set(
      "frankfurt",
      lyingList((xml) => xml.replaceAll(/<Size>\d+/g, `<Size>${bytes}`)),
    );
    expect(await listed("lied/")).toEqual(["lied/live"]);
    expect(world.fired.get("frankfurt")).toBeGreaterThan(0);
  }
});

test("a region that sends an old manifest under the ETag of the new one is not believed", async () => {
  const key = "old under new";
  const name = manifestName(key);
  await world.put(key, Buffer.from("first"));
  const old = await world.read("sydney", name);
  await world.put(key, Buffer.from("second, longer"));
  let etag: string | undefined;
  for await (const object of world.store("sydney").list(name)) ({ etag } = object);
  for (const region of REGIONS.slice(0, 2)) {
    world.faults.set(region, (request, response, asked) => {
      if (request.method !== "GET" || asked !== name) return false;
      response.writeHead(200, { etag: etag! }).end(old);
      return true;
    });
  }
  const { stdout } = await world.run(["ls", "--long", "--json"]);
  const { objects } = JSON.parse(String(stdout)) as { objects: { key: string; bytes: number }[] };
  expect(objects.find((object) => object.key === key)).toMatchObject({ bytes: 14 });
  expect(world.fired.size).toBeGreaterThan(0);
});
