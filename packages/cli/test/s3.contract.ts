/** The requirements of Agarose for an S3 server, as one suite that runs against every server we use. */
import { createHash, hash, randomBytes } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { Crc32, Crc32c, Crc64Nvme } from "@aws-sdk/checksums/crc";
import * as s3 from "@aws-sdk/client-s3";
import { manifestName } from "@agarose/core/format";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { S3Endpoint, S3EndpointOptions } from "@agarose/dev-world/s3-endpoint";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import { s3ClientOf } from "./gateway.ts";
import { presign, type PresignOptions } from "./presign.ts";

const CREDENTIALS = { accessKeyId: "AKIAAGAROSETEST", secretAccessKey: "a/secret+with=signs" };
/** The checksums that every server of ours takes, by algorithms that are not theirs. */
const CHECKSUMS: Record<"CRC32" | "CRC32C" | "CRC64NVME" | "SHA1" | "SHA256", (body: Uint8Array) => Promise<string>> = {
  CRC32: async (body) => checksumOf(new Crc32(), body),
  CRC32C: async (body) => checksumOf(new Crc32c(), body),
  CRC64NVME: async (body) => checksumOf(new Crc64Nvme(), body),
  SHA1: async (body) => createHash("sha1").update(body).digest("base64"),
  SHA256: async (body) => createHash("sha256").update(body).digest("base64"),
};

interface SdkChecksum {
  update(body: Uint8Array): void;
  digest(): Promise<Uint8Array>;
}

async function checksumOf(running: SdkChecksum, body: Uint8Array): Promise<string> {
  running.update(body);
  return Buffer.from(await running.digest()).toString("base64");
}

const EMPTY_BUCKET = "contract-empty";
const ORIGIN = "https://app.example";

/** Documented gaps of a server. Everything else of the suite holds for it. */
export interface S3Exceptions {
  /** The one bucket that it has. Default: any number, made on demand. */
  readonly onlyBucket?: string;
  /** It refuses every unsigned request, so that no browser reads from it. */
  readonly signedOnly?: boolean;
  /** It answers a range, whatever If-Range says. */
  readonly ignoresIfRange?: boolean;
  /** It answers a read of a part as S3 does not. */
  readonly hasNoParts?: boolean;
  /** It keeps headers that a copy replaces, and refuses others than S3 does. */
  readonly copiesOtherwise?: boolean;
}

export function s3Contract(
  startServer: (
    options: Pick<S3EndpointOptions, "accessKeyId" | "secretAccessKey" | "buckets">,
  ) => Promise<Pick<S3Endpoint, "url" | "close">>,
  {
    onlyBucket,
    signedOnly = false,
    ignoresIfRange = false,
    hasNoParts = false,
    copiesOtherwise = false,
  }: S3Exceptions = {},
): void {
  const BUCKET = onlyBucket ?? "contract-bucket";
  let server: Pick<S3Endpoint, "url" | "close">;
  let client: s3.S3Client;

  beforeAll(async () => {
    server = await startServer({ ...CREDENTIALS, buckets: [BUCKET, EMPTY_BUCKET] });
    client = clientWith(CREDENTIALS);
  }, 30_000);

  afterAll(async () => {
    client.destroy();
    await server.close();
  });

  const clientWith = (credentials: typeof CREDENTIALS): s3.S3Client => s3ClientOf(server, credentials);
  const urlOf = (method: string, key: string, more: Partial<PresignOptions> = {}) =>
    presign({ endpoint: server.url, bucket: BUCKET, key, method, credentials: CREDENTIALS, ...more });
  const put = (key: string, body: Uint8Array | string, more: Partial<s3.PutObjectCommandInput> = {}) =>
    client.send(new s3.PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body, ...more }));
  const get = async (key: string, more: Partial<s3.GetObjectCommandInput> = {}) => {
    const output = await client.send(new s3.GetObjectCommand({ Bucket: BUCKET, Key: key, ...more }));
    return { output, bytes: Buffer.from(await output.Body!.transformToByteArray()) };
  };
  const list = async (more: Partial<s3.ListObjectsV2CommandInput> = {}) =>
    client.send(new s3.ListObjectsV2Command({ Bucket: BUCKET, ...more }));
  describe("put and get", () => {
    test.each([0, 1, 65_536, 65_537, 6 * 1024 * 1024])("%i bytes come back as they were", async (bytes) => {
      const body = randomBytes(bytes);
      await put(`size-${bytes}`, body);
      expect((await get(`size-${bytes}`)).bytes.equals(body)).toBe(true);
    });

    test("a stream that the SDK sends with its own trailing checksum comes back as it was", async () => {
      const body = randomBytes(300_000);
      const stream = Readable.from([body.subarray(0, 100_000), body.subarray(100_000)]);
      const input = { Bucket: BUCKET, Key: "sdk-stream", Body: stream, ContentLength: body.length };
      await client.send(new s3.PutObjectCommand(input));
      expect((await get("sdk-stream")).bytes.equals(body)).toBe(true);
    });

    test.each([0, 1, 65_535, 65_536, 65_537, 1_000_000])("our own streamed put of %i bytes is taken", async (bytes) => {
      const body = randomBytes(bytes);
      const stream = new PassThrough();
      const stored = ourStore().put("our-stream", stream, { bytes, contentType: "application/octet-stream" });
      for (let at = 0; at < bytes; at += 10_007) stream.write(body.subarray(at, at + 10_007));
      stream.end();
      await stored;
      expect((await get("our-stream")).bytes.equals(body)).toBe(true);
    });

    test("type and cache headers come back", async () => {
      const given = { ContentType: "image/webp", CacheControl: "max-age=60" };
      await put("headers", "x", { ...given, Metadata: { a: "b" } });
      const { output } = await get("headers");
      expect(output).toMatchObject({ ...given, Metadata: { a: "b" } });
    });

    test("a second put replaces the first", async () => {
      await put("twice", "first");
      await put("twice", "second, and longer");
      expect((await get("twice")).bytes.toString()).toBe("second, and longer");
    });

    test("a body that is not what its checksum says is refused, and the old object stays", async () => {
      await put("checked", "old");
      const refused = await failure(put("checked", "new", { ChecksumCRC32: "AAAAAA==" }));
      expect(refused.status).toBe(400);
      expect((await get("checked")).bytes.toString()).toBe("old");
    });

    test("a put that breaks off leaves the old object", async () => {
      await put("broken-off", "old");
      const stream = new PassThrough();
      const abort = new AbortController();
      const options = { bytes: 1_000_000, contentType: "text/plain", signal: abort.signal };
      const stored = ourStore().put("broken-off", stream, options);
      stream.write(randomBytes(200_000));
      await new Promise((resolve) => setTimeout(resolve, 100));
      abort.abort();
      stream.destroy();
      await expect(stored).rejects.toMatchObject({ code: "ABORTED" });
      expect((await get("broken-off")).bytes.toString()).toBe("old");
    });

    test("a missing object is NoSuchKey, a missing bucket NoSuchBucket", async () => {
      expect(await failure(get("missing"))).toEqual({ name: "NoSuchKey", status: 404 });
      const elsewhere = new s3.GetObjectCommand({ Bucket: "no-such-bucket-here", Key: "x" });
      expect(await failure(client.send(elsewhere))).toEqual({ name: "NoSuchBucket", status: 404 });
    });

    test("HEAD returns the length, and 404 for an absent object", async () => {
      await put("head", "12345");
      const head = await client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key: "head" }));
      expect(head.ContentLength).toBe(5);
      expect((await failure(client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key: "no" })))).status).toBe(404);
    });

    test("the ETag of a put is that of the object", async () => {
      const { ETag } = await put("etag", "etag");
      expect(ETag).toBe(`"${hash("md5", "etag")}"`);
      expect((await get("etag")).output.ETag).toBe(ETag);
    });
  });

  describe("keys", () => {
    test.each([
      "plain",
      "with space",
      "a/b/c",
      "percent%41%2F%",
      "plus+and&equals=and?question#hash",
      "quotes\"'`and<xml>",
      "!*();:@,$[]{}|^~\\",
      "umlaut-äöü",
      "combining-e\u0301",
      "猫/犬",
      "emoji-🐈‍⬛",
      "عربى-עברית",
      "control-\u0001\u001f",
      "zero-width-\u200b-bom-\ufeff",
    ])("%j can be stored, read and removed", async (key) => {
      await put(`keys/${key}`, key);
      expect((await get(`keys/${key}`)).bytes.toString()).toBe(key);
      await client.send(new s3.DeleteObjectCommand({ Bucket: BUCKET, Key: `keys/${key}` }));
      expect((await failure(get(`keys/${key}`))).name).toBe("NoSuchKey");
    });

    test("names as Agarose makes them are listed as they were given", async () => {
      const name = manifestName("ä+b & c/%41/猫'🐈\u0001(!*)~");
      await put(name, "{}");
      expect(((await list({ Prefix: name })).Contents ?? []).map(({ Key }) => Key)).toEqual([name]);
    });
  });

  describe("ranges", () => {
    const body = randomBytes(3_000_000);
    beforeAll(async () => void (await put("ranged", body)));

    test.each([
      ["bytes=0-0", 0, 1],
      ["bytes=10-19", 10, 20],
      ["bytes=1000000-2500000", 1_000_000, 2_500_001],
      ["bytes=2999990-", 2_999_990, 3_000_000],
      ["bytes=-7", 2_999_993, 3_000_000],
      ["bytes=2999990-9999999", 2_999_990, 3_000_000],
    ])("%s gives exactly those bytes", async (Range, first, end) => {
      const { output, bytes } = await get("ranged", { Range });
      expect(bytes.equals(body.subarray(first, end))).toBe(true);
      expect(output.ContentRange).toBe(`bytes ${first}-${end - 1}/3000000`);
      expect(output.$metadata.httpStatusCode).toBe(206);
    });

    test.skipIf(hasNoParts)("part 1 of what came whole is all of it, and it has no other", async () => {
      const { output, bytes } = await get("ranged", { PartNumber: 1 });
      const { ContentRange, PartsCount, $metadata } = output;
      expect({ ContentRange, PartsCount, status: $metadata.httpStatusCode, same: bytes.equals(body) }).toEqual({
        ContentRange: `bytes 0-${body.length - 1}/${body.length}`,
        PartsCount: undefined,
        status: 206,
        same: true,
      });
      const head = await client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key: "ranged", PartNumber: 1 }));
      expect([head.$metadata.httpStatusCode, head.ContentLength]).toEqual([206, body.length]);
      expect(await failure(get("ranged", { PartNumber: 2 }))).toEqual({ name: "InvalidPartNumber", status: 416 });
      const both = get("ranged", { PartNumber: 1, Range: "bytes=0-1" });
      expect(await failure(both)).toEqual({ name: "InvalidRequest", status: 400 });
      await put("ranged-empty", "");
      expect((await get("ranged-empty", { PartNumber: 1 })).bytes).toHaveLength(0);
      expect(await failure(get("ranged-none", { PartNumber: 1 }))).toEqual({ name: "NoSuchKey", status: 404 });
    });

    test("a range behind the end is 416", async () => {
      expect(await failure(get("ranged", { Range: "bytes=3000000-" }))).toEqual({ name: "InvalidRange", status: 416 });
    });
  });

  describe("conditions", () => {
    test("If-None-Match: * lets only the first put through", async () => {
      await put("first-only", "first", { IfNoneMatch: "*" });
      expect(await failure(put("first-only", "second", { IfNoneMatch: "*" }))).toEqual({
        name: "PreconditionFailed",
        status: 412,
      });
      expect((await get("first-only")).bytes.toString()).toBe("first");
    });

    test("of many conditional puts at once exactly one succeeds", async () => {
      const puts = Array.from({ length: 8 }, (_, i) => put("raced", `put ${i}`, { IfNoneMatch: "*" }));
      const results = await Promise.allSettled(puts);
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const winner = results.findIndex(({ status }) => status === "fulfilled");
      expect((await get("raced")).bytes.toString()).toBe(`put ${winner}`);
    });

    test("If-None-Match with the right ETag is 304, If-Match with a wrong one 412", async () => {
      const { ETag } = await put("conditional", "x");
      expect((await failure(get("conditional", { IfNoneMatch: ETag }))).status).toBe(304);
      expect((await failure(get("conditional", { IfMatch: '"other"' }))).status).toBe(412);
      expect((await get("conditional", { IfMatch: ETag })).bytes.toString()).toBe("x");
    });
  });

  describe("checksums", () => {
    const body = randomBytes(200_000);
    const complete = (Key: string, UploadId: string, part: s3.CompletedPart, more: object) =>
      client.send(
        new s3.CompleteMultipartUploadCommand({
          Bucket: BUCKET,
          Key,
          UploadId,
          MultipartUpload: { Parts: [part] },
          ...more,
        }),
      );

    test.each(Object.entries(CHECKSUMS))(
      "%s comes back as it was sent, in a header and behind the body",
      async (name, of) => {
        const ChecksumAlgorithm = name as s3.ChecksumAlgorithm;
        const stream = Readable.from([body.subarray(0, 70_000), body.subarray(70_000)]);
        for (const [key, Body] of Object.entries({ header: body, trailer: stream })) {
          const Key = `checksum/${name}-${key}`;
          await client.send(
            new s3.PutObjectCommand({ Bucket: BUCKET, Key, Body, ContentLength: body.length, ChecksumAlgorithm }),
          );
          const input = { Bucket: BUCKET, Key, ChecksumMode: "ENABLED" as const };
          const head = await client.send(new s3.HeadObjectCommand(input));
          expect(head).toMatchObject({ [`Checksum${name}`]: await of(body), ChecksumType: "FULL_OBJECT" });
          const plain = await client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key }));
          expect(plain).not.toHaveProperty(`Checksum${name}`, expect.anything());
        }
        const wrong = { [`Checksum${name}`]: await of(Buffer.from("other")) };
        expect((await failure(put(`checksum/${name}-header`, body, wrong))).status).toBe(400);
        expect((await get(`checksum/${name}-header`)).bytes.equals(body)).toBe(true);
      },
    );

    test.each([
      ["CRC32", "FULL_OBJECT"],
      ["CRC64NVME", "FULL_OBJECT"],
      ["SHA256", "COMPOSITE"],
    ] as const)("an upload in parts has a %s that is %s", async (name, ChecksumType) => {
      const Key = `checksum/parts-${name}`;
      const kind = { ChecksumAlgorithm: name, ChecksumType };
      const { UploadId = "" } = await client.send(
        new s3.CreateMultipartUploadCommand({ Bucket: BUCKET, Key, ...kind }),
      );
      const own = await CHECKSUMS[name](body);
      const { ETag } = await client.send(
        new s3.UploadPartCommand({ Bucket: BUCKET, Key, UploadId, PartNumber: 1, Body: body, ChecksumAlgorithm: name }),
      );
      const part = { PartNumber: 1, ETag, [`Checksum${name}`]: own };
      const ofParts = `${await CHECKSUMS[name](Buffer.from(own, "base64"))}-1`;
      const value = ChecksumType === "COMPOSITE" ? ofParts : own;
      const other = await CHECKSUMS[name](Buffer.from("other"));
      const wrong = { ChecksumType, [`Checksum${name}`]: ChecksumType === "COMPOSITE" ? `${other}-1` : other };
      expect((await failure(complete(Key, UploadId, part, wrong))).status).toBe(400);
      const answer = await complete(Key, UploadId, part, { ChecksumType, [`Checksum${name}`]: value });
      expect(answer).toMatchObject({ [`Checksum${name}`]: value });
      const head = await client.send(new s3.HeadObjectCommand({ Bucket: BUCKET, Key, ChecksumMode: "ENABLED" }));
      expect(head).toMatchObject({ [`Checksum${name}`]: value, ChecksumType });
    });

    test("an answer without the object has no checksum of it", async () => {
      await put("checksum/conditional", body, { ChecksumAlgorithm: "CRC32" });
      for (const [condition, status] of [
        [{ "if-match": '"other"' }, 412],
        [{ "if-none-match": "*" }, 304],
      ] as const) {
        const headers = { ...condition, "x-amz-checksum-mode": "ENABLED" };
        const url = await urlOf("GET", "checksum/conditional", { headers });
        const answer = await fetch(url, { headers });
        expect([answer.status, answer.headers.get("x-amz-checksum-crc32")]).toEqual([status, null]);
      }
    });

    test("a malformed Content-MD5 is InvalidDigest, and a wrong one BadDigest", async () => {
      for (const [md5, code] of [
        ["AWS HAHAHA", "InvalidDigest"],
        ["rL0Y20zC+Fzt72VPzMSk2A==", "BadDigest"],
      ] as const) {
        const answer = await fetch(await urlOf("PUT", "md5"), {
          method: "PUT",
          headers: { "content-md5": md5 },
          body: "bar",
        });
        expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(`<Code>${code}</Code>`)]);
      }
    });
  });

  describe.skipIf(ignoresIfRange)("a download that continues", () => {
    test.each(["an older tag", "a weak tag", "an older date"])(
      "with If-Range of %s gets the whole object",
      async (which) => {
        const old = await put("continued", "A".repeat(1000));
        const { ETag = "" } = await put("continued", "B".repeat(1000));
        const of: Record<string, string> = {
          "an older tag": old.ETag ?? "",
          "a weak tag": `W/${ETag}`,
          "an older date": "Thu, 01 Jan 2015 00:00:00 GMT",
        };
        const url = await urlOf("GET", "continued");
        const ask = async (ifRange: string) => {
          const answer = await fetch(url, { headers: { range: "bytes=500-", "if-range": ifRange } });
          return [answer.status, await answer.text()];
        };
        expect(await ask(of[which]!)).toEqual([200, "B".repeat(1000)]);
        expect(await ask(ETag)).toEqual([206, "B".repeat(500)]);
      },
    );
  });

  describe("lists", () => {
    const keys = ["list/a/1", "list/a/2", "list/a-0", "list/b", "list/c/d/e", "list/z"];
    beforeAll(async () => void (await Promise.all(keys.map((key) => put(key, key)))));

    test("keys come in order of their bytes, with lengths", async () => {
      const { Contents = [] } = await list({ Prefix: "list/" });
      expect(Contents.map(({ Key }) => Key)).toEqual(keys.toSorted());
      expect(Contents.map(({ Size }) => Size)).toEqual(keys.toSorted().map((key) => key.length));
    });

    test("pages together hold every key once", async () => {
      const seen: (string | undefined)[] = [];
      let pages = 0;
      for (let token: string | undefined; ; pages++) {
        const page = await list({ Prefix: "list/", MaxKeys: 2, ContinuationToken: token });
        seen.push(...(page.Contents ?? []).map(({ Key }) => Key));
        token = page.NextContinuationToken;
        if (!page.IsTruncated) break;
      }
      expect(seen).toEqual(keys.toSorted());
      expect(pages).toBe(2);
    });

    test("a delimiter folds what is below it, also over pages", async () => {
      const found: (string | undefined)[] = [];
      for (let token: string | undefined; ;) {
        const page = await list({ Prefix: "list/", Delimiter: "/", MaxKeys: 1, ContinuationToken: token });
        found.push(...(page.Contents ?? []).map(({ Key }) => Key));
        found.push(...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix));
        token = page.NextContinuationToken;
        if (!page.IsTruncated) break;
      }
      expect(found.toSorted()).toEqual(["list/a-0", "list/a/", "list/b", "list/c/", "list/z"]);
    });

    test("version 1 pages by its marker", async () => {
      const ask = (more: Partial<s3.ListObjectsCommandInput>) =>
        client.send(new s3.ListObjectsCommand({ Bucket: BUCKET, Prefix: "list/", ...more }));
      const first = await ask({ MaxKeys: 2 });
      expect([first.IsTruncated, first.Contents?.map(({ Key }) => Key)]).toEqual([true, keys.toSorted().slice(0, 2)]);
      const rest = await ask({ Marker: first.Contents!.at(-1)!.Key });
      expect(rest.Contents?.map(({ Key }) => Key)).toEqual(keys.toSorted().slice(2));
      const folded = await ask({ Delimiter: "/", MaxKeys: 2 });
      expect([folded.NextMarker, folded.CommonPrefixes]).toEqual(["list/a/", [{ Prefix: "list/a/" }]]);
      const after = await ask({ Delimiter: "/", Marker: folded.NextMarker });
      expect(after.Contents?.map(({ Key }) => Key)).toEqual(["list/b", "list/z"]);
      expect(after.CommonPrefixes).toEqual([{ Prefix: "list/c/" }]);
    });

    test("a page of no keys is complete", async () => {
      const page = await list({ Prefix: "list/", MaxKeys: 0 });
      expect([page.IsTruncated, page.NextContinuationToken, page.KeyCount]).toEqual([false, undefined, 0]);
    });

    test("start-after skips what comes before", async () => {
      const { Contents = [] } = await list({ Prefix: "list/", StartAfter: "list/b" });
      expect(Contents.map(({ Key }) => Key)).toEqual(["list/c/d/e", "list/z"]);
    });

    test.skipIf(onlyBucket)("an empty bucket has no keys", async () => {
      const page = await client.send(new s3.ListObjectsV2Command({ Bucket: EMPTY_BUCKET }));
      expect(page).toMatchObject({ KeyCount: 0, IsTruncated: false });
    });
  });

  describe("copies", () => {
    const copy = (from: string, to: string, more: Partial<s3.CopyObjectCommandInput> = {}) =>
      client.send(new s3.CopyObjectCommand({ Bucket: BUCKET, Key: to, CopySource: sourceOf(from), ...more }));
    const sourceOf = (key: string): string => [BUCKET, ...key.split("/")].map(encodeURIComponent).join("/");
    const described = { ContentType: "text/csv", CacheControl: "max-age=5", Metadata: { a: "b" } };

    test.each([0, 10, 300_000])("%i bytes are copied, with type, headers, metadata and ETag", async (bytes) => {
      const body = randomBytes(bytes);
      const { ETag } = await put("copy/a?b+c", body, described);
      const { CopyObjectResult } = await copy("copy/a?b+c", "copy/ü");
      const { output, bytes: copied } = await get("copy/ü");
      expect(copied.equals(body)).toBe(true);
      expect(output).toMatchObject({ ...described, ETag });
      expect(CopyObjectResult!.ETag).toBe(ETag);
      expect(Math.floor(CopyObjectResult!.LastModified!.getTime() / 1000)).toBe(output.LastModified!.getTime() / 1000);
    });

    test.skipIf(copiesOtherwise)(
      "REPLACE gives the copy other headers, also of the object itself, and without it that is refused",
      async () => {
        await put("copy/self", "x", described);
        const itself = await failure(copy("copy/self", "copy/self"));
        expect(itself).toMatchObject({ status: 400, name: "InvalidRequest" });
        await copy("copy/self", "copy/self", { MetadataDirective: "REPLACE", Metadata: { c: "d" } });
        const { output, bytes } = await get("copy/self");
        expect([bytes.toString(), output.Metadata, output.CacheControl]).toEqual(["x", { c: "d" }, undefined]);
      },
    );

    test("a copy of what is not there is 404", async () => {
      expect(await failure(copy("copy/none", "copy/b"))).toMatchObject({ status: 404, name: "NoSuchKey" });
      const bucket = { CopySource: "absent-bucket/a" };
      expect(await failure(copy("", "copy/b", bucket))).toMatchObject({ status: 404, name: "NoSuchBucket" });
    });

    const conditions = ["IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince"] as const;
    test.skipIf(copiesOtherwise).each(conditions)(
      "one on the source that holds lets a copy through, and one that fails is 412: %s",
      async (condition) => {
        const { ETag } = await put("copy/conditional", "x");
        const [past, future] = [-60_000, 60_000].map((ms) => new Date(Date.now() + ms));
        const of = {
          IfMatch: [ETag, '"other"'],
          IfNoneMatch: ['"other"', ETag],
          IfModifiedSince: [past, undefined],
          IfUnmodifiedSince: [future, past],
        } as const;
        const [holds, fails] = of[condition];
        await copy("copy/conditional", "copy/let", { [`CopySource${condition}`]: holds });
        // A time that is still to come is no condition.
        if (fails === undefined) return;
        const failed = await failure(copy("copy/conditional", "copy/held", { [`CopySource${condition}`]: fails }));
        expect(failed).toMatchObject({ status: 412, name: "PreconditionFailed" });
        expect((await failure(get("copy/held"))).status).toBe(404);
      },
    );

    test.skipIf(copiesOtherwise)(
      "parts are copied from ranges of an object, and beyond it they are refused",
      async () => {
        const body = randomBytes(6 * 1024 * 1024);
        await put("copy/long", body);
        const created = await client.send(new s3.CreateMultipartUploadCommand({ Bucket: BUCKET, Key: "copy/joined" }));
        const upload = { Bucket: BUCKET, Key: "copy/joined", UploadId: created.UploadId };
        const part = async (PartNumber: number, CopySourceRange?: string) => {
          const input = { ...upload, PartNumber, CopySource: `${BUCKET}/copy/long`, CopySourceRange };
          const { CopyPartResult } = await client.send(new s3.UploadPartCopyCommand(input));
          return { PartNumber, ETag: CopyPartResult!.ETag };
        };
        expect((await failure(part(1, "bytes=0-6291456"))).name).toBe("InvalidRange");
        const Parts = [await part(1), await part(2, "bytes=10-19")];
        expect(Parts[1]!.ETag).toBe(`"${hash("md5", body.subarray(10, 20))}"`);
        await client.send(new s3.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
        expect((await get("copy/joined")).bytes.equals(Buffer.concat([body, body.subarray(10, 20)]))).toBe(true);
      },
    );
  });

  test("DeleteObjects removes what is there and does not mind what is not", async () => {
    await put("delete/1", "x");
    await put("delete/2", "x");
    const Objects = ["delete/1", "delete/2", "delete/none"].map((Key) => ({ Key }));
    const answer = await client.send(new s3.DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects } }));
    expect(answer.Errors ?? []).toEqual([]);
    expect((await list({ Prefix: "delete/" })).KeyCount).toBe(0);
  });

  test.skipIf(onlyBucket)("buckets can be made, found and removed", async () => {
    const Bucket = "contract-made";
    expect((await failure(client.send(new s3.HeadBucketCommand({ Bucket })))).status).toBe(404);
    await client.send(new s3.CreateBucketCommand({ Bucket }));
    await client.send(new s3.HeadBucketCommand({ Bucket }));
    await client.send(new s3.DeleteBucketCommand({ Bucket }));
    expect((await failure(client.send(new s3.HeadBucketCommand({ Bucket })))).status).toBe(404);
  });

  describe("multipart uploads", () => {
    const begin = async (Key: string): Promise<string> =>
      (await client.send(new s3.CreateMultipartUploadCommand({ Bucket: BUCKET, Key }))).UploadId!;
    const part = async (Key: string, UploadId: string, PartNumber: number, Body: Uint8Array) => {
      const input = { Bucket: BUCKET, Key, UploadId, PartNumber, Body };
      return { PartNumber, ETag: (await client.send(new s3.UploadPartCommand(input))).ETag };
    };
    const complete = (Key: string, UploadId: string, Parts: s3.CompletedPart[]) =>
      client.send(new s3.CompleteMultipartUploadCommand({ Bucket: BUCKET, Key, UploadId, MultipartUpload: { Parts } }));

    test("parts are joined in order, and nothing is there before", async () => {
      const [first, second] = [randomBytes(5 * 1024 * 1024), randomBytes(1000)];
      const id = await begin("multi");
      const parts = [await part("multi", id, 2, second), await part("multi", id, 1, first)];
      expect((await failure(get("multi"))).name).toBe("NoSuchKey");
      await complete("multi", id, parts.toReversed());
      const { output, bytes } = await get("multi");
      expect(bytes.equals(Buffer.concat([first, second]))).toBe(true);
      expect(output.ETag).toMatch(/-2"$/);
    });

    test.skipIf(hasNoParts)("a part can be read alone, with its checksum, and attributes list them all", async () => {
      const whole = randomBytes(6 * 1024 * 1024);
      const object = { Bucket: BUCKET, Key: "parted" };
      const begun = await client.send(new s3.CreateMultipartUploadCommand({ ...object, ChecksumAlgorithm: "SHA256" }));
      const upload = { ...object, UploadId: begun.UploadId };
      const bodies = [whole.subarray(0, 5 * 1024 * 1024), whole.subarray(5 * 1024 * 1024)];
      const Parts: s3.CompletedPart[] = [];
      for (const [at, Body] of bodies.entries()) {
        const input = { ...upload, PartNumber: at + 1, Body, ChecksumAlgorithm: "SHA256" as const };
        const { ETag, ChecksumSHA256 } = await client.send(new s3.UploadPartCommand(input));
        Parts.push({ PartNumber: at + 1, ETag, ChecksumSHA256 });
      }
      const done = await client.send(new s3.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
      for (const [at, body] of bodies.entries()) {
        const { output, bytes } = await get("parted", { PartNumber: at + 1 });
        expect(bytes.equals(body)).toBe(true);
        const { ChecksumSHA256 } = Parts[at]!;
        expect(output).toMatchObject({ PartsCount: 2, ChecksumSHA256, ChecksumType: "COMPOSITE", ETag: done.ETag });
      }
      const ObjectAttributes = ["ETag", "Checksum", "ObjectParts", "ObjectSize", "StorageClass"] as const;
      const attributes = { ...object, ObjectAttributes: [...ObjectAttributes], MaxParts: 1 };
      const first = await client.send(new s3.GetObjectAttributesCommand(attributes));
      expect(first).toMatchObject({
        ETag: done.ETag?.replaceAll('"', ""),
        ObjectSize: whole.length,
        StorageClass: "STANDARD",
        Checksum: { ChecksumSHA256: done.ChecksumSHA256, ChecksumType: "COMPOSITE" },
        ObjectParts: { TotalPartsCount: 2, IsTruncated: true, NextPartNumberMarker: "1", Parts: [{ PartNumber: 1 }] },
      });
      const second = await client.send(new s3.GetObjectAttributesCommand({ ...attributes, PartNumberMarker: "1" }));
      const { ChecksumSHA256 } = Parts[1]!;
      expect(second.ObjectParts).toMatchObject({
        IsTruncated: false,
        Parts: [{ PartNumber: 2, Size: bodies[1]!.length, ChecksumSHA256 }],
      });
      expect(await failure(get("parted", { PartNumber: 3 }))).toEqual({ name: "InvalidPartNumber", status: 416 });
    });

    test("a part that is too small, or none, is refused", async () => {
      const id = await begin("multi-small");
      const parts = [
        await part("multi-small", id, 1, randomBytes(10)),
        await part("multi-small", id, 2, randomBytes(10)),
      ];
      expect((await failure(complete("multi-small", id, parts))).name).toBe("EntityTooSmall");
      expect((await failure(complete("multi-small", id, [{ PartNumber: 3, ETag: '"x"' }]))).name).toBe("InvalidPart");
    });

    test("a second completion of the same parts answers the same", async () => {
      const id = await begin("multi-twice");
      const parts = [await part("multi-twice", id, 1, randomBytes(10))];
      const { ETag } = await complete("multi-twice", id, parts);
      expect((await complete("multi-twice", id, parts)).ETag).toBe(ETag);
    });

    test("an aborted upload is gone", async () => {
      const UploadId = await begin("multi-aborted");
      await part("multi-aborted", UploadId, 1, randomBytes(10));
      await client.send(new s3.AbortMultipartUploadCommand({ Bucket: BUCKET, Key: "multi-aborted", UploadId }));
      expect((await failure(part("multi-aborted", UploadId, 2, randomBytes(10)))).name).toBe("NoSuchUpload");
      expect((await failure(get("multi-aborted"))).name).toBe("NoSuchKey");
    });
  });

  describe("who may do what", () => {
    test("a wrong secret is SignatureDoesNotMatch", async () => {
      const other = clientWith({ ...CREDENTIALS, secretAccessKey: "wrong" });
      const refused = await failure(other.send(new s3.ListObjectsV2Command({ Bucket: BUCKET })));
      expect(refused).toEqual({ name: "SignatureDoesNotMatch", status: 403 });
      other.destroy();
    });

    test.each([{ secretAccessKey: "wrong" }, { accessKeyId: "AKIAUNKNOWN" }])(
      "our store distinguishes %j from an absent object",
      async (wrong) => {
        const store = ourStore({ ...CREDENTIALS, ...wrong });
        await expect(store.get("not-there")).rejects.toMatchObject({ code: "CREDENTIALS_REFUSED" });
        const stored = store.put("x", new Uint8Array(1), { bytes: 1, contentType: "text/plain" });
        await expect(stored).rejects.toMatchObject({ code: "CREDENTIALS_REFUSED" });
        expect((await ourStore().get("not-there")).status).toBe(404);
      },
    );

    test.runIf(signedOnly)("unsigned requests may do nothing", async () => {
      await put("signed", "signed");
      const url = `${server.url}/${BUCKET}/signed`;
      const statuses = [undefined, "PUT", "DELETE"].map(
        async (method) => (await fetch(url, method ? { method } : {})).status,
      );
      expect(await Promise.all(statuses)).toEqual([403, 403, 403]);
      expect((await fetch(`${server.url}/${BUCKET}?list-type=2`)).status).toBe(403);
      expect((await get("signed")).bytes.toString()).toBe("signed");
    });

    test.skipIf(signedOnly)("unsigned requests may read an object, and neither list, write nor delete", async () => {
      await put("public", "public");
      const url = `${server.url}/${BUCKET}/public`;
      expect(await (await fetch(url)).text()).toBe("public");
      expect((await fetch(`${server.url}/${BUCKET}?list-type=2`)).status).toBe(403);
      expect((await fetch(url, { method: "PUT", body: "mine" })).status).toBe(403);
      expect((await fetch(url, { method: "DELETE" })).status).toBe(403);
      expect(await (await fetch(url)).text()).toBe("public");
    });
  });

  describe("presigned URLs", () => {
    test("one for PUT stores, one for GET reads, also a range", async () => {
      const key = "presigned/ä & b+c.txt";
      const stored = await fetch(await urlOf("PUT", key), { method: "PUT", body: "presigned body" });
      expect(stored.status).toBe(200);
      const url = await urlOf("GET", key);
      expect(await (await fetch(url)).text()).toBe("presigned body");
      const part = await fetch(url, { headers: { range: "bytes=3-5" } });
      expect([part.status, await part.text()]).toEqual([206, "sig"]);
    });

    test("one for another method, key or time is refused", async () => {
      const url = await urlOf("GET", "presigned/other");
      expect((await fetch(url, { method: "PUT", body: "x" })).status).toBe(403);
      expect((await fetch(url.replace("presigned/other", "presigned/another"))).status).toBe(403);
      const expired = await urlOf("GET", "presigned/other", {
        expiresIn: 1,
        signingDate: new Date(Date.now() - 60_000),
      });
      expect((await fetch(expired)).status).toBe(403);
    });
  });

  describe.skipIf(signedOnly)("CORS", () => {
    test("a preflight for a range is granted", async () => {
      const headers = {
        origin: ORIGIN,
        "access-control-request-method": "GET",
        "access-control-request-headers": "range",
      };
      const answer = await fetch(`${server.url}/${BUCKET}/any`, { method: "OPTIONS", headers });
      expect(answer.status).toBeLessThan(300);
      expect(["*", ORIGIN]).toContain(answer.headers.get("access-control-allow-origin"));
      expect(answer.headers.get("access-control-allow-methods")).toContain("GET");
      expect(answer.headers.get("access-control-allow-headers")?.toLowerCase()).toMatch(/range|\*/);
    });

    test("an answer may be read by other origins, with the headers of a range", async () => {
      await put("cors", "0123456789");
      const headers = { origin: ORIGIN, range: "bytes=2-4" };
      const answer = await fetch(`${server.url}/${BUCKET}/cors`, { headers });
      expect(await answer.text()).toBe("234");
      expect(["*", ORIGIN]).toContain(answer.headers.get("access-control-allow-origin"));
      const exposed = answer.headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
      for (const name of ["content-range", "etag"]) expect(exposed).toContain(name);
    });

    test("also a refusal may be read by other origins", async () => {
      const answer = await fetch(`${server.url}/${BUCKET}/not-there`, { headers: { origin: ORIGIN } });
      expect(answer.ok).toBe(false);
      expect(["*", ORIGIN]).toContain(answer.headers.get("access-control-allow-origin"));
    });
  });

  function ourStore(credentials = CREDENTIALS): S3Store {
    const region = { name: "x", provider: "x", endpoint: server.url, bucket: BUCKET, awsRegion: "us-east-1", url: "" };
    return new S3Store(region, { credentials, attempts: 1 });
  }
}

/** How a request failed, which it must. */
async function failure(action: Promise<unknown>): Promise<{ name: string; status: number | undefined }> {
  const error = await action.then(
    () => expect.unreachable("the request succeeded"),
    (cause: unknown) => cause as s3.S3ServiceException,
  );
  return { name: error.name, status: error.$metadata?.httpStatusCode };
}
