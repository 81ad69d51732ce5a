/**
 * The second implementation of docs/reference/format.md against the first: each reads what the other has written.
 */
import { randomBytes, sign } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEncrypted, Secrets } from "@agarose/core/encryption";
import * as core from "@agarose/core/format";
import { encodeFrame, objectUrl, trustPublishers, type Manifest } from "@agarose/core/format";
import { startPopProcess } from "@agarose/pop/test";
import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCodec } from "@agarose/storage/parts";
import { storeExtra } from "@agarose/storage/maintenance/scrub/store-extra";
import { readManifest } from "@agarose/storage/objects/manifests";
import {
  blockBytesOf,
  blocksOfShard,
  combine,
  crcOf,
  decode,
  decrypt,
  encode,
  encodedKey,
  keyName,
  encodeExtra,
  framesOf,
  indices,
  inflate,
  isSigned,
  KEY_ID,
  PRIVATE_KEY,
  RAW_PUBLIC_KEY,
  rowsOver,
  seal,
  secretName,
  sha256,
  shardHash,
  type Content,
} from "./second-implementation.ts";
import { REGIONS, startTestWorld, type Fault, type World } from "./world.ts";

const PAGE = new URL("../../../docs/reference/format.md", import.meta.url);
const OBJECT = Buffer.from("Agarose is purified agar.");
const UPLOAD = "000102030405060708090a0b0c0d0e0f";

let world: World;
let page: string;

beforeAll(async () => {
  page = await readFile(PAGE, "utf8");
  world = await startTestWorld();
});

afterAll(() => world.close());

test("the example of the page is what `agarose put` stores", async () => {
  const stores = world.stores.slice(0, 3);
  const regions = world.config.regions.slice(0, 3);
  const survive = { regions: 1, providers: 1 };
  const config = { ...world.config, regions, survive, code: { k: 2, m: 1 }, stripeBytes: 16 };
  const headers = { "cache-control": "max-age=60" };
  const nowMs = () => Date.UTC(2026, 0, 2, 3, 4, 5);
  const signer = async (signed: Uint8Array) => ({
    keyId: KEY_ID,
    value: sign(null, signed, PRIVATE_KEY).toString("base64"),
  });
  const more = { config, stores, contentType: "text/plain", headers, nowMs, newUpload: () => UPLOAD, sign: signer };
  await world.put("docs/grüße.txt", OBJECT, more);
  const chunks = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(chunks).toHaveLength(3);
  for (const [region, name, hex] of chunks) expect((await world.read(region!, name!)).toString("hex")).toBe(hex);
  const manifest = await world.read("dublin", "manifests/docs/gr~8w8U-e.txt!.json");
  expect(manifest.toString()).toBe(blocksOf("json")[0]![0]);
  expect(page).toContain(objectUrl("https://s3.example/bucket", chunks[2]![1]!));
});

test("the names and URLs of any key are what the rules of the page give", () => {
  const odd = fc.string({ unit: fc.constantFrom("a", "_", ".", "/", "~", "^", "é", "🐈"), minLength: 1, maxLength: 9 });
  const long = fc.string({ unit: fc.constantFrom("a", "/", "д", "="), minLength: 180, maxLength: 230 });
  const any = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.oneof(odd, long, any), (key) => {
      expect(keyName(key)).toBe(core.keyName(key));
      expect(encodedKey(key)).toBe(core.encodeKey(key));
    }),
    { numRuns: 3000 },
  );
});

test("the example of the page is what its rules give", () => {
  const written = encode({ key: "docs/grüße.txt", body: OBJECT, k: 2, m: 1, stripeBytes: 16, upload: UPLOAD });
  const lines = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(written.chunks.map((chunk) => chunk.toString("hex"))).toEqual(lines.map(([, , hex]) => hex));
  expect(lines.map(([, name]) => name)).toEqual(written.names);
  const manifest = blocksOf("json")[0]![0]!;
  const { hashes, version, hashesSha256, hashesRoot } = written;
  expect(JSON.parse(manifest)).toMatchObject({ hashes, version, hashesSha256, hashesRoot });
  expect(blocksOf("version")[0]).toEqual(written.versionLines);
  expect(blocksOf("key")[0]).toEqual([`ed25519:${RAW_PUBLIC_KEY.toString("base64")}`]);
  expect(isSigned(manifest)).toBe(true);
  expect(isSigned(manifest.replace("text/plain", "text/html_"))).toBe(false);
  expect(manifest.endsWith(`,"crc32":"${crcOf(manifest)}"}`)).toBe(true);
  expect([2, 3, 4].map((row) => rowsOver([0, 1], [row])[0])).toEqual([
    [3, 2],
    [2, 3],
    [5, 4],
  ]);
});

test("the frames of the page are ours", () => {
  const [cached, end] = blocksOf("frames").map((lines) => lines.map((line) => line.replaceAll(" ", "")).join(""));
  const shards = blocksOf("chunks")[0]!.map((line) => Buffer.from(line.split(/\s+/)[2]!, "hex").subarray(8, 13));
  const ours = [0, 2].map((chunk) => encodeFrame("chunk", 1, chunk, shards[chunk]!));
  expect(cached).toBe(Buffer.concat(ours).toString("hex"));
  expect(end).toBe(Buffer.from(encodeFrame("end", 0, 0, new Uint8Array(0))).toString("hex"));
});

test("the encrypted example of the page is what its rules give", async () => {
  const secret = Buffer.from(indices(32));
  const stored = Buffer.from(blocksOf("cells")[0]!.join(""), "hex");
  const encryption = JSON.parse(blocksOf("encryption")[0]![0]!);
  expect(page).toContain(secretName(secret));
  const fields = { key: "docs/grüße.txt", bytes: stored.length, encryption };
  const { content, properties } = decrypt(stored, fields, secret);
  expect(content.equals(OBJECT)).toBe(true);
  expect(properties).toEqual({
    contentType: "text/plain",
    headers: { "cache-control": "max-age=60" },
    sha256: sha256(OBJECT).toString("hex"),
  });
  // Ours, from the same bytes.
  const ours = new Secrets([{ prefix: "docs/", secrets: [`aes256:${secret.toString("base64")}`] }]);
  const opened = await openEncrypted(fields as never, await ours.dataKeyOf(fields));
  expect(opened.shown).toMatchObject({ bytes: OBJECT.length, ...properties });
});

test.each([0, 1_000, 65_520, 200_000])(
  "an encrypted object of %i bytes is read by the second implementation, from any k chunks",
  async (bytes) => {
    const key = `second/secret-${bytes}`;
    const body = randomBytes(bytes);
    const secret = randomBytes(32);
    process.env["SECOND_SECRET"] = `aes256:${secret.toString("base64")}`;
    const encryption = [{ prefix: "second/", secrets: [{ environment: "SECOND_SECRET" }] }];
    const config = { ...world.config, code: { k: 3, m: 2 }, stripeBytes: 70_000, encryption };
    await world.put(key, body, { config, contentType: "text/css" });
    const manifest = JSON.parse((await world.read("tokyo", `manifests/${keyName(key)}.json`)).toString());
    expect(manifest).toMatchObject({ contentType: "application/octet-stream", headers: {}, requires: ["encryption"] });
    const name = (chunk: number): string => `chunks/${keyName(key)}${manifest.upload}/${chunk}`;
    const chunks = await Promise.all(indices(5).map((i) => world.read(manifest.placement[i], name(i))));
    const stored = decode(chunks, [1, 3, 4], 3, 70_000, manifest.bytes);
    expect(sha256(stored).toString("hex")).toBe(manifest.sha256);
    const { content, properties } = decrypt(stored, manifest, secret);
    expect(content.equals(body)).toBe(true);
    expect(properties).toEqual({ contentType: "text/css", headers: {}, sha256: sha256(body).toString("hex") });
  },
);

test.each([
  [4, 2, 1000, 2345],
  [9, 3, 4096, 4096 * 3],
  // Shards of three blocks and of two.
  [2, 1, 300_000, 500_000],
  [3, 3, 16, 100],
  [1, 2, 10, 25],
  [5, 1, 7, 20],
  // Two pages of hashes.
  [4, 2, 100, 100 * 129 + 7],
])(
  "what `agarose put` stores with %i+%i is read by the second implementation, from any k chunks",
  async (k, m, stripeBytes, bytes) => {
    const key = `second/${k}+${m}`;
    const body = randomBytes(bytes);
    const config = { ...world.config, code: { k, m }, stripeBytes, survive: { regions: 0, providers: 0 } };
    await world.put(key, body, { config });
    const manifest = JSON.parse((await world.read("tokyo", `manifests/${keyName(key)}.json`)).toString());
    const written = encode({ key, body, k, m, stripeBytes, upload: manifest.upload });
    const { hashes, version, hashesSha256, hashesRoot, pageStripes } = written;
    const over = {
      hashesSha256: manifest.hashesSha256,
      pageStripes: manifest.pageStripes,
      requires: manifest.requires,
    };
    expect(over).toEqual({ hashesSha256, pageStripes, requires: pageStripes && ["pages"] });
    expect(manifest).toMatchObject({ hashes, version, hashesRoot, bytes, k, m, stripeBytes });
    const stored = await Promise.all(written.names.map((name, chunk) => world.read(manifest.placement[chunk], name)));
    expect(stored.every((chunk, index) => chunk.equals(written.chunks[index]!))).toBe(true);
    if (written.leaves) {
      expect(manifest.leaves).toEqual(REGIONS);
      const lists = await Promise.all(REGIONS.map((region) => world.read(region, written.leafName)));
      expect(lists.every((list) => list.equals(written.leaves!))).toBe(true);
    } else expect(manifest).not.toHaveProperty("leaves");
    // The last k chunks: as much parity as there is.
    const present = Array.from({ length: k }, (_, i) => m + i);
    expect(decode(stored, present, k, stripeBytes, bytes).equals(body)).toBe(true);
    expect(manifest.placement).toEqual(stored.map((_, chunk) => REGIONS[chunk % REGIONS.length]));
  },
);

test.each([
  [3, 1, 1_000, 4_500],
  [1, 2, 700, 2_000],
])(
  "the extra chunks of a scrub with %i+%i are those of the second implementation",
  async (k, m, stripeBytes, bytes) => {
    const key = `second/extra-${k}+${m}`;
    const body = randomBytes(bytes);
    const config = { ...world.config, code: { k, m }, stripeBytes, survive: { regions: 0, providers: 0 } };
    const name = `manifests/${keyName(key)}.json`;
    await world.put(key, body, { config });
    const before = JSON.parse((await world.read("tokyo", name)).toString());
    const { crc32: _, ...manifest } = before;
    await storeExtra(manifest as Manifest, ["tokyo", "dublin"], world.parts({ config }));
    const { extra, crc32: _crc32, ...after } = JSON.parse((await world.read("tokyo", name)).toString());
    expect(after).toEqual({ ...manifest, generation: 2 });
    const object = { key, body, k, m, stripeBytes, upload: manifest.upload };
    const written = encodeExtra(object, extra.upload, ["tokyo", "dublin"]);
    expect(extra).toEqual(written.extra);
    const stored = await Promise.all(written.names.map((one, i) => world.read(extra.placement[i], one)));
    expect(stored).toEqual(written.chunks);
    // As few others as there can be.
    const chunks = [...encode(object).chunks, ...stored];
    const present = [...indices(k - Math.min(k, 2)), k + m, k + m + 1].slice(-k);
    expect(decode(chunks, present, k, stripeBytes, bytes).equals(body)).toBe(true);
  },
);

test.each([0, 1, 16_384])("an inline object of %i bytes is read by the second implementation", async (bytes) => {
  const body = randomBytes(bytes);
  const config = { ...world.config, code: "auto" as const, stripeBytes: 65_536 };
  await world.put("second/inline", body, { config });
  const manifest = JSON.parse((await world.read("tokyo", "manifests/second/inline!.json")).toString());
  expect(Buffer.from(manifest.inline, "base64").equals(body)).toBe(true);
  const none = sha256(Buffer.alloc(0)).toString("hex");
  const content = ["agarose/2", "second/inline", sha256(body).toString("hex"), bytes, "1+0", "65536/65536", none];
  expect(manifest).toMatchObject({
    bytes,
    k: 1,
    m: 0,
    placement: [],
    hashes: [],
    requires: ["inline"],
    hashesSha256: none,
    hashesRoot: none,
    version: sha256(Buffer.from(content.map((line) => `${line}\n`).join("")))
      .toString("hex")
      .slice(0, 32),
  });
  expect(await world.names("chunks/second/inline!")).toEqual([]);
});

test.each([
  ["small", 2_000, false],
  ["small", 2_000, true],
  ["small", 150_000, false],
  ["small", 150_000, true],
  ["all", 2_600_000, false],
] as const)(
  "an object compressed by compress: %s, of %i bytes, is read by the second implementation (encrypted: %s)",
  async (compress, bytes, isEncrypted) => {
    const key = `second/compressed-${bytes}-${isEncrypted}`;
    const body = Buffer.from(randomBytes(bytes / 2).toString("hex"));
    const secret = randomBytes(32);
    process.env["SECOND_SECRET"] = `aes256:${secret.toString("base64")}`;
    const encryption = isEncrypted ? [{ prefix: "second/", secrets: [{ environment: "SECOND_SECRET" }] }] : [];
    const config = { ...world.config, code: { k: 3, m: 2 }, stripeBytes: 200_000, compress, encryption };
    await world.put(key, body, { config, contentType: "text/css" });
    const manifest = JSON.parse((await world.read("tokyo", `manifests/${keyName(key)}.json`)).toString());
    expect(manifest.requires).toEqual(isEncrypted ? ["encryption", "gzip"] : ["gzip"]);
    const name = (chunk: number): string => `chunks/${keyName(key)}${manifest.upload}/${chunk}`;
    const chunks = await Promise.all(indices(5).map((i) => world.read(manifest.placement[i], name(i))));
    const stored = decode(chunks, [1, 3, 4], 3, 200_000, manifest.bytes);
    const { k, m, stripeBytes, upload } = manifest;
    const written = encode({ key, body: stored, k, m, stripeBytes, upload, gzip: manifest.gzip });
    expect(manifest).toMatchObject({ version: written.version, sha256: sha256(stored).toString("hex") });
    const segments = isEncrypted ? decrypt(stored, manifest, secret).content : stored;
    expect(inflate(segments, manifest.gzip).equals(body)).toBe(true);
    expect(manifest.gzip.sha256).toBe(isEncrypted ? undefined : sha256(body).toString("hex"));
    expect(manifest.gzip.segments).toHaveLength(compress === "all" ? 3 : 1);
  },
);

describe("a segment is refused by the second implementation", () => {
  const content = Buffer.from(randomBytes(3_000).toString("hex"));
  const member = gzipSync(content);
  const inflated = (segment: Buffer): Buffer =>
    inflate(segment, { bytes: content.length, segmentBytes: content.length, segments: [segment.length] });

  test.each([
    ["inflates to more", gzipSync(Buffer.concat([content, Buffer.alloc(1)]))],
    ["inflates to less", gzipSync(content.subarray(1))],
    ["is two members", Buffer.concat([gzipSync(content.subarray(0, 9)), gzipSync(content.subarray(9))])],
    ["has an empty member in front", Buffer.concat([gzipSync(""), member])],
    ["has an empty member behind it", Buffer.concat([member, gzipSync("")])],
    ["has bytes behind it", Buffer.concat([member, Buffer.from("more")])],
    ["has zeros behind it", Buffer.concat([member, Buffer.alloc(4)])],
    ["is cut off", member.subarray(0, -1)],
    ["has a wrong CRC-32", Buffer.from(member.with(member.length - 8, member.at(-8)! ^ 1))],
  ])("that %s", (_name, segment) => {
    expect(inflated(member).equals(content)).toBe(true);
    expect(() => inflated(segment)).toThrow();
  });
});

describe("what the second implementation has written", () => {
  test("is a compressed object for ours", async () => {
    const key = "written/compressed";
    const content = Buffer.from(randomBytes(3_000).toString("hex"));
    const segments = [0, 2_500, 5_000].map((at) => gzipSync(content.subarray(at, at + 2_500), { level: 9 }));
    const body = Buffer.concat(segments);
    const gzip = {
      bytes: content.length,
      sha256: sha256(content).toString("hex"),
      segmentBytes: 2_500,
      segments: segments.map(({ length }) => length),
    };
    await store({ key, body, k: 2, m: 1, stripeBytes: 1_000, upload: UPLOAD, gzip });
    expect((await getTrusted(key)).equals(content)).toBe(true);
  });

  test.each([
    ["one stripe", { k: 4, m: 2, stripeBytes: 1000 }, 900],
    ["padding that fills more than a shard", { k: 9, m: 3, stripeBytes: 16 }, 40],
    ["whole copies", { k: 1, m: 3, stripeBytes: 500 }, 1200],
    ["small blocks and a leaf list", { k: 2, m: 1, stripeBytes: 1000, blockBytes: 100 }, 2_900],
    ["blocks that are longer than shards", { k: 3, m: 2, stripeBytes: 1000, blockBytes: 1000 }, 1_500],
    ["two pages of hashes behind their leaves", { k: 2, m: 1, stripeBytes: 100, blockBytes: 20 }, 30_007],
    ["two pages of hashes without leaves", { k: 4, m: 2, stripeBytes: 100 }, 13_000],
    ["nothing", { k: 2, m: 1, stripeBytes: 16 }, 0],
  ])("is read by ours, without any m chunks: %s", async (name, code, bytes) => {
    const key = `written/${name}`;
    const body = randomBytes(bytes);
    const object = { key, body, upload: randomBytes(16).toString("hex"), ...code };
    const placement = await store(object);
    expect((await getTrusted(key)).equals(body)).toBe(true);
    for (const [chunk, region] of placement.slice(0, bytes > 0 ? code.m : 0).entries()) {
      await world.store(region).remove([`chunks/${keyName(key)}${object.upload}/${chunk}`]);
    }
    expect((await getTrusted(key)).equals(body)).toBe(true);
  });

  test("has extra chunks for ours, which reads by them what has lost more than m chunks, and no lie of theirs", async () => {
    const object = { key: "written/extra", body: randomBytes(2_900), k: 3, m: 1, stripeBytes: 1_000, upload: UPLOAD };
    const placement = await storeChunks(object);
    const { chunks, names, extra } = encodeExtra(object, "e".repeat(32), ["frankfurt", "tokyo"]);
    for (const [i, name] of names.entries()) await storeBytes(extra.placement[i]!, name, chunks[i]!);
    const { hashes, names: own } = encode(object);
    await storeManifest(object.key, { ...manifestOf(object, 1, placement), extra, hashes });
    for (const chunk of [0, 1, 2]) await world.store(placement[chunk]!).remove([own[chunk]!]);
    expect((await getTrusted(object.key)).equals(object.body)).toBe(true);
    await world.tamper("tokyo", names[1]!, (bytes) => bytes.fill(0, 400, 500));
    await expect(getTrusted(object.key)).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
  });

  test("is an inline object for ours", async () => {
    const body = Buffer.from("inside of its manifest");
    const none = sha256(Buffer.alloc(0)).toString("hex");
    const content = { key: "written/inline", body, k: 1, m: 0, stripeBytes: 64, upload: UPLOAD };
    const { version } = encode({ ...content, hasChunks: false });
    const fields = { requires: ["inline"], inline: body.toString("base64"), hashesSha256: none, hashesRoot: none };
    const manifest = { ...manifestOf(content, 1, []), ...fields, version, hashes: [] };
    await storeManifest(content.key, manifest);
    expect((await getTrusted(content.key)).equals(body)).toBe(true);
    await storeManifest(content.key, { ...manifest, generation: 2, inline: Buffer.from("other").toString("base64") });
    await expect(getTrusted(content.key)).rejects.toMatchObject({ code: "MANIFEST_INVALID" });
  });

  test("is a removed object for ours, and the next put is above its tombstone", async () => {
    const key = "written/removed";
    const object = { key, body: randomBytes(100), k: 2, m: 1, stripeBytes: 1000, upload: UPLOAD };
    await store(object);
    expect((await getTrusted(key)).equals(object.body)).toBe(true);
    await storeManifest(key, tombstoneOf(key, 5));
    await expect(getTrusted(key)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    expect(await world.put(key, randomBytes(100))).toMatchObject({ generation: 6 });
  });
});

test("the tombstone that `agarose rm` writes is that of the page", async () => {
  const key = "second/removed";
  const { generation } = await world.put(key, randomBytes(100));
  expect((await world.run(["rm", key])).code).toBe(0);
  for (const region of REGIONS) {
    const text = (await world.read(region, `manifests/${keyName(key)}.json`)).toString();
    expect(text.endsWith(`,"crc32":"${crcOf(text)}"}`)).toBe(true);
    expect(JSON.parse(text)).toEqual({
      agarose: 2,
      key,
      generation: generation + 1,
      modified: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/),
      deleted: true,
      signature: { keyId: expect.stringMatching(/^[\da-f]{16}$/), value: expect.stringMatching(/^[\w+/]{86}==$/) },
      crc32: crcOf(text),
    });
  }
  expect(await world.names(`chunks/${keyName(key)}`)).toEqual([]);
});

describe("claims", () => {
  const key = "second/claimed";

  /** Writes a claim of the page, as another writer. */
  async function claim(generation: number, regions: readonly string[]): Promise<void> {
    const name = `claims/${keyName(key)}${generation}`;
    for (const region of regions) await storeJson(region, name, `{"upload":"${UPLOAD}"}`);
  }

  test("are created by a put in a majority, as the page says, and removed after it", async () => {
    const name = `claims/${keyName(key)}1`;
    const conditions: unknown[] = [];
    const claims = new Map<string, string>();
    for (const region of REGIONS) {
      world.faults.set(region, async (request, _response, asked) => {
        if (request.method === "PUT" && asked === name) conditions.push(request.headers["if-none-match"]);
        const isManifest = asked === `manifests/${keyName(key)}.json`;
        if (request.method !== "PUT" || !isManifest || claims.size > 0) return false;
        for (const claimed of await world.names(name)) {
          const holder = claimed.split("/")[0]!;
          claims.set(holder, (await world.read(holder, name)).toString());
        }
        return false;
      });
    }
    const { upload } = await world.put(key, randomBytes(100));
    world.faults.clear();
    expect(new Set(conditions)).toEqual(new Set(["*"]));
    expect(claims.size).toBeGreaterThanOrEqual(4);
    for (const claimed of claims.values()) expect(JSON.parse(claimed)).toEqual({ upload });
    expect(await world.names(`claims/${keyName(key)}`)).toEqual([]);
  });

  test("of another writer with a majority are passed over", async () => {
    const { generation } = await world.put(key, randomBytes(101));
    await claim(generation + 1, REGIONS.slice(0, 4));
    expect(await world.put(key, randomBytes(102))).toMatchObject({ generation: generation + 2 });
  });
});

describe("the repair queue", () => {
  test("has an entry of the page for what a put could not store", async () => {
    const key = "second/queued";
    const refuse: Fault = (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/")) return false;
      response.writeHead(500).end();
      return true;
    };
    world.faults.set("tokyo", refuse);
    const { generation } = await world.put(key, randomBytes(100));
    world.faults.clear();
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    for (const region of REGIONS) {
      const entry = JSON.parse((await world.read(region, `repairs/${keyName(key)}`)).toString());
      expect(entry).toEqual({ key, generation, missing: [4], regions: [] });
    }
  });

  test("is emptied of an entry that the second implementation has made", async () => {
    const key = "second/entered";
    const put = await world.put(key, randomBytes(100));
    await world.store("paulo").remove([`chunks/${keyName(key)}${put.upload}/3`]);
    const entry = { key, generation: put.generation, missing: [3], regions: [] };
    await storeJson("dublin", `repairs/${keyName(key)}`, JSON.stringify(entry));
    expect((await world.run(["repair", "--queued"])).code).toBe(0);
    expect(await world.names(`repairs/${keyName(key)}`)).toEqual([]);
    expect((await world.verify(key)).sound).toBe(true);
  });
});

test("the copy that a put under `keep` leaves has the name of the page, and is the manifest that went", async () => {
  const key = "history/grüße.txt";
  const config = { ...world.config, keep: [{ prefix: "history/", time: 3_600_000 }] };
  const old = encode({ key, body: OBJECT, k: 2, m: 1, stripeBytes: 16, upload: UPLOAD });
  await store({ key, body: OBJECT, k: 2, m: 1, stripeBytes: 16, upload: UPLOAD });
  const before = await world.read("tokyo", `manifests/${keyName(key)}.json`);
  const { generation } = await world.put(key, randomBytes(1_000), { config });
  for (const region of REGIONS) {
    const copy = await world.read(region, `history/${keyName(key)}${UPLOAD}.${generation}`);
    expect(copy).toEqual(before);
    expect(isSigned(copy.toString())).toBe(true);
    expect(JSON.parse(copy.toString())).toMatchObject({ version: old.version, hashes: old.hashes });
  }
});

test("functional chunks are rows of the code of the page", async () => {
  const shards = indices(4).map(() => randomBytes(50));
  const { reconstruct } = await loadCodec();
  const [ours] = reconstruct(
    4,
    shards.map((bytes, index) => ({ index, bytes })),
    [200],
  );
  expect(combine(rowsOver(indices(4), [200])[0]!, shards).equals(ours!)).toBe(true);
});

test("bundles and batches of a PoP are read by the second implementation", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-format-"));
  const object = { key: "written/large", body: randomBytes(700_000), k: 2, m: 1, stripeBytes: 300_000, upload: UPLOAD };
  await store(object);
  const small = { ...object, key: "written/small", body: randomBytes(1_000) };
  await store(small);
  const variables = {
    POP: "own",
    REGIONS: JSON.stringify(world.config.regions.map(({ name, url }) => ({ name, url }))),
    PUBLISHER_KEYS: JSON.stringify([`ed25519:${RAW_PUBLIC_KEY.toString("base64")}`]),
  };
  const pop = await startPopProcess({ variables, folder, periodMs: 0 }, () => {});
  const bundle = async (path: string, query: Record<string, string>) => {
    const response = await fetch(`${pop.url}${path}?${new URLSearchParams(query)}`);
    return framesOf(Buffer.from(await response.arrayBuffer()));
  };
  const planIn = (payload: Buffer) => JSON.parse(payload.toString());
  try {
    const read = `/v1/read/${encodedKey(object.key)}`;
    await fetch(`${pop.url}/o/${encodedKey(object.key)}`).then((response) => response.arrayBuffer());
    await pop.runPeriod();

    const { hashes } = encode(object);
    const isShard = (shard: Buffer, stripe: number, chunk: number): boolean =>
      Buffer.from(hashes[stripe]!, "base64")
        .subarray(chunk * 32, chunk * 32 + 32)
        .equals(shardHash(shard, 65_536));
    let whole = await bundle(read, {});
    // The configuration of a period is read some seconds later.
    await expect
      .poll(async () => planIn((whole = await bundle(read, {}))[0]!.payload).cached.length, { timeout: 60_000 })
      .toBeGreaterThan(0);
    const { cached, version, manifest } = planIn(whole[0]!.payload);
    expect({ version, generation: manifest.generation }).toEqual({ version: encode(object).version, generation: 1 });
    expect(manifest.hashes).toEqual(hashes);
    expect(whole.slice(1).map(({ stripe, chunk }) => [stripe, chunk])).toEqual([
      ...indices(3).flatMap((stripe) => cached.map((chunk: number) => [stripe, chunk])),
      [0, 0],
    ]);
    // A miss is of type 3.
    const shardsSent = whole.filter(({ type }) => type === 2);
    expect(shardsSent.length).toBeGreaterThan(0);
    for (const { stripe, chunk, payload } of shardsSent) expect(isShard(payload, stripe, chunk)).toBe(true);

    const some = await bundle(read, { from: "1", to: "1", version });
    expect(planIn(some[0]!.payload)).not.toHaveProperty("manifest");
    expect(some.slice(1, -1).map(({ stripe }) => stripe)).toEqual(cached.map(() => 1));

    // Bytes of the second block of data shard 0 in stripe 1.
    const start = 300_000 + 65_536;
    const pieces = await bundle(read, { range: `bytes=${start + 10}-${start + 20}` });
    expect(pieces.map(({ type, chunk, stripe }) => [type, chunk, stripe])).toEqual([
      [1, 2, 0],
      [2, 256, 1],
      [2, 0, 1],
      [4, 0, 0],
    ]);
    const leaves = pieces[1]!.payload;
    expect(sha256(leaves.subarray(0, 96)).equals(Buffer.from(hashes[1]!, "base64").subarray(0, 32))).toBe(true);
    expect(sha256(pieces[2]!.payload).equals(leaves.subarray(32, 64))).toBe(true);
    const shard = object.body.subarray(300_000, 450_000);
    expect(pieces[2]!.payload.equals(blocksOfShard(shard, 65_536)[1]!)).toBe(true);

    const keys = [object.key, "written/absent", small.key].map((key) => ["key", key]);
    const response = await fetch(`${pop.url}/v1/plans?${new URLSearchParams([...keys, ["bodies", "1"]])}`);
    const batch = framesOf(Buffer.from(await response.arrayBuffer()));
    const plans = batch.filter(({ type }) => type === 1).toSorted((a, b) => a.stripe - b.stripe);
    expect(plans.map(({ stripe, chunk }) => [stripe, chunk])).toEqual([
      [0, 0],
      [2, 2],
    ]);
    const shards = batch.filter(({ type, stripe }) => type === 2 && stripe === 2);
    expect(Buffer.concat(shards.map(({ payload }) => payload)).equals(small.body)).toBe(true);
    expect(shards.map(({ chunk }) => chunk)).toEqual([0, 1]);
  } finally {
    await pop.kill();
    await rm(folder, { recursive: true, force: true });
  }
});

/** The fields of a manifest, without those of the hashes. */
function manifestOf(
  { key, body, k, m, stripeBytes, upload, blockBytes = blockBytesOf(body.length, k, stripeBytes), gzip }: Content,
  generation: number,
  placement: readonly string[],
) {
  const written = encode({ key, body, k, m, stripeBytes, upload, blockBytes, gzip });
  const { version, hashesSha256, hashesRoot, pageStripes } = written;
  const requires = [...(pageStripes ? ["pages"] : []), ...(gzip ? ["gzip"] : [])];
  return {
    agarose: 2,
    key,
    generation,
    upload,
    bytes: body.length,
    contentType: "application/octet-stream",
    headers: {},
    modified: "2026-01-02T03:04:05Z",
    k,
    m,
    stripeBytes,
    blockBytes,
    sha256: sha256(body).toString("hex"),
    placement,
    version,
    hashesSha256,
    hashesRoot,
    ...(pageStripes && { pageStripes }),
    ...(gzip && { gzip }),
    ...(requires.length > 0 && { requires }),
  };
}

function tombstoneOf(key: string, generation: number) {
  return { agarose: 2, key, generation, modified: "2026-01-02T03:04:05Z", deleted: true };
}

/** Stores an object as the page says, from the last region on. Returns its placement. */
async function store(object: Content): Promise<string[]> {
  const placement = await storeChunks(object);
  const { hashes, leaves, leafName } = encode(object);
  if (leaves) await storeBytes("virginia", leafName, leaves);
  const fields = { ...manifestOf(object, 1, placement), ...(leaves && { leaves: ["virginia"] }), hashes };
  await storeManifest(object.key, fields);
  return placement;
}

async function storeChunks(object: Content): Promise<string[]> {
  const { chunks, names } = encode(object);
  const placement = names.map((_, chunk) => REGIONS[(chunk + 5) % REGIONS.length]!);
  if (object.body.length === 0) return placement;
  for (const [chunk, name] of names.entries()) await storeBytes(placement[chunk]!, name, chunks[chunk]!);
  return placement;
}

async function storeManifest(key: string, fields: Record<string, unknown>): Promise<void> {
  for (const region of REGIONS) await storeJson(region, `manifests/${keyName(key)}.json`, seal(fields));
}

async function storeJson(region: string, name: string, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  await world.store(region).put(name, bytes, { bytes: bytes.length, contentType: "application/json" });
}

async function storeBytes(region: string, name: string, bytes: Buffer): Promise<void> {
  await world.store(region).put(name, bytes, { bytes: bytes.length, contentType: "application/octet-stream" });
}

/** Reads an object that the publisher of the page must have signed. */
async function getTrusted(key: string): Promise<Buffer> {
  const trust = trustPublishers([`ed25519:${RAW_PUBLIC_KEY.toString("base64")}`]);
  await readManifest(key, world.parts({ trust }));
  return world.get(key);
}

/** The lines of every fenced block of a kind. */
function blocksOf(kind: string): string[][] {
  const blocks = Array.from(page.matchAll(new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\\n\`\`\``, "g")));
  return blocks.map((match) => match[1]!.split("\n"));
}
