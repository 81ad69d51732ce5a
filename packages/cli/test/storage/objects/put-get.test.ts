import { createHash, randomBytes } from "node:crypto";
import { open, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chunkBytes, encodeManifest, MANIFEST_BYTES_MAX, stripeCount } from "@agarose/core/format";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { loadEncoder } from "@agarose/storage/parts";
import { readManifest } from "@agarose/storage/objects/manifests";
import { putObject } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import {
  chunkPlace,
  CREDENTIALS,
  DOWN,
  manifestName,
  REGIONS,
  startTestWorld,
  storesOf,
  wrongLength,
  type Fault,
  type World,
} from "../../world.ts";

const MIB = 2 ** 20;
const TIB = 2 ** 40;
let world: World;

beforeAll(async () => {
  world = await startTestWorld();
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

describe("what was put is what is got", () => {
  // k = 4, stripes of 1,000 bytes: shards of 250, and every edge of shard, stripe and padding.
  test.each([0, 1, 3, 4, 5, 249, 250, 251, 999, 1000, 1001, 1999, 2000, 2001, 3003, 100_000])(
    "%i bytes",
    async (bytes) => {
      const body = randomBytes(bytes);
      const put = await world.put(`size/${bytes}`, body);
      expect(put).toMatchObject({ bytes, outcome: "stored", regionsWithoutManifest: [] });
      expect((await world.get(`size/${bytes}`)).equals(body)).toBe(true);
      expect(await world.verify(`size/${bytes}`)).toMatchObject({ sound: true, readable: true });
    },
  );

  test.each([
    "a",
    "folder/sub folder/file.txt",
    "ümläut/e\u0301",
    "猫/犬 🐈‍⬛.jpg",
    "עברית/عربى",
    "control-\u0001\u001f\u007f",
    "specials-!*'();:@&=+$,?#[]<>\"\\^`{|}~%41%",
    "zero-width-\u200b\ufeff-rtl-\u202e",
    "astral-𝔄𐍈-private-\ue000",
    ".hidden/...",
    " leading and trailing ",
    "x".repeat(900),
  ])("under the key %j", async (key) => {
    const body = randomBytes(1500);
    await world.put(key, body);
    expect((await world.get(key)).equals(body)).toBe(true);
  });

  test.each([
    [0, 1],
    [999, 1001],
    [1000, 2000],
    [2500, 2501],
    [249, 4999],
    [0, 5000],
  ])("bytes %i to %i", async (start, end) => {
    const body = randomBytes(5000);
    await world.put("ranged", body);
    expect((await world.get("ranged", { start, end })).equals(body.subarray(start, end))).toBe(true);
  });

  test("a sparse file", async () => {
    const path = join(world.dir, "upload-sparse");
    await writeFile(path, "begin");
    await truncate(path, 300_000);
    const file = await open(path, "r+");
    await file.write("end", 299_997);
    await file.close();
    const object = { key: "sparse", source: fileSource(path), contentType: "x/y", headers: {}, force: false };
    const config = { ...world.config, stripeBytes: 10_000 };
    await putObject(object, world.parts({ config }));
    expect((await world.get("sparse")).equals(await readFile(path))).toBe(true);
  });

  test("many stripes with chunks streamed to their regions, and only n / k of the bytes", async () => {
    const body = randomBytes(3_000_000);
    let uploaded = 0;
    const config = { ...world.config, stripeBytes: 30_000 };
    const put = await world.put("large", body, {
      config,
      onBytes: (pass, bytes) => (uploaded += pass === "upload" ? bytes : 0),
    });
    expect((await world.get("large")).equals(body)).toBe(true);
    const manifest = await readManifest("large", world.parts());
    expect(stripeCount(manifest)).toBe(100);
    expect(uploaded).toBe(6 * chunkBytes(manifest));
    expect(manifest.sha256).toBe(createHash("sha256").update(body).digest("hex"));
    const [region, name] = chunkPlace(put, 5);
    expect(await world.store(region).head(name)).toBe(chunkBytes(manifest));
  });
});

describe("versions", () => {
  test("an object that is stored already is not uploaded again, unless forced or changed in a header", async () => {
    const body = randomBytes(100);
    const first = await world.put("same", body);
    const count = countRequests("PUT");
    expect(await world.put("same", body)).toEqual({ ...first, outcome: "unchanged" });
    expect(count()).toBe(0);
    expect(await world.put("same", body, { contentType: "text/plain" })).toMatchObject({ outcome: "stored" });
    expect(await world.put("same", body, { contentType: "text/plain", force: true })).toMatchObject({
      outcome: "stored",
    });
  });

  test("another content type or header takes a new manifest for the same chunks", async () => {
    const body = randomBytes(100_000);
    const first = await world.put("described", body, { contentType: "text/plain" });
    const chunks = await world.names("chunks/");
    const about = { contentType: "text/css", headers: { "cache-control": "no-cache" } };
    const second = await world.put("described", body, about);
    const { upload, version } = first;
    expect(second).toMatchObject({ outcome: "stored", upload, version, generation: 2, missing: [] });
    expect(await world.names("chunks/")).toEqual(chunks);
    const manifests = await Promise.all(REGIONS.map((region) => world.read(region, manifestName("described"))));
    for (const manifest of manifests) {
      expect(JSON.parse(manifest.toString())).toMatchObject({ ...about, upload, generation: 2 });
    }
    expect((await world.get("described")).equals(body)).toBe(true);
    expect(await world.verify("described")).toMatchObject({ sound: true });
    expect(await world.put("described", body, about)).toMatchObject({ outcome: "unchanged", generation: 2 });
  });

  test("another content type stores the chunks again when some are gone", async () => {
    const body = randomBytes(10_000);
    const { upload } = await world.put("thinned", body, { contentType: "text/plain" });
    const [gone] = (await world.names("chunks/")).filter((name) => name.startsWith(`${REGIONS[0]}/chunks/thinned!`));
    expect(gone).toBeDefined();
    await world.store(REGIONS[0]).remove([gone!.slice(REGIONS[0].length + 1)]);
    const second = await world.put("thinned", body, { contentType: "text/css" });
    expect(second.upload).not.toBe(upload);
    expect(await world.verify("thinned")).toMatchObject({ sound: true });
  });

  test("of another content type and other content at once, readers get one or the other, whole", async () => {
    const body = randomBytes(10_000);
    const other = randomBytes(9_000);
    await world.put("raced", body, { contentType: "text/plain" });
    const puts = [
      world.put("raced", body, { contentType: "text/css" }),
      world.put("raced", other, { contentType: "text/plain" }),
      world.put("raced", body, { contentType: "text/html" }),
    ];
    expect((await Promise.allSettled(puts)).filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    const read = await world.get("raced");
    expect(read.equals(body) || read.equals(other)).toBe(true);
    expect(await world.verify("raced")).toMatchObject({ sound: true });
  });

  test("a new version replaces the old one and has other chunks", async () => {
    const first = await world.put("versioned", randomBytes(1500));
    const body = randomBytes(1600);
    const second = await world.put("versioned", body);
    expect(second.version).not.toBe(first.version);
    expect((await world.get("versioned")).equals(body)).toBe(true);
  });

  test("a put that is interrupted while it uploads leaves the previous version", async () => {
    const old = randomBytes(50_000);
    await world.put("interrupted", old);
    const abort = new AbortController();
    for (const region of REGIONS) world.faults.set(region, abortAtFirstChunk(abort));
    const put = world.put("interrupted", randomBytes(50_000), { signal: abort.signal });
    await expect(put).rejects.toMatchObject({ code: "ABORTED" });
    expect(abort.signal.aborted).toBe(true);
    world.faults.clear();
    expect((await world.get("interrupted")).equals(old)).toBe(true);
    expect(await world.verify("interrupted")).toMatchObject({ sound: true });
  });

  test("a put that cannot write enough manifests fails, and one more makes it whole", async () => {
    const body = randomBytes(100);
    // 4 of 6 manifests are needed: three regions that refuse them are one too many, two are not.
    const refuse = (count: number): void => {
      for (const region of REGIONS.slice(0, count)) world.faults.set(region, refusePuts("manifests/"));
    };
    refuse(3);
    await expect(world.put("few-manifests", body)).rejects.toMatchObject({
      code: "STORE_FAILED",
      details: { written: 3, needed: 4 },
    });
    expect([...world.fired.keys()].toSorted()).toEqual(REGIONS.slice(0, 3).toSorted());
    world.faults.clear();
    refuse(2);
    const put = await world.put("few-manifests", body, { force: true });
    expect(put.regionsWithoutManifest.map(({ region }) => region).toSorted()).toEqual(REGIONS.slice(0, 2).toSorted());
    expect((await world.get("few-manifests")).equals(body)).toBe(true);
  });

  test("a region that fails once is tried again, with only its own chunks", async () => {
    const body = randomBytes(5000);
    let failures = 0;
    world.faults.set("paulo", (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/") || failures > 0) return false;
      failures++;
      response.writeHead(500).end();
      request.resume();
      return true;
    });
    const puts = countRequests("PUT", "dublin", "chunks/");
    await world.put("retried", body);
    expect(failures).toBe(1);
    expect(puts()).toBe(1);
    expect(await world.verify("retried")).toMatchObject({ sound: true });
    expect((await world.get("retried")).equals(body)).toBe(true);
  });

  test("a file that changes between the passes completes no chunk", async () => {
    const path = join(world.dir, "upload-changing");
    await writeFile(path, randomBytes(50_000));
    const before = await world.names("chunks/");
    let changed = false;
    const encoder = async () => {
      await writeFile(path, randomBytes(50_000));
      changed = true;
      return loadEncoder();
    };
    const object = { key: "changing", source: fileSource(path), contentType: "x/y", headers: {}, force: false };
    const put = putObject(object, world.parts({ encoder }));
    await expect(put).rejects.toMatchObject({ code: "FILE_UNREADABLE", message: expect.stringContaining("changed") });
    expect(changed).toBe(true);
    expect(await world.names("chunks/")).toEqual(before);
  });
});

describe("reading through faults", () => {
  const body = randomBytes(20_000);
  beforeAll(async () => void (await world.put("robust", body)));

  test("as many regions down as the layout survives", async () => {
    for (const region of ["frankfurt", "sydney"]) world.faults.set(region, DOWN);
    expect((await world.get("robust")).equals(body)).toBe(true);
    expect(world.fired.get("frankfurt")).toBeGreaterThan(0);
  });

  test("one more region down is a typed error: no majority for a strong read, too few chunks for any other", async () => {
    for (const region of ["frankfurt", "dublin", "virginia"]) world.faults.set(region, DOWN);
    await expect(world.get("robust")).rejects.toMatchObject({
      code: "NO_QUORUM",
      details: expect.objectContaining({ needed: 4, answered: 3 }),
    });
    await expect(world.get("robust", undefined, "eventual")).rejects.toMatchObject({
      code: "NOT_ENOUGH_CHUNKS",
      details: expect.objectContaining({ needed: 4, available: 3 }),
    });
  });

  test("a corrupt chunk is replaced", async () => {
    const put = await world.put("corrupt", body);
    const [region, name] = chunkPlace(put, 1);
    await world.tamper(region, name, flipByte(300));
    expect((await world.get("corrupt")).equals(body)).toBe(true);
  });

  test.each([0, 10, 249, 251, 100_000])("a bucket that answers 200 or 206 with %i bytes is replaced", async (bytes) => {
    const wasAsked = Promise.withResolvers<void>();
    world.faults.set("dublin", (...args) => {
      if (args[2].startsWith("chunks/")) wasAsked.resolve();
      return wrongLength(bytes)(...args);
    });
    // One region is down and another one waits: three are left, so this one is asked.
    world.faults.set("sydney", DOWN);
    world.faults.set("tokyo", async (_request, _response, name) => {
      if (name.startsWith("chunks/")) await wasAsked.promise;
      return false;
    });
    expect((await world.get("robust")).equals(body)).toBe(true);
    expect(world.fired.get("dublin")).toBeGreaterThan(0);
  });

  test("wrong credentials are CREDENTIALS_REFUSED, for put and get", async () => {
    const stores = storesOf(world.config, { ...CREDENTIALS, secretAccessKey: "wrong" });
    await expect(readManifest("robust", world.parts({ stores }))).rejects.toMatchObject({
      code: "CREDENTIALS_REFUSED",
    });
    await expect(world.put("x", body, { stores })).rejects.toMatchObject({ code: "CREDENTIALS_REFUSED" });
    for (const store of stores) store.close();
  });

  test("an unknown key is OBJECT_NOT_FOUND, also with a region down", async () => {
    await expect(world.get("unknown")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    world.faults.set("virginia", DOWN);
    await expect(world.get("unknown")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  });
});

describe("manifests that cannot be used", () => {
  const everywhere = async (key: string, change: (bytes: Buffer) => Uint8Array): Promise<void> => {
    for (const region of REGIONS) await world.tamper(region, manifestName(key), change);
  };

  test.each([
    ["truncated", "MANIFEST_INVALID", (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ["empty", "MANIFEST_INVALID", () => Buffer.alloc(0)],
    ["damaged", "MANIFEST_INVALID", flipByte(40)],
    ["huge", "MANIFEST_TOO_LARGE", () => Buffer.alloc(MANIFEST_BYTES_MAX + 1, " ")],
    ["of a newer version", "MANIFEST_NEWER", (bytes: Buffer) => edited(bytes, { agarose: 3 })],
    ["pointing outside", "REGION_UNKNOWN", (bytes: Buffer) => edited(bytes, { placement: Array(6).fill("evil") })],
    ["of k out of range", "CODE_INVALID", (bytes: Buffer) => edited(bytes, { k: 200 })],
    ["of another key", "MANIFEST_INVALID", (bytes: Buffer) => edited(bytes, { key: "other" })],
  ])("%s: %s", async (name, code, change) => {
    const key = `bad manifest/${name}`;
    await world.put(key, randomBytes(100));
    await everywhere(key, change);
    await expect(world.get(key)).rejects.toMatchObject({ code });
    expect(await world.verify(key)).toMatchObject({ sound: false, readable: false });
  });

  test("one sound copy is enough for a read that is not strong, which says so", async () => {
    const body = randomBytes(100);
    await world.put("one copy", body);
    for (const region of REGIONS.slice(1)) {
      await world.tamper(region, manifestName("one copy"), (bytes) => bytes.subarray(0, 50));
    }
    await expect(world.get("one copy")).rejects.toMatchObject({
      code: "READ_UNCERTAIN",
      message: expect.stringContaining("--consistency eventual"),
      details: expect.objectContaining({ holders: 1, needed: 4, answered: 6 }),
    });
    expect((await world.get("one copy", undefined, "eventual")).equals(body)).toBe(true);
  });

  test("they can be put over", async () => {
    const body = randomBytes(100);
    await world.put("mended", body);
    await everywhere("mended", (bytes) => bytes.subarray(0, 50));
    expect(await world.put("mended", body)).toMatchObject({ outcome: "stored" });
    expect((await world.get("mended")).equals(body)).toBe(true);
  });
});

describe("refused before anything is stored", () => {
  test.each(["", "..", ".", "nul\0", "\ud800", "x".repeat(961)])("the key %j", async (key) => {
    const before = await world.names();
    await expect(world.put(key, randomBytes(10))).rejects.toMatchObject({ code: expect.stringMatching(/^KEY_/) });
    expect(await world.names()).toEqual(before);
  });

  test("a layout that does not survive what is promised", async () => {
    const config = { ...world.config, survive: { regions: 3, providers: 2 } };
    await expect(world.put("unsafe", randomBytes(10), { config })).rejects.toMatchObject({
      code: "LAYOUT_UNSAFE",
      details: { domain: "regions", survives: 2, promised: 3 },
    });
  });

  test("an object whose pages of hashes would be too long", async () => {
    const config = { ...world.config, stripeBytes: 1 };
    await expect(world.put("fine-grained", Buffer.alloc(2_200_000), { config })).rejects.toMatchObject({
      code: "CODE_INVALID",
      details: { pageBytes: 16_384 * 6 * 32, max: 2 * 1024 * 1024 },
    });
  });

  test.each([
    ["chunks would be longer", { k: 1, m: 2 }, 16 * MIB, 6 * TIB, { chunkBytes: 6 * TIB, max: 5 * TIB }],
    ["pages of hashes would be longer", { k: 4, m: 2 }, 4 * MIB, 12 * TIB, { pageBytes: 3 * MIB, max: 2 * MIB }],
  ])(
    "an object whose %s than allowed, before a byte of it is read",
    async (_what, code, stripeBytes, bytes, details) => {
      const reader = {
        state: async () => ({ bytes, modifiedMs: 0, mark: "" }),
        read: async () => expect.unreachable("it was read"),
        close: async () => {},
      };
      const object = {
        key: "long",
        source: { open: async () => reader },
        contentType: "x/y",
        headers: {},
        force: false,
      };
      for (const compress of ["none", "all"] as const) {
        const parts = world.parts({ config: { ...world.config, code, stripeBytes, compress } });
        await expect(putObject(object, parts)).rejects.toMatchObject({ code: "CODE_INVALID", details });
      }
    },
  );

  test("a folder and a file that is not there", async () => {
    const put = (path: string) =>
      putObject({ key: "k", source: fileSource(path), contentType: "x/y", headers: {}, force: false }, world.parts());
    await expect(put(world.dir)).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
    await expect(put(join(world.dir, "nothing"))).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
  });
});

function abortAtFirstChunk(abort: AbortController): Fault {
  return (request, _response, name) => {
    if (request.method === "PUT" && name.startsWith("chunks/")) abort.abort(new DOMException("test", "AbortError"));
    return false;
  };
}

function refusePuts(prefix: string): Fault {
  return (request, response, name) => {
    if (request.method !== "PUT" || !name.startsWith(prefix)) return false;
    response.writeHead(400).end();
    request.resume();
    return true;
  };
}

function countRequests(method: string, region?: string, prefix = ""): () => number {
  let count = 0;
  for (const name of region ? [region] : REGIONS) {
    world.faults.set(name, (request, _response, object) => {
      if (request.method === method && object.startsWith(prefix)) count++;
      return false;
    });
  }
  return () => count;
}

function flipByte(at: number) {
  return (bytes: Buffer): Buffer => {
    bytes[at]! ^= 1;
    return bytes;
  };
}

/** The manifest with other fields, and with the checksum that makes it look whole. */
function edited(bytes: Buffer, change: Record<string, unknown>): Uint8Array {
  const { crc32: _, ...manifest } = JSON.parse(bytes.toString()) as Record<string, unknown>;
  return encodeManifest({ ...manifest, ...change } as never);
}
