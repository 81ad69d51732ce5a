/** Objects that are stored compressed, over six buckets. */
import { createHash, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { chunkName, encodeManifest, manifestName, sealManifest, type Manifest } from "@agarose/core/format";
import { nodeSha256 } from "@agarose/storage/objects/sha256";
import { restoreVersion } from "@agarose/storage/history/restore-object";
import { surveyRegions } from "@agarose/storage/regions/region-survey";
import { recodeObject } from "@agarose/storage/maintenance/recode-object";
import { GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, PutObjectCommand } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gatewayOver, s3ClientOf } from "../../gateway.ts";
import { REGIONS, startTestWorld, type World } from "../../world.ts";

const STRIPE_BYTES = 200_000;

let world: World;
beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: STRIPE_BYTES });
});
afterEach(() => world.close());

/** Text: each byte of it has four bits. */
function textOf(bytes: number): Buffer {
  return Buffer.from(randomBytes(bytes / 2).toString("hex"));
}

async function manifestOf(key: string): Promise<Manifest> {
  return JSON.parse(String(await world.read("tokyo", manifestName(key)))) as Manifest;
}

function configOf(compress: "none" | "small" | "all") {
  return { config: { ...world.config, compress } };
}

describe.each([
  ["small", 2_000],
  ["small", 60_000],
  ["small", STRIPE_BYTES],
  ["all", 2_700_000],
] as const)("with compress: %s, text of %i bytes", (compress, bytes) => {
  test("is stored in little more than half, and read back whole and by range", async () => {
    const content = textOf(bytes);
    const put = await world.put("a", content, configOf(compress));
    expect(put).toMatchObject({ outcome: "stored", bytes });
    expect((await manifestOf("a")).bytes).toBeLessThan(0.65 * bytes);
    expect((await world.get("a")).equals(content)).toBe(true);
    for (const [start, end] of [
      [0, 1],
      [bytes / 2, bytes],
      [bytes - 7, bytes],
    ] as const) {
      expect((await world.get("a", { start, end })).equals(content.subarray(start, end))).toBe(true);
    }
    expect((await world.verify("a")).sound).toBe(true);
  });

  test("is unchanged when it is put again", async () => {
    const content = textOf(bytes);
    await world.put("a", content, configOf(compress));
    expect((await world.put("a", content, configOf(compress))).outcome).toBe("unchanged");
    expect((await world.put("a", textOf(bytes), configOf(compress))).outcome).toBe("stored");
  });
});

test("what is stored as it was is stored compressed once, and back when the configuration says so", async () => {
  const content = textOf(60_000);
  await world.put("a", content, configOf("none"));
  expect(await manifestOf("a")).not.toHaveProperty("gzip");
  expect((await world.put("a", content, configOf("small"))).outcome).toBe("stored");
  expect((await world.put("a", content, configOf("small"))).outcome).toBe("unchanged");
  expect(await manifestOf("a")).toHaveProperty("gzip");
  expect((await world.put("a", content, configOf("none"))).outcome).toBe("stored");
  expect(await manifestOf("a")).not.toHaveProperty("gzip");
  expect((await world.get("a")).equals(content)).toBe(true);
});

test.each<[string, Buffer, "none" | "small" | "all", Record<string, string>]>([
  ["random bytes", randomBytes(60_000), "all", {}],
  ["random bytes of several segments", randomBytes(2_200_000), "all", {}],
  ["text that saves less than 512 bytes", textOf(500), "all", {}],
  ["nothing", Buffer.alloc(0), "all", {}],
  ["content with a coding of its own", textOf(60_000), "all", { "content-encoding": "identity" }],
  ["what its headers name gzip", gzipSync(textOf(60_000)), "all", { "content-encoding": "gzip" }],
  ["what is compressed already", gzipSync(textOf(60_000)), "all", {}],
  ["a table of Parquet", Buffer.concat([Buffer.from("PAR1"), textOf(60_000)]), "small", {}],
  ["a database of SQLite", Buffer.concat([Buffer.from("SQLite format 3\0"), textOf(60_000)]), "small", {}],
  ["a raster of TIFF", Buffer.concat([Buffer.from("II*\0"), textOf(60_000)]), "small", {}],
  ["one byte", Buffer.from("a"), "all", {}],
  ["text of several stripes", textOf(STRIPE_BYTES + 2), "small", {}],
  ["text, where the configuration says none", textOf(60_000), "none", {}],
  ["random bytes with a head of text", Buffer.concat([textOf(4_096), randomBytes(90_000)]), "small", {}],
])("is stored as it is: %s", async (_name, content, compress, headers) => {
  await world.put("a", content, { ...configOf(compress), headers });
  const manifest = await manifestOf("a");
  expect(manifest).toMatchObject({ bytes: content.length });
  expect(manifest).not.toHaveProperty("gzip");
  expect((await world.get("a")).equals(content)).toBe(true);
});

test("`put --compress all` is for objects of any size, and `ls --long` and `du` show both sizes", async () => {
  const bytes = 2_700_000;
  const content = textOf(bytes);
  await writeFile(join(world.dir, "file"), content);
  expect((await world.run(["put", "file", "--key", "a", "--compress", "all"])).code).toBe(0);
  const { bytes: compressedBytes } = await manifestOf("a");
  expect(compressedBytes).toBeLessThan(0.65 * bytes);
  const listed = JSON.parse(String((await world.run(["ls", "--long", "--json"])).stdout));
  expect(listed.objects).toEqual([expect.objectContaining({ key: "a", bytes, compressedBytes })]);
  expect(String((await world.run(["ls", "--long"])).stdout)).toMatch(/2\.6 MiB \(1\.\d MiB compressed\)/);
  const used = JSON.parse(String((await world.run(["du", "--json"])).stdout));
  expect(used).toMatchObject({ objects: 1, objectBytes: bytes });
  expect(used.storedBytes).toBeGreaterThan(compressedBytes);
  expect((await world.run(["get", "a", "out"])).code).toBe(0);
  expect((await readFile(join(world.dir, "out"))).equals(content)).toBe(true);
});

test("`get --range` from the end asks for no other bytes than those that it writes", async () => {
  const content = textOf(2_700_000);
  await world.put("a", content, configOf("all"));
  const asked = new Set<string>();
  for (const region of REGIONS) {
    world.faults.set(region, ({ method, headers: { range } }, _response, name) => {
      if (method === "GET" && name.startsWith("chunks/")) asked.add(`${range}`);
      return false;
    });
  }
  await world.get("a", { start: content.length - 100, end: content.length });
  const needed = [...asked];
  asked.clear();
  expect((await world.run(["get", "a", "out", "--range", "-100"])).code).toBe(0);
  expect((await readFile(join(world.dir, "out"))).equals(content.subarray(-100))).toBe(true);
  expect([...asked].toSorted()).toEqual(needed.toSorted());
});

test("what was compressed on request stays so when it is stored again, and `versions` shows its length", async () => {
  const content = textOf(2_700_000);
  await world.put("a", content, { ...configOf("small"), compress: "all" });
  expect(await recodeObject("a", world.parts({ config: { ...world.config, code: { k: 2, m: 2 } } }))).toBeDefined();
  expect((await manifestOf("a")).gzip?.bytes).toBe(content.length);
  const listed = JSON.parse(String((await world.run(["versions", "a", "--json"])).stdout));
  expect(listed.versions).toMatchObject([{ generation: 2, bytes: content.length }]);
  const kept = await manifestOf("a");
  await world.put("a", textOf(2_000));
  const parts = world.parts(configOf("small"));
  await restoreVersion({ kept, survey: await surveyRegions("a", parts) }, parts);
  expect((await manifestOf("a")).gzip?.bytes).toBe(content.length);
});

test("a file that libraries read by ranges is compressed on request", async () => {
  await world.put("a", Buffer.concat([Buffer.from("PAR1"), textOf(60_000)]), configOf("all"));
  expect(await manifestOf("a")).toHaveProperty("gzip");
});

test("clients of the gateway see the content, its length, its ranges and its MD5", async () => {
  const gateway = await gatewayOver(world, {});
  const client = s3ClientOf(gateway);
  try {
    const content = textOf(60_000);
    const object = { Bucket: "agarose", Key: "a" };
    const ETag = `"${createHash("md5").update(content).digest("hex")}"`;
    await client.send(new PutObjectCommand({ ...object, Body: content }));
    expect(await manifestOf("a")).toHaveProperty("gzip");
    expect(await client.send(new HeadObjectCommand(object))).toMatchObject({ ContentLength: 60_000, ETag });
    const listed = await client.send(new ListObjectsV2Command({ Bucket: "agarose" }));
    expect(listed.Contents).toMatchObject([{ Key: "a", Size: 60_000, ETag }]);
    for (const [Range, start] of [
      ["bytes=0-", 0],
      ["bytes=-7", 59_993],
      ["bytes=45000-", 45_000],
    ] as const) {
      const { Body, ContentRange } = await client.send(new GetObjectCommand({ ...object, Range }));
      expect(ContentRange).toBe(`bytes ${start}-59999/60000`);
      expect(content.subarray(start).equals(await Body!.transformToByteArray())).toBe(true);
    }
    await forge("a", gzipSync(content.subarray(1)), content);
    const { Body } = await client.send(new GetObjectCommand(object));
    await expect(Body!.transformToByteArray()).rejects.toThrow("aborted");
  } finally {
    client.destroy();
    await gateway.close(0);
  }
});

test("another type takes a new manifest of the same chunks", async () => {
  const content = textOf(60_000);
  const { upload } = await world.put("a", content, configOf("small"));
  await world.put("a", content, { ...configOf("small"), contentType: "text/css" });
  expect(await manifestOf("a")).toMatchObject({ upload, contentType: "text/css", gzip: { bytes: 60_000 } });
});

test("lost chunks are made again from what is stored", async () => {
  const content = textOf(180_000);
  await world.put("a", content, configOf("small"));
  const manifest = await manifestOf("a");
  for (let chunk = 0; chunk < manifest.m; chunk++) {
    await world.store(manifest.placement[chunk]!).remove([chunkName("a", manifest.upload, chunk)]);
  }
  expect((await world.get("a")).equals(content)).toBe(true);
  expect((await world.run(["repair", "a"])).code).toBe(0);
  expect((await world.verify("a")).sound).toBe(true);
});

test("an object under another code has the same content, compressed", async () => {
  const content = textOf(180_000);
  await world.put("a", content, { config: { ...world.config, compress: "small", code: { k: 2, m: 2 } } });
  const { config } = configOf("small");
  expect(await recodeObject("a", world.parts({ config }))).toMatchObject({ outcome: "stored", bytes: 180_000 });
  expect(await recodeObject("a", world.parts({ config }))).toBeUndefined();
  expect((await manifestOf("a")).gzip?.bytes).toBe(180_000);
  expect((await world.get("a")).equals(content)).toBe(true);
});

/** Stores `stored` as one segment of gzip that its manifest says is of `content`, under the code of the world. */
async function forge(key: string, stored: Uint8Array, content: Uint8Array): Promise<void> {
  await world.put(key, stored, configOf("none"));
  const { version: _v, hashesSha256: _s, hashesRoot: _r, agarose: _a, ...draft } = await manifestOf(key);
  const sha256 = createHash("sha256").update(content).digest("hex");
  const gzip = { bytes: content.length, sha256, segmentBytes: content.length, segments: [stored.length] };
  const forged = encodeManifest(await sealManifest({ ...draft, gzip, requires: ["gzip"] }, nodeSha256));
  for (const region of REGIONS) await world.tamper(region, manifestName(key), () => forged);
}

const CONTENT = textOf(60_000);
const MEMBER = gzipSync(CONTENT);

test.each<[string, Uint8Array]>([
  ["inflates to more than signed", gzipSync(Buffer.concat([CONTENT, Buffer.alloc(1)]))],
  ["inflates to a thousand times that", gzipSync(Buffer.alloc(60_000_000))],
  ["inflates to less", gzipSync(CONTENT.subarray(1))],
  ["is cut off", MEMBER.subarray(0, -9)],
  ["has bytes behind its member", Buffer.concat([MEMBER, Buffer.from("more")])],
  ["is two members", Buffer.concat([gzipSync(CONTENT.subarray(0, 9)), gzipSync(CONTENT.subarray(9))])],
  ["is other content of this length", gzipSync(textOf(60_000))],
])("no command shows a segment that %s", async (_name, stored) => {
  await forge("bad", stored, CONTENT);
  const got = await world.run(["get", "bad", "out", "--json"]);
  expect([got.code, JSON.parse(String(got.stdout)).error?.code]).toEqual([1, "OBJECT_CORRUPT"]);
  await expect(readFile(join(world.dir, "out"))).rejects.toThrow("ENOENT");
  // A put of the content mends it.
  await world.put("bad", CONTENT, { ...configOf("small"), force: true });
  expect((await world.get("bad")).equals(CONTENT)).toBe(true);
});

test("what is not the content that its manifest names is not stored again", async () => {
  await forge("bad", gzipSync(textOf(60_000)), CONTENT);
  const parts = world.parts({ config: { ...world.config, code: { k: 2, m: 2 } } });
  await expect(recodeObject("bad", parts)).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
  expect((await manifestOf("bad")).generation).toBe(1);
});
