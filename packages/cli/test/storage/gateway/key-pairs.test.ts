/** The rights of several pairs of keys at a gateway. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as s3 from "@aws-sdk/client-s3";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";
import type { Gateway } from "@agarose/storage/gateway/gateway";
import { GATEWAY_KEYS, gatewayOver, s3ClientOf, signed } from "../../gateway.ts";
import { startTestWorld, type World } from "../../world.ts";

/** `reader` and `limited` have one secret, which a client must not take for one pair. */
const READER = { accessKeyId: "reader", secretAccessKey: "reader-secret", readOnly: true };
const LIMITED = { accessKeyId: "limited", secretAccessKey: "reader-secret", prefix: "a/" };
const BOTH = { accessKeyId: "both", secretAccessKey: "both-secret", prefix: "a/", readOnly: true };
const OWN = { Bucket, Key: "a/own" };
const OTHER = { Bucket, Key: "ab/other" };
const body = randomBytes(10_000);
const denied = { name: "AccessDenied", $metadata: { httpStatusCode: 403 } };

let world: World;
let gateway: Gateway;
let [all, reader, limited, both]: s3.S3Client[] = [];
beforeAll(async () => {
  world = await startTestWorld();
  gateway = await gatewayOver(world, { pairs: [GATEWAY_KEYS, READER, LIMITED, BOTH] });
  [all, reader, limited, both] = [GATEWAY_KEYS, READER, LIMITED, BOTH].map((keys) => s3ClientOf(gateway, keys));
});
beforeEach(async () => {
  for (const object of [OWN, OTHER]) await all!.send(new s3.PutObjectCommand({ ...object, Body: body }));
});
afterAll(async () => {
  for (const client of [all, reader, limited, both]) client?.destroy();
  await gateway?.close(0);
  await world?.close();
});

const bytesOf = async (object: typeof OWN): Promise<Buffer> =>
  Buffer.from(await (await all!.send(new s3.GetObjectCommand(object))).Body!.transformToByteArray());
const keysIn = async (client: s3.S3Client, Prefix: string): Promise<unknown[]> =>
  ((await client.send(new s3.ListObjectsV2Command({ Bucket, Prefix }))).Contents ?? []).map(({ Key }) => Key);

/** Every way to read an object, and to change one. */
type Way = (client: s3.S3Client, object: typeof OWN) => Promise<unknown>;
const READS: Record<string, Way> = {
  GetObject: (client, object) => client.send(new s3.GetObjectCommand(object)),
  HeadObject: (client, object) => client.send(new s3.HeadObjectCommand(object)),
  GetObjectTagging: (client, object) => client.send(new s3.GetObjectTaggingCommand(object)),
  GetObjectAcl: (client, object) => client.send(new s3.GetObjectAclCommand(object)),
  GetObjectAttributes: (client, object) =>
    client.send(new s3.GetObjectAttributesCommand({ ...object, ObjectAttributes: ["ETag"] })),
};
const WRITES: Record<string, Way> = {
  PutObject: (client, object) => client.send(new s3.PutObjectCommand({ ...object, Body: "x" })),
  PutObjectTagging: (client, object) =>
    client.send(new s3.PutObjectTaggingCommand({ ...object, Tagging: { TagSet: [{ Key: "k", Value: "v" }] } })),
  DeleteObjectTagging: (client, object) => client.send(new s3.DeleteObjectTaggingCommand(object)),
  CopyObject: (client, object) => client.send(new s3.CopyObjectCommand({ ...object, CopySource: `${Bucket}/a/own` })),
  CreateMultipartUpload: (client, object) => client.send(new s3.CreateMultipartUploadCommand(object)),
  DeleteObject: (client, object) => client.send(new s3.DeleteObjectCommand(object)),
};

/** The status of a request by a presigned URL, whose path nothing resolves on the way. */
async function presigned(key: string, method: string, credentials: typeof GATEWAY_KEYS): Promise<number | undefined> {
  const url = await signed(gateway, { key, method, credentials });
  const { hostname, port } = new URL(gateway.url);
  const asked = request({ hostname, port, method, path: url.slice(gateway.url.length) });
  asked.end(method === "PUT" ? "x" : undefined);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

describe("a pair that may only read", () => {
  test.each(Object.keys(READS))("%s of any key works", async (name) => {
    await READS[name]!(reader!, OTHER);
  });

  test.each(Object.keys(WRITES))("%s is AccessDenied, and changes nothing", async (name) => {
    // Its own copy of a key onto another one.
    const target = name === "CopyObject" ? OTHER : OWN;
    await expect(WRITES[name]!(reader!, target)).rejects.toMatchObject({
      ...denied,
      message: expect.stringContaining("may only read"),
    });
    expect((await bytesOf(target)).equals(body)).toBe(true);
  });

  test("lists everything, and removes nothing in bulk", async () => {
    expect(await keysIn(reader!, "")).toEqual(["a/own", "ab/other"]);
    const objects = { Bucket, Delete: { Objects: [{ Key: OWN.Key }] } };
    await expect(reader!.send(new s3.DeleteObjectsCommand(objects))).rejects.toMatchObject(denied);
    expect((await bytesOf(OWN)).equals(body)).toBe(true);
  });
});

describe("a pair with a prefix", () => {
  test.each(Object.keys(READS))("%s works below it alone", async (name) => {
    await READS[name]!(limited!, OWN);
    await expect(READS[name]!(limited!, OTHER)).rejects.toMatchObject(
      // An answer to HEAD has no room for a code.
      name === "HeadObject" ? { $metadata: denied.$metadata } : denied,
    );
    // It does not learn whether a key is there.
    const absent = { Bucket, Key: "absent" };
    if (name === "GetObject") await expect(READS[name]!(limited!, absent)).rejects.toMatchObject(denied);
  });

  test.each(Object.keys(WRITES))("%s works below it alone", async (name) => {
    await expect(WRITES[name]!(limited!, OTHER)).rejects.toMatchObject(denied);
    expect((await bytesOf(OTHER)).equals(body)).toBe(true);
    await WRITES[name]!(limited!, name === "CopyObject" ? { Bucket, Key: "a/copy" } : OWN);
    await all!.send(new s3.DeleteObjectCommand({ Bucket, Key: "a/copy" }));
  });

  test.each(["a", "A/x", "ab/x", "/a/x", "x/a/x", "a\u0301/x"])("the key %j is not below it", async (Key) => {
    await expect(WRITES["PutObject"]!(limited!, { Bucket, Key })).rejects.toMatchObject(denied);
  });

  test("no segment of a key leads out of it", async () => {
    for (const key of ["a/../ab/other", "a/./../ab/other"]) expect(await presigned(key, "GET", LIMITED)).toBe(404);
    for (const key of ["./a/own", "../a/own"]) expect(await presigned(key, "GET", LIMITED)).toBe(403);
  });

  test("a copy needs the right to read its source", async () => {
    const target = { Bucket, Key: "a/copy" };
    const from = (source: string) => ({ ...target, CopySource: `${Bucket}/${source}` });
    await expect(limited!.send(new s3.CopyObjectCommand(from("ab/other")))).rejects.toMatchObject(denied);
    await expect(limited!.send(new s3.CopyObjectCommand(from("a/%2e%2e/ab/other")))).rejects.toThrow();
    const { UploadId } = await limited!.send(new s3.CreateMultipartUploadCommand(target));
    const part = (source: string) => new s3.UploadPartCopyCommand({ ...from(source), UploadId, PartNumber: 1 });
    await expect(limited!.send(part("ab/other"))).rejects.toMatchObject(denied);
    const { CopyPartResult } = await limited!.send(part("a/own"));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: CopyPartResult!.ETag }] };
    await limited!.send(new s3.CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload }));
    expect((await bytesOf(target)).equals(body)).toBe(true);
    await all!.send(new s3.DeleteObjectCommand(target));
  });

  test("DeleteObjects judges each key", async () => {
    const Objects = [OWN, OTHER, { Key: "a/absent" }].map(({ Key }) => ({ Key }));
    const { Deleted, Errors } = await limited!.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect(Deleted).toEqual([{ Key: "a/own" }, { Key: "a/absent" }]);
    expect(Errors).toEqual([expect.objectContaining({ Key: "ab/other", Code: "AccessDenied" })]);
    expect((await bytesOf(OTHER)).equals(body)).toBe(true);
    expect(await keysIn(all!, "")).toEqual(["ab/other"]);
  });

  test("every kind of list is of a prefix within it, as a policy with s3:prefix says", async () => {
    const { UploadId } = await all!.send(new s3.CreateMultipartUploadCommand(OTHER));
    const lists = [
      s3.ListObjectsV2Command,
      s3.ListObjectsCommand,
      s3.ListObjectVersionsCommand,
      s3.ListMultipartUploadsCommand,
    ];
    for (const List of lists) {
      const list = (Prefix?: string) => limited!.send(new (List as typeof s3.ListObjectsCommand)({ Bucket, Prefix }));
      for (const prefix of [undefined, "", "a", "ab/", "b/"]) {
        await expect(list(prefix), `${List.name} ${prefix}`).rejects.toMatchObject(denied);
      }
      await list("a/");
      await list("a/ow");
    }
    expect(await keysIn(limited!, "a/")).toEqual(["a/own"]);
    const behind = { Bucket, Prefix: "a/", StartAfter: "ab/", Delimiter: "o" };
    expect((await limited!.send(new s3.ListObjectsV2Command(behind))).KeyCount).toBe(0);
    await all!.send(new s3.AbortMultipartUploadCommand({ ...OTHER, UploadId }));
  });

  test("an upload of another pair is not reached by its id", async () => {
    const { UploadId } = await all!.send(new s3.CreateMultipartUploadCommand(OTHER));
    const under = (object: typeof OWN) => ({ ...object, UploadId });
    const part = { PartNumber: 1, Body: "x" };
    await expect(limited!.send(new s3.UploadPartCommand({ ...under(OTHER), ...part }))).rejects.toMatchObject(denied);
    await expect(limited!.send(new s3.ListPartsCommand(under(OTHER)))).rejects.toMatchObject(denied);
    await expect(limited!.send(new s3.AbortMultipartUploadCommand(under(OTHER)))).rejects.toMatchObject(denied);
    const completed = { ...under(OTHER), MultipartUpload: { Parts: [] } };
    await expect(limited!.send(new s3.CompleteMultipartUploadCommand(completed))).rejects.toMatchObject(denied);
    const own = limited!.send(new s3.UploadPartCommand({ ...under(OWN), ...part }));
    await expect(own).rejects.toMatchObject({ name: "NoSuchUpload" });
    await all!.send(new s3.AbortMultipartUploadCommand(under(OTHER)));
  });

  test("sees that the bucket is there, and neither makes nor removes one", async () => {
    await limited!.send(new s3.HeadBucketCommand({ Bucket }));
    await limited!.send(new s3.GetBucketVersioningCommand({ Bucket }));
    expect((await limited!.send(new s3.ListBucketsCommand())).Buckets?.map(({ Name }) => Name)).toEqual([Bucket]);
    await expect(limited!.send(new s3.CreateBucketCommand({ Bucket }))).rejects.toMatchObject(denied);
    await expect(limited!.send(new s3.DeleteBucketCommand({ Bucket }))).rejects.toMatchObject(denied);
  });
});

test("a pair with a prefix that may only read has neither", async () => {
  await READS["GetObject"]!(both!, OWN);
  expect(await keysIn(both!, "a/")).toEqual(["a/own"]);
  for (const object of [OWN, OTHER]) await expect(WRITES["PutObject"]!(both!, object)).rejects.toMatchObject(denied);
  await expect(READS["GetObject"]!(both!, OTHER)).rejects.toMatchObject(denied);
});

test("presigned URLs may do what their pair may", async () => {
  const statuses = async (keys: typeof GATEWAY_KEYS): Promise<unknown[]> => [
    await presigned(OWN.Key, "GET", keys),
    await presigned(OTHER.Key, "GET", keys),
    await presigned(OWN.Key, "PUT", keys),
    await presigned(OTHER.Key, "PUT", keys),
  ];
  expect(await statuses(READER)).toEqual([200, 200, 403, 403]);
  expect(await statuses(BOTH)).toEqual([200, 403, 403, 403]);
  expect([await bytesOf(OWN), await bytesOf(OTHER)]).toEqual([body, body]);
  expect(await statuses(LIMITED)).toEqual([200, 403, 200, 403]);
  expect([await bytesOf(OWN), await bytesOf(OTHER)]).toEqual([Buffer.from("x"), body]);
  expect(await statuses(GATEWAY_KEYS)).toEqual([200, 200, 200, 200]);
});

test("an unknown id and the secret of another pair are refused, in the header and in the URL", async () => {
  const refused: [typeof GATEWAY_KEYS, string][] = [
    [{ ...LIMITED, accessKeyId: "nobody" }, "InvalidAccessKeyId"],
    [{ ...LIMITED, secretAccessKey: GATEWAY_KEYS.secretAccessKey }, "SignatureDoesNotMatch"],
    [{ ...GATEWAY_KEYS, secretAccessKey: LIMITED.secretAccessKey }, "SignatureDoesNotMatch"],
  ];
  for (const [keys, name] of refused) {
    const client = s3ClientOf(gateway, keys);
    await expect(client.send(new s3.GetObjectCommand(OWN))).rejects.toMatchObject({ name });
    client.destroy();
    const answer = await fetch(await signed(gateway, { key: OWN.Key, credentials: keys }));
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining(`<Code>${name}</Code>`)]);
  }
  // An id is signed, so that no pair can pass for another of the same secret.
  const url = await signed(gateway, { key: OTHER.Key, credentials: LIMITED });
  const answer = await fetch(url.replace(LIMITED.accessKeyId, READER.accessKeyId));
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("SignatureDoesNotMatch")]);
});
