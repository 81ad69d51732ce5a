/** The versions of objects under `keep`, as clients of the gateway list, read and restore them. */
import { randomBytes } from "node:crypto";
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
  type ListObjectVersionsCommandInput,
  type S3Client,
} from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";
import type { Gateway } from "@agarose/storage/gateway/gateway";
import { gatewayOver, s3ClientOf } from "../../gateway.ts";
import { MultipartClient } from "../../multipart-client.ts";
import { DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";

const DAY_MS = 86_400_000;
let world: World;
let gateway: Gateway;
let client: S3Client;

beforeAll(async () => {
  world = await startTestWorld();
  gateway = await gatewayOver(keeping(""), {});
  client = s3ClientOf(gateway);
});
afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});
afterAll(async () => {
  client.destroy();
  await gateway.close(0);
  await world.close();
});

/** The world with a history of the keys that begin with `prefix`. */
function keeping(prefix: string): World {
  return { ...world, config: { ...world.config, keep: [{ prefix, time: DAY_MS }] } };
}

const put = async (Key: string, Body: string | Uint8Array) =>
  (await client.send(new PutObjectCommand({ Bucket, Key, Body }))).VersionId;
const remove = (Key: string) => client.send(new DeleteObjectCommand({ Bucket, Key }));
const get = async (Key: string, VersionId?: string, Range?: string) => {
  const { Body, VersionId: own } = await client.send(new GetObjectCommand({ Bucket, Key, VersionId, Range }));
  return [await Body!.transformToString(), own];
};

/** Lists the versions, page by page: keys with ids, where `-` is a delete marker and `*` the latest. */
async function list(more: Partial<ListObjectVersionsCommandInput> = {}): Promise<string[]> {
  const shown: string[] = [];
  for (let markers = {}; ;) {
    const page = await client.send(new ListObjectVersionsCommand({ Bucket, ...more, ...markers }));
    const { Versions = [], DeleteMarkers = [], CommonPrefixes = [], MaxKeys } = page;
    const mark = ({ IsLatest }: { IsLatest?: boolean | undefined }): string => (IsLatest ? "*" : "");
    const lines = [
      ...Versions.map((one) => `${one.Key} ${one.VersionId}${mark(one)}`),
      ...DeleteMarkers.map((one) => `${one.Key} -${mark(one)}`),
      ...CommonPrefixes.map(({ Prefix }) => `${Prefix}`),
    ];
    expect(lines.length).toBeLessThanOrEqual(MaxKeys!);
    shown.push(...lines);
    if (!page.IsTruncated) return shown;
    expect(lines.length, "a page that is not the last").toBe(MaxKeys);
    markers = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker };
  }
}

test("each version is read by its id, replaced and removed ones too", async () => {
  const bodies = ["first", randomBytes(5_000).toString("hex"), "third"];
  const ids: (string | undefined)[] = [];
  for (const body of bodies) ids.push(await put("read/a", body));
  expect(new Set(ids).size).toBe(3);
  expect(await get("read/a")).toEqual(["third", ids[2]]);
  await remove("read/a");
  for (const [at, body] of bodies.entries()) {
    expect(await get("read/a", ids[at])).toEqual([body, ids[at]]);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: "read/a", VersionId: ids[at] }));
    expect(head).toMatchObject({ ContentLength: body.length, VersionId: ids[at] });
  }
  expect(await get("read/a", ids[1], "bytes=1-3")).toEqual([bodies[1]!.slice(1, 4), ids[1]]);
  expect(await list({ Prefix: "read/" })).toEqual([
    `read/a ${ids[2]}`,
    `read/a ${ids[1]}`,
    `read/a ${ids[0]}`,
    "read/a -*",
  ]);
  const { DeleteMarkers } = await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: "read/" }));
  const marker = get("read/a", DeleteMarkers![0]!.VersionId);
  await expect(marker).rejects.toMatchObject({ $metadata: { httpStatusCode: 405 } });
  for (const unknown of ["0".repeat(32), "null", "1"]) {
    await expect(get("read/a", unknown)).rejects.toMatchObject({ name: "NoSuchVersion" });
  }
});

/** After this time, an answer begins before the id of the version is known, so that it has none. */
const EARLY_MS = 3_000;

test("a version is put again by a copy of it onto its own key, and what it replaces stays a version", async () => {
  const first = await put("restored", "first");
  const second = await put("restored", "second");
  const CopySource = `${Bucket}/restored?versionId=${first}`;
  const startMs = performance.now();
  const copied = await client.send(new CopyObjectCommand({ Bucket, Key: "restored", CopySource }));
  const tookMs = performance.now() - startMs;
  const [body, id] = await get("restored");
  expect(body).toBe("first");
  if (tookMs < EARLY_MS) expect(copied.VersionId).toBe(id);
  expect(await get("restored", second)).toEqual(["second", second]);
  expect(await list({ Prefix: "restored" })).toEqual([`restored ${id}*`, `restored ${second}`, `restored ${first}`]);
  await remove("restored");
  await client.send(new CopyObjectCommand({ Bucket, Key: "restored", CopySource }));
  expect((await get("restored"))[0]).toBe("first");
  const none = `${Bucket}/restored?versionId=${"0".repeat(32)}`;
  const absent = client.send(new CopyObjectCommand({ Bucket, Key: "other", CopySource: none }));
  await expect(absent).rejects.toMatchObject({ name: "NoSuchVersion" });
});

test("an upload in parts tells the id of its version", async () => {
  const parts = new MultipartClient(gateway);
  const created = await parts.create("parts");
  const uploaded = [await parts.upload(created, 1, Buffer.from("one part"))];
  const startMs = performance.now();
  const { VersionId } = await parts.complete(created, uploaded);
  const tookMs = performance.now() - startMs;
  parts.close();
  const [body, id] = await get("parts");
  expect(body).toBe("one part");
  if (tookMs < EARLY_MS) expect(VersionId).toBe(id);
  expect(await get("parts", id)).toEqual([body, id]);
});

test("pages of any size have every version and prefix once, in order", async () => {
  const Prefix = "pages/";
  const ids: Record<string, string[]> = {};
  for (const key of ["a", "a/x", "b", "c/y"]) {
    ids[key] = [];
    for (let n = 0; n < 3; n++) ids[key].unshift((await put(`${Prefix}${key}`, `${n}`))!);
  }
  const of = (key: string): string[] => ids[key]!.map((id, at) => `${Prefix}${key} ${id}${at === 0 ? "*" : ""}`);
  for (const MaxKeys of [1, 2, 3, 1000]) {
    expect(await list({ Prefix, MaxKeys }), `${MaxKeys}`).toEqual(["a", "a/x", "b", "c/y"].flatMap(of));
    const folded = await list({ Prefix, MaxKeys, Delimiter: "/" });
    const expected = [...of("a"), `${Prefix}a/`, ...of("b"), `${Prefix}c/`];
    expect(folded.toSorted(), `${MaxKeys}`).toEqual(expected.toSorted());
  }
  expect(await list({ Prefix, MaxKeys: 0 })).toEqual([]);
});

test("regions that do not answer hide no version: it is found, or the answer is 503", async () => {
  const first = await put("down", "first");
  const second = await put("down", "second");
  for (const region of ["frankfurt", "sydney"]) world.faults.set(region, DOWN);
  expect(await get("down", first)).toEqual(["first", first]);
  expect(await list({ Prefix: "down" })).toEqual([`down ${second}*`, `down ${first}`]);
  expect(world.fired.size).toBe(2);
  world.faults.clear();
  world.fired.clear();
  for (const region of REGIONS.slice(0, 4)) {
    world.faults.set(region, (request, response, name) => {
      const isHistory = name.startsWith("history/") || request.url!.includes("prefix=history%2F");
      return isHistory && DOWN(request, response, name);
    });
  }
  const unsure = {
    $metadata: { httpStatusCode: 503 },
    message: expect.stringMatching(/NO_QUORUM: [0-2] of 6 .* 4 are/),
  };
  await expect(list({ Prefix: "down" })).rejects.toMatchObject(unsure);
  await expect(get("down", "0".repeat(32))).rejects.toMatchObject(unsure);
  expect(await get("down", first)).toEqual(["first", first]);
  expect(world.fired.size).toBeGreaterThan(2);
});

test("a key without keep has the one version null, and versioning of the bucket is not enabled", async () => {
  const other = await gatewayOver(keeping("kept/"), {});
  const its = s3ClientOf(other);
  try {
    const { VersionId } = await its.send(new PutObjectCommand({ Bucket, Key: "plain", Body: "x" }));
    expect(VersionId).toBeUndefined();
    const { Body } = await its.send(new GetObjectCommand({ Bucket, Key: "plain", VersionId: "null" }));
    expect(await Body!.transformToString()).toBe("x");
    const { Versions } = await its.send(new ListObjectVersionsCommand({ Bucket, Prefix: "plain" }));
    expect(Versions).toMatchObject([{ Key: "plain", VersionId: "null", IsLatest: true, Size: 1 }]);
    await its.send(new DeleteObjectCommand({ Bucket, Key: "plain" }));
    const gone = await its.send(new ListObjectVersionsCommand({ Bucket, Prefix: "plain" }));
    expect([gone.Versions, gone.DeleteMarkers]).toEqual([undefined, undefined]);
    const kept = await its.send(new PutObjectCommand({ Bucket, Key: "kept/a", Body: "x" }));
    expect(kept.VersionId).toMatch(/^[0-9a-f]{32}$/);
    expect((await its.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBeUndefined();
    expect((await client.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBe("Enabled");
  } finally {
    its.destroy();
    await other.close(0);
  }
});

test("the one version of a key without keep is deleted by its name, as clients do that empty a bucket", async () => {
  const other = await gatewayOver(keeping("kept/"), {});
  const its = s3ClientOf(other);
  const removed = (Key: string, more: object) => its.send(new DeleteObjectCommand({ Bucket, Key, ...more }));
  try {
    for (const Key of ["own/a", "own/b", "kept/one"]) await its.send(new PutObjectCommand({ Bucket, Key, Body: "x" }));
    await expect(removed("own/a", { VersionId: "1" })).rejects.toMatchObject({ name: "NotImplemented" });
    const unmet = removed("own/a", { VersionId: "null", IfMatch: '"other"' });
    await expect(unmet).rejects.toMatchObject({ name: "PreconditionFailed" });
    await expect(removed("kept/one", { VersionId: "null" })).rejects.toMatchObject({ name: "NotImplemented" });
    expect(await removed("own/a", { VersionId: "null" })).toMatchObject({ VersionId: "null" });
    const { Versions = [] } = await its.send(new ListObjectVersionsCommand({ Bucket }));
    const Objects = Versions.filter(({ Key }) => /^own\/|^kept\/one$/.test(Key!)).map(({ Key, VersionId }) => ({
      Key,
      VersionId,
    }));
    const { Deleted, Errors } = await its.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect(Deleted).toEqual([{ Key: "own/b", VersionId: "null" }]);
    expect(Errors).toMatchObject([{ Key: "kept/one", Code: "NotImplemented" }]);
    const left = await its.send(new ListObjectVersionsCommand({ Bucket, Prefix: "own/" }));
    expect(left.Versions).toBeUndefined();
    const kept = await its.send(new GetObjectCommand({ Bucket, Key: "kept/one" }));
    expect(await kept.Body!.transformToString()).toBe("x");
  } finally {
    its.destroy();
    await other.close(0);
  }
});

test("a version is deleted by nobody: the request is refused, and nothing is removed", async () => {
  const VersionId = await put("stays", "x");
  const removed = client.send(new DeleteObjectCommand({ Bucket, Key: "stays", VersionId }));
  await expect(removed).rejects.toMatchObject({ name: "NotImplemented" });
  expect(await get("stays")).toEqual(["x", VersionId]);
});
