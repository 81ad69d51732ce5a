/** Reads of S3 clients through the gateway: the AWS SDK over TCP, and six buckets behind it. */
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { connect, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  CopyObjectCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  GetObjectTorrentCommand,
  HeadObjectCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
} from "@aws-sdk/client-s3";
import { MANIFEST_BYTES_MAX } from "@agarose/core/format";
import { GATEWAY_KEYS, gatewayOver, s3ClientOf, signed, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { DOWN, manifestName, REGIONS, type World } from "../../world.ts";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";

const body = randomBytes(20_000);
let started: GatewayWorld;
let world: World;
let gateway: GatewayWorld["gateway"];
let client: GatewayWorld["client"];

beforeAll(async () => {
  started = await startGatewayWorld({ spoolBytes: 16 * 1024 * 1024 });
  ({ world, gateway, client } = started);
  await world.put("folder/a b.bin", body, { contentType: "image/png", headers: { "cache-control": "max-age=60" } });
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => started.close());

async function get(Key: string, more: { Range?: string; IfNoneMatch?: string; IfMatch?: string } = {}) {
  const answer = await client.send(new GetObjectCommand({ Bucket, Key, ...more }));
  return { ...answer, bytes: Buffer.from(await answer.Body!.transformToByteArray()) };
}

async function put(Key: string, text: string | Uint8Array, more: Partial<PutObjectCommandInput> = {}) {
  return client.send(new PutObjectCommand({ Bucket, Key, Body: text, ...more }));
}

async function list(more: Record<string, unknown> = {}) {
  return client.send(new ListObjectsV2Command({ Bucket, ...more }));
}

describe("reads", () => {
  test("GET and HEAD have the object's bytes, type, headers and length", async () => {
    const answer = await get("folder/a b.bin");
    expect(answer.bytes.equals(body)).toBe(true);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: "folder/a b.bin" }));
    const expected = { ContentLength: 20_000, ContentType: "image/png", CacheControl: "max-age=60", ETag: answer.ETag };
    expect(answer).toMatchObject(expected);
    expect(head).toMatchObject(expected);
    expect(head.LastModified).toBeInstanceOf(Date);
  });

  test("the ETag of what another command has put does not look like an MD5, which some clients would check", async () => {
    expect((await get("folder/a b.bin")).ETag).toMatch(/^"[0-9a-f]{32}-1"$/);
  });

  test("the ETag of a put is the MD5 of its bytes, in answers, lists and conditions, and no further checksum", async () => {
    const ETag = `"${hash("md5", "tagged")}"`;
    expect(await put("etag/a", "tagged", { ChecksumAlgorithm: "CRC32" })).toMatchObject({ ETag });
    const { Contents = [] } = await list({ Prefix: "etag/" });
    expect(Contents).toMatchObject([{ ETag }]);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: "etag/a", ChecksumMode: "ENABLED" }));
    expect(head).toMatchObject({ ETag, ChecksumCRC32: expect.any(String), ChecksumType: "FULL_OBJECT" });
    expect(head).not.toHaveProperty("ChecksumMD5");
    await expect(put("etag/a", "other", { IfMatch: '"0"' })).rejects.toMatchObject({ name: "PreconditionFailed" });
    await put("etag/a", "other", { IfMatch: ETag });
    expect((await get("etag/a")).ETag).toBe(`"${hash("md5", "other")}"`);
  });

  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=999-3000", 999, 3001],
    ["bytes=19999-", 19_999, 20_000],
    ["bytes=-5", 19_995, 20_000],
    ["bytes=100-999999", 100, 20_000],
  ])("%s", async (Range, start, end) => {
    const answer = await get("folder/a b.bin", { Range });
    expect(answer).toMatchObject({
      ContentRange: `bytes ${start}-${end - 1}/20000`,
      $metadata: { httpStatusCode: 206 },
    });
    expect(answer.bytes.equals(body.subarray(start, end))).toBe(true);
  });

  test("a range behind the end is InvalidRange", async () => {
    await expect(get("folder/a b.bin", { Range: "bytes=20000-" })).rejects.toMatchObject({ name: "InvalidRange" });
  });

  test("an empty object", async () => {
    await world.put("empty", new Uint8Array(0));
    expect(await get("empty")).toMatchObject({ ContentLength: 0, bytes: Buffer.alloc(0) });
  });

  test("If-None-Match answers 304, If-Match of another version 412", async () => {
    const { ETag } = await get("folder/a b.bin");
    const same = get("folder/a b.bin", { IfNoneMatch: ETag! });
    await expect(same).rejects.toMatchObject({ $metadata: { httpStatusCode: 304 } });
    const other = get("folder/a b.bin", { IfMatch: '"other"' });
    await expect(other).rejects.toMatchObject({ name: "PreconditionFailed" });
  });

  test.each(["absent", "folder/", "a//b", "x".repeat(1000)])("%s is NoSuchKey", async (key) => {
    await expect(get(key)).rejects.toMatchObject({ name: "NoSuchKey" });
  });

  test("as many regions down as the layout survives", async () => {
    for (const region of ["frankfurt", "sydney"]) world.faults.set(region, DOWN);
    expect((await get("folder/a b.bin")).bytes.equals(body)).toBe(true);
    expect(world.fired.get("frankfurt")).toBeGreaterThan(0);
  });

  test("one more region down is a 503 that names our own error", async () => {
    for (const region of ["frankfurt", "dublin", "virginia"]) world.faults.set(region, DOWN);
    await expect(get("folder/a b.bin")).rejects.toMatchObject({
      name: "ServiceUnavailable",
      message: expect.stringMatching(/NO_QUORUM.*3 of 6.*--consistency eventual/u),
    });
  });

  test("a region's manifest that is too large is no fault of the client, which may try again", async () => {
    for (const region of REGIONS) {
      world.faults.set(region, (request, response, name) => {
        if (request.method !== "GET" || !name.startsWith("manifests/")) return false;
        const large = Buffer.alloc(MANIFEST_BYTES_MAX + 1, " ");
        response.writeHead(200, { "content-length": large.length }).end(large);
        return true;
      });
    }
    const failed = { $metadata: { httpStatusCode: 500 }, message: expect.stringContaining("MANIFEST_TOO_LARGE") };
    await expect(get("folder/a b.bin")).rejects.toMatchObject(failed);
    await expect(put("folder/a b.bin", "new")).rejects.toMatchObject(failed);
    expect(world.fired.size).toBeGreaterThan(3);
  });

  test("a client that leaves ends the read", async () => {
    await world.put("left", randomBytes(400_000));
    const leave = new AbortController();
    const gone = Promise.withResolvers<void>();
    for (const region of REGIONS) {
      world.faults.set(region, (request, response, name) => {
        if (!name.startsWith("chunks/left!")) return false;
        // Held until the gateway gives it up.
        response.once("close", () => gone.resolve());
        leave.abort();
        request.resume();
        return true;
      });
    }
    const reading = client.send(new GetObjectCommand({ Bucket, Key: "left" }), { abortSignal: leave.signal });
    await expect(reading).rejects.toMatchObject({ name: "AbortError" });
    await gone.promise;
  });
});

describe("writes", () => {
  test("what is put is what is got, with its type and headers", async () => {
    const bytes = randomBytes(30_001);
    const more = { ContentType: "text/plain", CacheControl: "no-store" };
    const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key: "put/a", Body: bytes, ...more }));
    expect(await get("put/a")).toMatchObject({ ETag, ...more, bytes });
    expect((await world.get("put/a")).equals(bytes)).toBe(true);
    expect(await world.verify("put/a")).toMatchObject({ sound: true });
  });

  test("an object has the headers of its key in the configuration, unless its client says others", async () => {
    const rule = { keys: "ruled/*.js", headers: { "cache-control": "immutable", "content-language": "en" } };
    const other = await gatewayOver({ ...world, config: { ...world.config, headers: [rule] } }, {});
    const writer = s3ClientOf(other);
    try {
      const send = (Key: string, more: Partial<PutObjectCommandInput> = {}) =>
        writer.send(new PutObjectCommand({ Bucket, Key, Body: Key, ...more }));
      await send("ruled/a.js");
      await send("ruled/b.js", { CacheControl: "no-cache" });
      await send("ruled/c.txt");
      expect(await get("ruled/a.js")).toMatchObject({ CacheControl: "immutable", ContentLanguage: "en" });
      expect(await get("ruled/b.js")).toMatchObject({ CacheControl: "no-cache", ContentLanguage: "en" });
      expect(await get("ruled/c.txt")).not.toHaveProperty("ContentLanguage");
      expect((await get("ruled/a.js")).ETag).toBe(`"${hash("md5", "ruled/a.js")}"`);
    } finally {
      writer.destroy();
      await other.close(0);
    }
  });

  test("a deleted object is gone, and deleting what is not there succeeds", async () => {
    await put("del/a", "x");
    for (const Key of ["del/a", "del/a", "del/never", "del//impossible"]) {
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
    }
    await expect(get("del/a")).rejects.toMatchObject({ name: "NoSuchKey" });
  });

  test("many are deleted at once", async () => {
    for (const name of ["1", "2 <&>", "3"]) await put(`many/${name}`, name);
    const Objects = ["many/1", "many/2 <&>", "many/none"].map((Key) => ({ Key }));
    const { Deleted, Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect({ Deleted, Errors }).toEqual({ Deleted: Objects, Errors: undefined });
    expect((await list({ Prefix: "many/" })).Contents!.map(({ Key }) => Key)).toEqual(["many/3"]);
  });

  test("If-None-Match: * stores what is not there, and again after a removal", async () => {
    await put("new/a", "1", { IfNoneMatch: "*" });
    await expect(put("new/a", "2", { IfNoneMatch: "*" })).rejects.toMatchObject({ name: "PreconditionFailed" });
    await client.send(new DeleteObjectCommand({ Bucket, Key: "new/a" }));
    await put("new/a", "3", { IfNoneMatch: "*" });
    expect((await get("new/a")).bytes.toString()).toBe("3");
  });

  test("If-Match stores over that version only", async () => {
    const { ETag } = await put("match/a", "1");
    await put("match/a", "2", { IfMatch: ETag! });
    await expect(put("match/a", "3", { IfMatch: ETag! })).rejects.toMatchObject({ name: "PreconditionFailed" });
    await expect(put("match/none", "3", { IfMatch: ETag! })).rejects.toMatchObject({ name: "NoSuchKey" });
    expect((await get("match/a")).bytes.toString()).toBe("2");
  });

  test("another writer that comes between a condition and the commit makes it fail", async () => {
    const { ETag } = await put("between/a", "1");
    let isFirst = true;
    for (const region of REGIONS) {
      world.faults.set(region, async (request, _response, name) => {
        if (request.method !== "PUT" || !name.startsWith("claims/") || !isFirst) return false;
        isFirst = false;
        await world.put("between/a", Buffer.from("other"));
        return false;
      });
    }
    await expect(put("between/a", "2", { IfMatch: ETag! })).rejects.toMatchObject({ name: "OperationAborted" });
    expect(isFirst).toBe(false);
    expect((await get("between/a")).bytes.toString()).toBe("other");
  });

  test("of eight writers with If-None-Match: * one wins", async () => {
    const writers = Array.from({ length: 8 }, (_, index) => put("race/a", `${index}`, { IfNoneMatch: "*" }));
    const outcomes = await Promise.allSettled(writers);
    const winners = outcomes.flatMap(({ status }, index) => (status === "fulfilled" ? [`${index}`] : []));
    expect(winners).toEqual([(await get("race/a")).bytes.toString()]);
  });

  test("two puts of one key at once both succeed, and one of them is read", async () => {
    await Promise.all(["1", "2"].map((text) => put("both/a", text)));
    expect(["1", "2"]).toContain((await get("both/a")).bytes.toString());
    expect(await world.verify("both/a")).toMatchObject({ sound: true });
  });

  test("a body that breaks off stores nothing", async () => {
    const key = "short/a";
    const { pathname, search, port } = new URL(await signed(gateway, { key, method: "PUT" }));
    const head = [
      `PUT ${pathname}${search} HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      "x-amz-content-sha256: UNSIGNED-PAYLOAD",
    ];
    const socket = connect(Number(port), "127.0.0.1");
    socket.end(`${[...head, "content-length: 100"].join("\r\n")}\r\n\r\nonly a part`);
    socket.resume();
    await once(socket, "close");
    await expect(get(key)).rejects.toMatchObject({ name: "NoSuchKey" });
    expect((await world.names("manifests/short")).length).toBe(0);
  });

  test("a body beyond the spool is refused, and leaves it empty", async () => {
    const tooLarge = put("spool/a", Buffer.alloc(17 * 1024 * 1024));
    await expect(tooLarge).rejects.toThrow();
    await put("spool/b", "x");
    await expect(get("spool/a")).rejects.toMatchObject({ name: "NoSuchKey" });
  });

  test("a spool that was cleaned away, as temporary folders are by age, is made again", async () => {
    const uploads = await mkdtemp(join(tmpdir(), "agarose-cleaned-"));
    const other = await gatewayOver(world, { uploads });
    const own = s3ClientOf(other);
    const spools = async (): Promise<string[]> =>
      (await readdir(uploads)).filter((name) => name.startsWith("agarose-gateway-"));
    try {
      const before = await spools();
      for (const name of before) await rm(join(uploads, name), { recursive: true });
      const puts = [1, 2, 3].map((n) => own.send(new PutObjectCommand({ Bucket, Key: `cleaned/${n}`, Body: `${n}` })));
      await Promise.all(puts);
      expect((await get("cleaned/3")).bytes.toString()).toBe("3");
      expect(before).toHaveLength(1);
      expect(await spools()).toHaveLength(1);
    } finally {
      own.destroy();
      await other.close(0);
      await rm(uploads, { recursive: true });
    }
  });

  test("a put survives a region that is down, and fails with 503 without a majority", async () => {
    world.faults.set("tokyo", DOWN);
    await put("down/a", "1");
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    for (const region of REGIONS.slice(0, 3)) world.faults.set(region, DOWN);
    await expect(put("down/b", "1")).rejects.toMatchObject({ name: "ServiceUnavailable" });
  });

  test("regions that refuse the gateway's keys are a 503, because the client's own are right", async () => {
    for (const region of REGIONS) {
      world.faults.set(region, (_request, response) => {
        response.writeHead(403).end();
        return true;
      });
    }
    const refused = { name: "ServiceUnavailable", message: expect.stringContaining("CREDENTIALS_REFUSED") };
    await expect(put("refused/a", "1")).rejects.toMatchObject(refused);
    await expect(get("folder/a b.bin")).rejects.toMatchObject(refused);
    expect(world.fired.size).toBeGreaterThan(0);
  });

  test.each([
    { ServerSideEncryption: "AES256" },
    { ACL: "public-read" },
    { StorageClass: "GLACIER" },
  ] satisfies Partial<PutObjectCommandInput>[])("%j is NotImplemented, and nothing is stored", async (asked) => {
    await expect(put("asked/a", "x", asked)).rejects.toMatchObject({ name: "NotImplemented" });
    await expect(get("asked/a")).rejects.toMatchObject({ name: "NoSuchKey" });
  });

  test("the ACL and the class that every object has may be named", async () => {
    await put("asked/b", "x", { ACL: "private", StorageClass: "STANDARD" });
    expect((await get("asked/b")).bytes.toString()).toBe("x");
  });
});

describe("lists", () => {
  beforeAll(async () => {
    for (const name of ["a", "a.txt", "a/b", "a/c/d", "a-b", "é", "z"])
      await world.put(`list/${name}`, randomBytes(10));
  });

  const names = ["a", "a-b", "a.txt", "a/b", "a/c/d", "z", "é"].map((name) => `list/${name}`);

  test("keys come in the order of their UTF-8 bytes, with length, time and ETag", async () => {
    const { Contents = [], KeyCount, IsTruncated } = await list({ Prefix: "list/" });
    expect(Contents.map(({ Key }) => Key)).toEqual(names);
    expect({ KeyCount, IsTruncated }).toEqual({ KeyCount: 7, IsTruncated: false });
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: "list/z" }));
    expect(Contents[5]).toMatchObject({ Size: 10, ETag: head.ETag });
    expect(Math.floor(Contents[5]!.LastModified!.getTime() / 1000) * 1000).toBe(head.LastModified!.getTime());
  });

  test("the first page reads one manifest of each key, and what a majority holds where a region sends another", async () => {
    for (const name of ["a", "b", "c"]) await put(`read/${name}`, "first");
    const old = await world.read("sydney", manifestName("read/a"));
    await put("read/a", "second, longer");
    let reads = 0;
    for (const region of REGIONS) {
      world.faults.set(region, (request, _response, name) => {
        if (request.method !== "GET" || name === "") return false;
        reads++;
        return false;
      });
    }
    expect((await list({ Prefix: "read/" })).Contents?.map(({ Size }) => Size)).toEqual([14, 5, 5]);
    expect(reads).toBe(3);
    for (const region of REGIONS.slice(0, 2)) {
      world.faults.set(region, (request, response, name) => {
        if (request.method !== "GET" || name !== manifestName("read/a")) return false;
        response.writeHead(200).end(old);
        return true;
      });
    }
    expect((await list({ Prefix: "read/" })).Contents?.map(({ Size }) => Size)).toEqual([14, 5, 5]);
    expect(world.fired.size).toBeGreaterThan(0);
  });

  test("an empty object that keeps a folder is listed beside what is below it, folded, and removed alone", async () => {
    for (const name of ["", "empty/", "full/", "full/a"]) await put(`kept/${name}`, "");
    const keysOf = async (more: Record<string, unknown>): Promise<unknown[]> => {
      const { Contents = [], CommonPrefixes = [] } = await list(more);
      return [...Contents.map(({ Key }) => Key), ...CommonPrefixes.map(({ Prefix }) => Prefix)];
    };
    expect(await keysOf({ Prefix: "kept/", Delimiter: "/" })).toEqual(["kept/", "kept/empty/", "kept/full/"]);
    expect(await keysOf({ Prefix: "kept/full/" })).toEqual(["kept/full/", "kept/full/a"]);
    expect((await get("kept/full/")).bytes).toHaveLength(0);
    await expect(get("kept/full")).rejects.toMatchObject({ name: "NoSuchKey" });
    await client.send(new DeleteObjectCommand({ Bucket, Key: "kept/full/" }));
    expect(await keysOf({ Prefix: "kept/full" })).toEqual(["kept/full/a"]);
  });

  test("a delimiter folds what is below it", async () => {
    const { Contents = [], CommonPrefixes = [] } = await list({ Prefix: "list/", Delimiter: "/" });
    expect(CommonPrefixes.map(({ Prefix }) => Prefix)).toEqual(["list/a/"]);
    expect(Contents.map(({ Key }) => Key)).toEqual(["a", "a-b", "a.txt", "z", "é"].map((name) => `list/${name}`));
  });

  test("a list that a client lets begin behind a key is new, whatever an earlier list had", async () => {
    const old = (await client.send(new ListObjectsCommand({ Bucket, Prefix: "since/" }))).Contents;
    expect(old).toBeUndefined();
    await put("since/b", "x");
    const since = { Bucket, Prefix: "since/" };
    const first = await client.send(new ListObjectsCommand({ ...since, Marker: "since/a" }));
    expect(first.Contents?.map(({ Key }) => Key)).toEqual(["since/b"]);
    await put("since/c", "x");
    const next = await client.send(new ListObjectsCommand({ ...since, Marker: "since/b" }));
    expect(next.Contents?.map(({ Key }) => Key)).toEqual(["since/c"]);
    const { Contents = [] } = await list({ Prefix: "since/", ContinuationToken: "" });
    expect(Contents.map(({ Key }) => Key)).toEqual(["since/b", "since/c"]);
  });

  test.each([1, 2, 3])("pages of %i continue where they end", async (MaxKeys) => {
    const found: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await list({ Prefix: "list/", MaxKeys, ContinuationToken });
      expect(page.Contents!.length).toBeLessThanOrEqual(MaxKeys);
      found.push(...page.Contents!.map(({ Key }) => Key!));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    expect(found).toEqual(names);
  });

  test("a list of too few regions is an error, never a short list", async () => {
    for (const region of REGIONS.slice(0, 4)) world.faults.set(region, DOWN);
    await expect(list({ Prefix: "list/" })).rejects.toMatchObject({ name: "ServiceUnavailable" });
    expect(world.fired.size).toBe(4);
  });
});

test("the bucket is not empty, whoever wants to delete it", async () => {
  const removed = client.send(new DeleteBucketCommand({ Bucket }));
  await expect(removed).rejects.toMatchObject({ name: "BucketNotEmpty", $metadata: { httpStatusCode: 409 } });
});

test("a client that has sent its body may wait as long as the regions take", async () => {
  const limited = new Map<Socket, number>();
  const setTimeout = vi.spyOn(Socket.prototype, "setTimeout").mockImplementation(function (this: Socket, ms) {
    if (this.localPort === Number(new URL(gateway.url).port)) limited.set(this, ms);
    return this;
  });
  let isHeld = true;
  let held = 0;
  for (const region of REGIONS) {
    world.faults.set(region, async ({ method }, _response, name) => {
      if (method !== "PUT" || !name.startsWith("manifests/slow")) return false;
      held++;
      await vi.waitFor(() => expect(isHeld).toBe(false), { timeout: 25_000 });
      return false;
    });
  }
  const answer = put("slow", body);
  try {
    await vi.waitFor(() => expect(held).toBeGreaterThan(0), 20_000);
    // The limit of a body that does not come was set, and is over.
    expect([...limited.values()]).toEqual([0]);
    expect(setTimeout.mock.calls.map(([ms]) => ms)).toContain(60_000);
  } finally {
    isHeld = false;
    setTimeout.mockRestore();
  }
  expect((await answer).$metadata.httpStatusCode).toBe(200);
});

describe("a list that takes long", () => {
  /** Begins a list, whose regions answer once the returned function is called. */
  async function begin(fails: boolean): Promise<{ answer: Response; release: () => void }> {
    let isHeld = true;
    let held = 0;
    for (const region of REGIONS) {
      world.faults.set(region, async (request, response, name) => {
        if (request.method !== "GET" || name !== "") return false;
        held++;
        await vi.waitFor(() => expect(isHeld).toBe(false), { timeout: 25_000 });
        return fails && DOWN(request, response, name);
      });
    }
    const query = { "list-type": "2", prefix: "list/" };
    const answer = await fetch(await signed(gateway, { query }));
    expect(held, "the fault fired").toBeGreaterThan(0);
    return { answer, release: () => void (isHeld = false) };
  }

  test("is answered by white space until it is there", async () => {
    const { answer, release } = await begin(false);
    release();
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.stringMatching(/^<\?xml [^>]*>\s*<ListBucketResult .*<KeyCount>\d+</),
    ]);
  });

  test("and fails is cut off, so that no client takes it for a short one", async () => {
    const { answer, release } = await begin(true);
    release();
    await expect(answer.text()).rejects.toThrow();
  });
});

test("100-continue comes once the head is good, and another expectation is ignored as S3 does", async () => {
  const send = async (expected: string, query = {}): Promise<string> => {
    const { pathname, search, port } = new URL(await signed(gateway, { key: "expect", method: "PUT", query }));
    const socket = connect(Number(port), "127.0.0.1");
    const head = [
      `PUT ${pathname}${search} HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      `expect: ${expected}`,
      "content-length: 1",
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${expected === "100-continue" ? "" : "x"}`);
    let received = "";
    for await (const part of socket) {
      received += String(part);
      if (received.includes("100 Continue") && !received.includes("200 OK")) socket.write("x");
      if (/HTTP\/1.1 [245]/.test(received)) break;
    }
    socket.destroy();
    return received;
  };
  expect(await send("100-continue")).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
  expect(await send("100-continue", { versionId: "1" }), "no body is asked for").toMatch(/^HTTP\/1.1 501 /);
  expect(await send("200")).toMatch(/^HTTP\/1.1 200 OK/);
});

describe("clients that put the bucket into the host name", () => {
  test("read, write, list and copy by it, beside those that put it into the path", async () => {
    const other = await gatewayOver(world, { domain: "s3.example" });
    const { port } = new URL(other.url);
    const httpAgent = new Agent({
      lookup: (_host, _options, found) => found(null, [{ address: "127.0.0.1", family: 4 }]),
    });
    const options = { region: "us-east-1", credentials: GATEWAY_KEYS, maxAttempts: 1 };
    const named = (host: string, forcePathStyle: boolean) =>
      new S3Client({ ...options, forcePathStyle, endpoint: `http://${host}:${port}`, requestHandler: { httpAgent } });
    const [byHost, byUpper, byPath] = [
      named("s3.example", false),
      named("S3.Example", false),
      named("s3.example", true),
    ];
    const Key = `${Bucket}/odd key/`;
    await byHost.send(new PutObjectCommand({ Bucket, Key, Body: "by host" }));
    await byHost.send(
      new CopyObjectCommand({ Bucket, Key: "by-host/copy", CopySource: encodeURI(`${Bucket}/${Key}`) }),
    );
    const { Contents = [] } = await byUpper.send(new ListObjectsV2Command({ Bucket, Prefix: Key }));
    expect(Contents.map((object) => object.Key)).toEqual([Key]);
    for (const read of [Key, "by-host/copy"]) {
      const { Body } = await byPath.send(new GetObjectCommand({ Bucket, Key: read }));
      expect(await Body!.transformToString()).toBe("by host");
    }
    const none = byHost.send(new GetObjectCommand({ Bucket: "other", Key }));
    await expect(none).rejects.toMatchObject({ name: "NoSuchBucket" });
    for (const own of [byHost, byUpper, byPath]) own.destroy();
    await other.close(0);
  });
});

describe("access", () => {
  test("a wrong secret, an unknown key and no signature are refused", async () => {
    const wrong = s3ClientOf(gateway, { ...GATEWAY_KEYS, secretAccessKey: "wrong" });
    const asked = wrong.send(new GetObjectCommand({ Bucket, Key: "folder/a b.bin" }));
    await expect(asked).rejects.toMatchObject({ name: "SignatureDoesNotMatch" });
    wrong.destroy();
    const unknown = s3ClientOf(gateway, { ...GATEWAY_KEYS, accessKeyId: "unknown" });
    const asking = unknown.send(new GetObjectCommand({ Bucket, Key: "folder/a b.bin" }));
    await expect(asking).rejects.toMatchObject({ name: "InvalidAccessKeyId" });
    unknown.destroy();
    expect((await fetch(`${gateway.url}/${Bucket}/folder/a%20b.bin`)).status).toBe(403);
  });

  test("another bucket is NoSuchBucket, and what is not there NotImplemented", async () => {
    const other = client.send(new GetObjectCommand({ Bucket: "other", Key: "a" }));
    await expect(other).rejects.toMatchObject({ name: "NoSuchBucket" });
    const torrent = client.send(new GetObjectTorrentCommand({ Bucket, Key: "a" }));
    await expect(torrent).rejects.toMatchObject({ name: "NotImplemented", $metadata: { httpStatusCode: 501 } });
  });

  test("a page of any origin stores and reads by presigned URLs, and sees all headers, also those of a refusal", async () => {
    const origin = "https://app.example";
    const key = "from/page";
    const url = await signed(gateway, { key, method: "PUT" });
    const asked = { "access-control-request-method": "PUT", "access-control-request-headers": "content-type" };
    const preflight = await fetch(url, { method: "OPTIONS", headers: { origin, ...asked } });
    const allowed = ["origin", "methods", "headers"].map((name) =>
      preflight.headers.get(`access-control-allow-${name}`),
    );
    expect([preflight.status, ...allowed]).toEqual([200, "*", expect.stringContaining("PUT"), "content-type"]);
    const stored = await fetch(url, { method: "PUT", headers: { origin, "content-type": "text/plain" }, body: "x" });
    const read = await fetch(await signed(gateway, { key }), { headers: { origin } });
    const image = await fetch(await signed(gateway, { key }));
    expect(image.headers.get("vary"), "a browser's cache must not give it to a script").toBe("Origin");
    const refused = await fetch(`${gateway.url}/${Bucket}/${key}`, { headers: { origin } });
    expect([stored.status, await read.text(), refused.status]).toEqual([200, "x", 403]);
    for (const { headers } of [stored, read, refused]) {
      expect([headers.get("access-control-allow-origin"), headers.get("access-control-expose-headers")]).toEqual([
        "*",
        "*",
      ]);
    }
  });

  test("a presigned URL reads, until it expires, and that at once if it is good for no second", async () => {
    const key = "folder/a b.bin";
    const answer = await fetch(await signed(gateway, { key }));
    expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true);
    const expired = await fetch(await signed(gateway, { key, expiresIn: 0 }));
    expect([expired.status, await expired.text()]).toEqual([403, expect.stringContaining("Request has expired")]);
  });
});
