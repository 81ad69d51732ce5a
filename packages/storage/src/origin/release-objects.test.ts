/** Objects of a deployment that become plain objects again, in a bucket that lies, or that others write to. */
import { createHash, randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWithOrigin, type WithOrigin } from "../../test/origin.ts";
import { allOf } from "../../test/three-regions.ts";
import { openStores } from "../buckets/stores.ts";
import type { Config } from "../config/config.ts";
import { Deployment, openDeployment } from "../deployment.ts";
import type { ReleaseOutcome } from "./release-objects.ts";

let world: WithOrigin;
let store: Deployment;

beforeEach(async () => {
  world = await startWithOrigin();
  store = await openDeployment(world.fields);
});

afterEach(async () => {
  store.close();
  await world.close();
});

const BYTES = Uint8Array.from({ length: 60_000 }, (_, index) => (index * 31) % 251);

const release = (prefix?: string, options = {}): Promise<ReleaseOutcome[]> => allOf(store.release(prefix, options));

const outcomesOf = (outcomes: readonly ReleaseOutcome[]): string[] =>
  outcomes.map(({ key, outcome }) => `${outcome} ${key}`);

async function plain(name: string) {
  const { status, headers, body } = await world.origin.get(name);
  const bytes = Buffer.concat(await allOf(body!));
  return { status, headers, bytes };
}

/** Between two versions, because S3 tells whole seconds. */
const aSecond = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 1_100));

test("writes bytes, type, headers and metadata as plain objects, once", async () => {
  const headers = { "cache-control": "max-age=60", "x-amz-meta-owner": "ann", "content-encoding": "gzip" };
  const film = gzipSync(BYTES);
  await store.put("a/film", film, { contentType: "video/mp4", headers });
  await store.put("a/empty", "");
  await store.put("a/Käse & co", "cheese ".repeat(1_000), { contentType: "text/plain", compress: "all" });
  await store.put("b/other", "other");
  expect(outcomesOf(await release("a/", { dryRun: true }))).toEqual(["due a/Käse & co", "due a/empty", "due a/film"]);
  expect(await allOf(world.origin.list("")), "a dry run writes nothing").toEqual([]);
  expect(outcomesOf(await release("a/"))).toEqual(["released a/Käse & co", "released a/empty", "released a/film"]);
  const found = await plain("a/film");
  expect(found.bytes.equals(film)).toBe(true);
  expect(Object.fromEntries(found.headers)).toMatchObject({
    "content-type": "video/mp4",
    "x-amz-meta-agarose-sha256": createHash("sha256").update(film).digest("hex"),
    ...headers,
  });
  expect((await plain("a/empty")).bytes.length).toBe(0);
  expect((await plain("a/Käse & co")).bytes.toString()).toBe("cheese ".repeat(1_000));
  expect(await release("a/"), "again").toEqual([]);
  await aSecond();
  await store.put("a/film", film, { contentType: "video/webm", headers });
  expect(outcomesOf(await release("a/")), "with another type").toEqual(["released a/film"]);
  expect((await plain("a/film")).headers.get("content-type")).toBe("video/webm");
});

test("what was released is nothing newer to adopt, and what others wrote is", async () => {
  for (const key of ["ours", "theirs"]) await store.put(key, "ours");
  await aSecond();
  expect(outcomesOf(await release())).toEqual(["released ours", "released theirs"]);
  await world.put("theirs", "else");
  expect(await allOf(store.adopt())).toMatchObject([{ key: "theirs", outcome: "newer" }]);
});

test("tags go along in both directions, and one that changes is written again", async () => {
  const tags = { "x-amz-tagging": "to=all&of=a%20b%2Bc%26d" };
  await world.put("adopted", "from there", { headers: tags });
  expect(await allOf(store.adopt())).toMatchObject([{ outcome: "adopted" }]);
  const kept = (await store.stat("adopted")).headers["x-amz-tagging"];
  expect(Object.fromEntries(new URLSearchParams(kept))).toEqual({ to: "all", of: "a b+c&d" });
  await store.put("short", "ours", { headers: tags });
  await store.put("long", Buffer.alloc(9 * 2 ** 20, BYTES), { headers: tags });
  expect(outcomesOf(await release())).toEqual(["released long", "released short"]);
  const ofPlain = async (name: string) => (await world.origin.look(name))?.headers.get("x-amz-tagging");
  for (const name of ["short", "long"]) {
    expect(Object.fromEntries(new URLSearchParams((await ofPlain(name)) ?? "")), name).toEqual({
      to: "all",
      of: "a b+c&d",
    });
  }
  expect(await release(), "again").toEqual([]);
  await aSecond();
  await store.put("short", "ours", { headers: { "x-amz-tagging": "to=none&of=a%20b%2Bc%26d" } });
  expect(outcomesOf(await release())).toEqual(["released short"]);
  expect(await ofPlain("short")).toContain("to=none");
});

test("a chunk that its region has tagged is read without a look at the tags", async () => {
  await world.put("scanned", "clean", { headers: { "x-amz-tagging": "scan=clean" } });
  const [region] = openStores({ ...world.config, providers: {}, regions: [world.origin.region] } as Config);
  for (const { headers } of [(await world.origin.look("scanned"))!, await world.origin.get("scanned")]) {
    expect(headers.get("x-amz-tagging"), "the tag is there").toBe("scan=clean");
  }
  expect((await region!.get("scanned")).headers.get("x-amz-tagging")).toBeNull();
  region!.close();
});

test("a bucket that keeps no tags, or does not show them, is a failure of the objects that have some", async () => {
  await store.put("tagged", "ours", { contentType: "text/plain", headers: { "x-amz-tagging": "a=b" } });
  await store.put("untagged", "ours");
  let looks = 0;
  world.fault.head = ({ url }, response) => {
    if (!url!.endsWith("/tagged") || looks++ === 0) return false;
    const mark = { "x-amz-meta-agarose-sha256": createHash("sha256").update("ours").digest("hex") };
    response.writeHead(200, { ...mark, "content-length": "4", "content-type": "text/plain", etag: '"x"' }).end();
    return true;
  };
  expect(outcomesOf(await release())).toEqual(["failed tagged", "released untagged"]);
  expect(world.fault.fired).toBe(1);
});

test("an object that is too long for memory is sent as it is read, or not at all", async () => {
  const long = Buffer.alloc(9 * 2 ** 20, BYTES);
  await store.put("long", long, { contentType: "video/mp4" });
  await store.put("coded", gzipSync(randomBytes(9 * 2 ** 20)), { headers: { "content-encoding": "gzip" } });
  expect(outcomesOf(await release())).toEqual(["released coded", "released long"]);
  expect((await plain("long")).bytes.equals(long)).toBe(true);
  expect((await plain("coded")).headers.get("content-encoding")).toBe("gzip");
  expect(await release(), "again").toEqual([]);
});

test("what was adopted and has not changed is not even read, and what is adopted again is as before", async () => {
  await world.put("note", "plain");
  await allOf(store.adopt());
  expect(await release()).toEqual([]);
  await aSecond();
  await store.put("note", "newer", { contentType: "text/plain" });
  expect(outcomesOf(await release())).toEqual(["released note"]);
  const { bytes, headers } = await plain("note");
  expect(bytes.toString()).toBe("newer");
  expect(headers.get("x-amz-meta-agarose-sha256")).not.toBeNull();
  await world.origin.put("again", bytes, { bytes: 5, contentType: "text/plain", headers: Object.fromEntries(headers) });
  await allOf(store.adopt("again"));
  expect(Object.keys((await store.stat("again")).headers)).toEqual(["x-amz-checksum-md5"]);
});

test("leaves what others have written since, and names what was removed and is still there", async () => {
  await store.put("note", "ours");
  await store.put("gone", "ours");
  await release();
  await aSecond();
  await world.put("note", "theirs");
  await store.remove("gone");
  await store.put("never", "ours");
  await store.remove("never");
  const outcomes = await release();
  expect(outcomesOf(outcomes)).toEqual(["extra gone", "newer note"]);
  expect((await plain("note")).bytes.toString()).toBe("theirs");
  expect((await plain("gone")).bytes.toString()).toBe("ours");
});

test("a bucket that is written to between the look and the put keeps what it got", async () => {
  await store.put("note", "ours");
  // The answer of the look is as of before.
  world.fault.head = async (_request, response) => {
    world.fault.head = undefined;
    await world.put("note", "theirs");
    response.writeHead(404).end();
    return true;
  };
  expect(await release()).toMatchObject([{ outcome: "failed", error: { code: "STORE_FAILED" } }]);
  expect(world.fault.fired).toBe(1);
  expect((await plain("note")).bytes.toString()).toBe("theirs");
});

test("an object that cannot be read is a failure, of which nothing is written, and the others follow", async () => {
  await store.put("bad", BYTES);
  await store.put("good", "good");
  const regions = openStores(world.config);
  for (const bucket of regions) {
    const names = (await allOf(bucket.list("")))
      .map(({ name }) => name)
      .filter((name) => name.startsWith("chunks/bad"));
    await bucket.remove(names);
    bucket.close();
  }
  const outcomes = await release();
  expect(outcomesOf(outcomes)).toEqual(["failed bad", "released good"]);
  expect(await allOf(world.origin.list(""))).toMatchObject([{ name: "good" }]);
});

test("a bucket that keeps other bytes or another type than it was sent is a failure", async () => {
  await store.put("note", "ours");
  let looks = 0;
  world.fault.head = (_request, response) => {
    if (looks++ === 0) return false;
    response.writeHead(200, { "content-length": "4", "content-type": "text/html", etag: '"x"' }).end();
    return true;
  };
  expect(await release()).toMatchObject([{ outcome: "failed", error: { code: "STORE_FAILED" } }]);
  expect(world.fault.fired).toBe(1);
});

test("another bucket of the endpoint can be named, but none of a region", async () => {
  await store.put("note", "ours");
  expect(outcomesOf(await release("", { bucket: "spare" }))).toEqual(["released note"]);
  expect(await allOf(world.origin.list(""))).toEqual([]);
  const region = world.config.regions[0]!;
  const own = await openDeployment({ ...world.fields, origin: { endpoint: region.endpoint, bucket: "plain" } });
  await expect(allOf(own.release("", { bucket: region.bucket }))).rejects.toMatchObject({ code: "USAGE" });
  own.close();
});
