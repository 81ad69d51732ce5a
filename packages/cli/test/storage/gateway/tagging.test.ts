/** Tags of objects, as they are put, copied, changed and refused at the gateway. */
import {
  CopyObjectCommand,
  DeleteObjectTaggingCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  type CopyObjectCommandInput,
  type Tag,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";

let started: GatewayWorld;
let client: GatewayWorld["client"];

beforeAll(async () => {
  started = await startGatewayWorld();
  ({ client } = started);
});
afterAll(() => started.close());

const put = (Key: string, Tagging?: string) =>
  client.send(
    new PutObjectCommand({ Bucket, Key, Body: "one", Tagging, Metadata: { a: "b" }, ContentType: "text/css" }),
  );
const tag = (Key: string, TagSet: Tag[]) =>
  client.send(new PutObjectTaggingCommand({ Bucket, Key, Tagging: { TagSet } }));
const copy = (from: string, Key: string, more: Partial<CopyObjectCommandInput> = {}) =>
  client.send(new CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/${from}`, ...more }));
const tags = async (Key: string) => (await client.send(new GetObjectTaggingCommand({ Bucket, Key }))).TagSet;
const head = (Key: string) => client.send(new HeadObjectCommand({ Bucket, Key }));

test("tags are put, changed and removed, and nothing else of the object is", async () => {
  const { ETag } = await put("changed", "color=red&a%20b=%C3%BC%26");
  expect(await tags("changed")).toEqual([
    { Key: "color", Value: "red" },
    { Key: "a b", Value: "ü&" },
  ]);
  const stat = await started.world.run(["stat", "changed", "--json"]);
  expect(JSON.parse(stat.stdout.toString())).toMatchObject({
    headers: { "x-amz-tagging": "color=red&a%20b=%C3%BC%26" },
  });
  await tag("changed", [{ Key: "<1>", Value: "" }]);
  expect(await tags("changed")).toEqual([{ Key: "<1>", Value: "" }]);
  const { TagCount, Body } = await client.send(new GetObjectCommand({ Bucket, Key: "changed" }));
  expect([TagCount, await Body!.transformToString()]).toEqual([1, "one"]);
  await client.send(new DeleteObjectTaggingCommand({ Bucket, Key: "changed" }));
  expect(await tags("changed")).toEqual([]);
  expect(await head("changed")).toMatchObject({ ETag, Metadata: { a: "b" }, ContentType: "text/css" });
  expect((await head("changed")).$metadata).not.toHaveProperty("x-amz-tagging-count");
});

test("a copy takes tags and metadata each from its source or from its request", async () => {
  await put("source", "a=1");
  await copy("source", "both");
  expect([await tags("both"), (await head("both")).Metadata]).toEqual([[{ Key: "a", Value: "1" }], { a: "b" }]);
  await copy("source", "tagged", { TaggingDirective: "REPLACE", Tagging: "b=2" });
  expect([await tags("tagged"), (await head("tagged")).Metadata]).toEqual([[{ Key: "b", Value: "2" }], { a: "b" }]);
  await copy("source", "described", { MetadataDirective: "REPLACE", Metadata: { c: "d" } });
  expect([await tags("described"), (await head("described")).Metadata]).toEqual([
    [{ Key: "a", Value: "1" }],
    { c: "d" },
  ]);
  await copy("source", "source", { TaggingDirective: "REPLACE" });
  expect(await tags("source")).toEqual([]);
  await expect(copy("source", "dropped", { Tagging: "b=2" })).rejects.toMatchObject({ name: "InvalidRequest" });
});

test.each([
  ["eleven", Array.from({ length: 11 }, (_, i) => ({ Key: `${i}`, Value: "" })), "BadRequest"],
  ["no key", [{ Key: "", Value: "x" }], "InvalidTag"],
  ["a long key", [{ Key: "k".repeat(129), Value: "" }], "InvalidTag"],
  ["a long value", [{ Key: "k", Value: "v".repeat(257) }], "InvalidTag"],
  ["one twice", [1, 2].map((n) => ({ Key: "k", Value: `${n}` })), "InvalidTag"],
  ["more than a manifest keeps", [1, 2, 3].map((n) => ({ Key: `${n}`, Value: "日".repeat(200) })), "InvalidTag"],
])("tags of which there are %s are refused, and the object keeps its own", async (_what, refused, name) => {
  await put("refused", "own=1");
  await expect(tag("refused", refused)).rejects.toMatchObject({ name });
  const query = refused.map(({ Key, Value }) => `${encodeURIComponent(Key)}=${encodeURIComponent(Value)}`).join("&");
  await expect(put("refused", query)).rejects.toMatchObject({ name });
  expect(await tags("refused")).toEqual([{ Key: "own", Value: "1" }]);
});

test("as many tags as S3 allows are kept", async () => {
  const most = Array.from({ length: 10 }, (_, i) => ({ Key: `${i}`.padEnd(128, "k"), Value: "v".repeat(256) }));
  await put("most");
  await tag("most", most);
  expect(await tags("most")).toEqual(most);
  await expect(tag("nowhere", most)).rejects.toMatchObject({ name: "NoSuchKey" });
});
