/** Reads of plain objects that nobody has adopted, by programs and through a gateway. */
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { GetObjectCommand, ListObjectVersionsCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { systemClock, type Clock } from "@agarose/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startWithOrigin, type WithOrigin } from "../../test/origin.ts";
import { allOf, KEYS } from "../../test/three-regions.ts";
import { S3Store } from "../buckets/s3-store.ts";
import { Deployment, openDeployment } from "../deployment.ts";
import { startGateway, type Gateway } from "../gateway/gateway.ts";
import { readRecord } from "../objects/manifests.ts";
import { closeParts, openParts } from "../parts.ts";
import { readOrAdopt } from "./read-through.ts";

let world: WithOrigin;
let store: Deployment;
let gateway: Gateway;
/** A client of the gateway. */
let client: S3Store;

beforeEach(async () => {
  world = await startWithOrigin();
  store = await openDeployment(world.fields);
  const context = openParts(world.config, {}, new AbortController().signal);
  gateway = await startGateway({ pairs: [KEYS], context, port: 0, host: "127.0.0.1", spoolBytes: 2 ** 20 });
  const bucket = { ...world.config.regions[0]!, endpoint: gateway.url, bucket: "agarose" };
  client = new S3Store(bucket, { credentials: KEYS, attempts: 1 });
});

afterEach(async () => {
  client.close();
  await gateway.close(0);
  store.close();
  await world.close();
});

async function textOf(key: string): Promise<string> {
  return Buffer.concat(await allOf((await store.get(key)).body)).toString();
}

async function statusOf(key: string): Promise<number> {
  const { status, body } = await client.get(key);
  await body?.cancel();
  return status;
}

test("a key that the regions do not know is read from the origin once, by many readers", async () => {
  await world.put("a/note", "plain");
  world.fault.answer = () => {
    world.fault.fired++;
    return false;
  };
  const texts = await Promise.all(Array.from({ length: 6 }, () => textOf("a/note")));
  expect(new Set(texts)).toEqual(new Set(["plain"]));
  expect(world.fault.fired, "reads of the origin").toBe(1);
  await world.origin.remove(["a/note"]);
  expect(await textOf("a/note"), "it is in the regions now").toBe("plain");
  expect(await store.stat("a/note")).toMatchObject({ contentType: "text/plain" });
  await expect(store.get("a/none")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test("a reader that leaves ends at once, and another one goes on with what has come", async () => {
  await world.put("film", "plain");
  const leaving = new AbortController();
  const context = openParts(world.config, {}, new AbortController().signal);
  let second: Promise<unknown> | undefined;
  const goOn = Promise.withResolvers<void>();
  world.fault.answer = async () => {
    world.fault.fired++;
    second ??= readOrAdopt("film", context);
    await new Promise((resolve) => setTimeout(resolve, 100));
    leaving.abort();
    await goOn.promise;
    return false;
  };
  await expect(readOrAdopt("film", { ...context, signal: leaving.signal })).rejects.toThrow(/abort/);
  goOn.resolve();
  expect(await second, "the origin was asked once").toMatchObject({ key: "film" });
  expect(world.fault.fired, "the fault fired once").toBe(1);
  expect(await second).toMatchObject({ key: "film" });
  closeParts(context);
});

/** A gateway whose clock calls what waits for a quarter of an hour, or longer, when the test says so. */
async function startPatientGateway() {
  const late: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    after(ms, run) {
      if (ms < 15 * 60_000) return systemClock.after(ms, run);
      late.push(run);
      return () => void late.splice(late.indexOf(run), 1);
    },
  };
  const context = openParts(world.config, {}, new AbortController().signal, { clock });
  const own = await startGateway({ pairs: [KEYS], context, port: 0, host: "127.0.0.1", spoolBytes: 2 ** 20 });
  const bucket = { ...world.config.regions[0]!, endpoint: own.url, bucket: "agarose" };
  const reader = new S3Store(bucket, { credentials: KEYS, attempts: 1 });
  return {
    late,
    /** Reads a key, and leaves when the origin is asked for its object, which sends it only after `goOn`. */
    async readAndLeave(key: string): Promise<() => void> {
      const goOn = Promise.withResolvers<void>();
      const leaving = new AbortController();
      world.fault.answer = async () => {
        world.fault.fired++;
        leaving.abort();
        await goOn.promise;
        return false;
      };
      await expect(reader.get(key, { signal: leaving.signal })).rejects.toThrow(/abort/i);
      return goOn.resolve;
    },
    async close(): Promise<void> {
      reader.close();
      await own.close(0);
      await closeParts(context);
    },
  };
}

/** The state of a key in the regions, without a look at the origin. */
async function recordOf(key: string): Promise<unknown> {
  const context = openParts({ ...world.config, origin: undefined }, {}, new AbortController().signal);
  const { record } = await readRecord(key, context, { isReadOnly: true });
  await closeParts(context);
  return record;
}

test("what a client of the gateway has begun to read is adopted, though it leaves", async () => {
  const patient = await startPatientGateway();
  await world.put("film", "plain");
  const goOn = await patient.readAndLeave("film");
  await vi.waitFor(() => expect(patient.late, "it has a quarter of an hour").toHaveLength(1));
  goOn();
  await vi.waitFor(async () => expect(await recordOf("film")).toMatchObject({ key: "film" }), { timeout: 10_000 });
  await vi.waitFor(() => expect(patient.late, "nothing waits any more").toEqual([]));
  expect(world.fault.fired, "the fault fired once").toBe(1);
  await patient.close();
});

test.each(["its time is up", "the gateway is closed"])("an adoption without a reader ends when %s", async (what) => {
  const patient = await startPatientGateway();
  await world.put("film", "plain");
  const goOn = await patient.readAndLeave("film");
  await vi.waitFor(() => expect(patient.late).toHaveLength(1));
  if (what === "its time is up") patient.late[0]!();
  else await patient.close();
  const folders = async () => (await readdir(tmpdir())).filter((name) => name.includes(`-${process.pid}-`));
  await vi.waitFor(async () => expect((await folders()).join()).not.toContain("agarose-adopt"));
  goOn();
  expect(await recordOf("film"), "nothing of it is stored").toBe(undefined);
  expect(world.fault.fired, "the fault fired").toBe(1);
  if (what === "its time is up") await patient.close();
});

test("few adoptions at a time go on without a reader", async () => {
  const patient = await startPatientGateway();
  const keys = ["a", "b", "c", "d", "e"];
  const waiting: (() => void)[] = [];
  for (const key of keys) {
    await world.put(key, "plain");
    waiting.push(await patient.readAndLeave(key));
    await vi.waitFor(() => expect(patient.late).toHaveLength(Math.min(4, waiting.length)));
  }
  for (const goOn of waiting) goOn();
  await vi.waitFor(async () => expect(await recordOf("d")).toMatchObject({ key: "d" }), { timeout: 10_000 });
  expect(await recordOf("e")).toBe(undefined);
  expect(world.fault.fired, "the faults fired").toBe(keys.length);
  await patient.close();
});

test("the gateway lists and sends what is there, with the ETags of the origin", async () => {
  for (const name of ["a.txt", "a", "b/../c", "z"]) await world.put(name, `plain ${name}`);
  await store.put("a", "coded");
  const listed = await allOf(client.list(""));
  expect(listed.map(({ name, bytes }) => [name, bytes])).toEqual([
    ["a", 5],
    ["a.txt", 11],
    ["b/../c", 12],
    ["z", 7],
  ]);
  const ofOrigin = new Map((await allOf(world.origin.list(""))).map(({ name, etag }) => [name, etag]));
  expect(listed[1]!.etag).toBe(ofOrigin.get("a.txt"));
  const { status, headers, body } = await client.get("a.txt", { range: "bytes=0-4" });
  expect([status, await new Response(body).text()]).toEqual([206, "plain"]);
  expect(headers.get("etag")).toBe(ofOrigin.get("a.txt"));
  expect((await allOf(client.list(""))).map(({ name, etag }) => [name, etag])[1]).toEqual([
    "a.txt",
    headers.get("etag"),
  ]);
  expect(await client.head("z")).toBe(7);
  expect(await statusOf("none")).toBe(404);
});

test("the gateway lists what is there as the version null, which reads it", async () => {
  await world.put("a/note", "plain");
  const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: KEYS };
  const sdk = new S3Client({ ...shared, endpoint: gateway.url });
  const object = { Bucket: "agarose", Key: "a/note", VersionId: "null" };
  try {
    const { Versions } = await sdk.send(new ListObjectVersionsCommand({ Bucket: "agarose", Prefix: "a/" }));
    expect(Versions).toMatchObject([{ Key: "a/note", VersionId: "null", IsLatest: true, Size: 5 }]);
    const { Body } = await sdk.send(new GetObjectCommand(object));
    expect(await Body!.transformToString()).toBe("plain");
  } finally {
    sdk.destroy();
  }
});

test("with keep, null is no version of a key that the regions know", async () => {
  await world.put("a/note", "plain");
  const config = { ...world.config, keep: [{ prefix: "", time: 86_400_000 }] };
  const context = openParts(config, {}, new AbortController().signal);
  const kept = await startGateway({ pairs: [KEYS], context, port: 0, host: "127.0.0.1", spoolBytes: 2 ** 20 });
  const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: KEYS };
  const sdk = new S3Client({ ...shared, endpoint: kept.url });
  const read = async (VersionId?: string): Promise<string> => {
    const { Body } = await sdk.send(new GetObjectCommand({ Bucket: "agarose", Key: "a/note", VersionId }));
    return Body!.transformToString();
  };
  try {
    expect(await read("null"), "the origin alone has it").toBe("plain");
    await sdk.send(new PutObjectCommand({ Bucket: "agarose", Key: "a/note", Body: "newer" }));
    expect(await read()).toBe("newer");
    await expect(read("null")).rejects.toMatchObject({ name: "NoSuchVersion" });
  } finally {
    sdk.destroy();
    await kept.close(0);
    await closeParts(context);
  }
});

test("conditions of the gateway are on what clients see", async () => {
  await world.put("a", "plain");
  const bytes = Buffer.from("new");
  const put = (condition: object) => client.put("a", bytes, { bytes: 3, contentType: "text/plain", ...condition });
  await expect(put({ ifNoneMatch: "*" })).rejects.toMatchObject({ details: { status: 412 } });
  const [listed] = await allOf(world.origin.list("a"));
  await put({ ifMatch: listed!.etag });
  expect(await textOf("a")).toBe("new");
  await world.put("b", "plain");
  await expect(client.removeMatching("b", '"other"')).rejects.toMatchObject({ details: { status: 412 } });
  expect(await textOf("b")).toBe("plain");
});

test("a removed object does not come back from the origin, adopted or not", async () => {
  for (const name of ["adopted", "plain", "program"]) await world.put(name, "old");
  expect(await textOf("adopted")).toBe("old");
  expect(await client.remove(["adopted", "plain", "nothing"])).toEqual([]);
  expect(await store.remove("program")).toMatchObject({ key: "program", chunksRemoved: 0 });
  for (const name of ["adopted", "plain", "program"]) {
    await expect(store.get(name), name).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
    expect(await statusOf(name)).toBe(404);
  }
  expect(await allOf(client.list(""))).toEqual([]);
  expect(await allOf(store.adopt())).toEqual([]);
});

test.each([
  [404, 404, "OBJECT_NOT_FOUND"],
  [500, 503, "SOURCE_FAILED"],
  [503, 503, "SOURCE_FAILED"],
])("a key that the origin lists, and answers %i for, is a %i and no conflict", async (answered, status, code) => {
  await world.put("listed", "plain");
  world.fault.answer = (_request, response) => {
    response.writeHead(answered).end();
    return true;
  };
  expect(await statusOf("listed")).toBe(status);
  await expect(store.get("listed")).rejects.toMatchObject({ code });
  expect(world.fault.fired, "the fault fired").toBeGreaterThan(1);
  if (code === "SOURCE_FAILED") await expect(store.get("listed")).rejects.toThrow(/run the command again/);
  // A run over all of them does not say that it is gone.
  const outcomes = await allOf(store.adopt("listed"));
  expect(outcomes).toMatchObject([{ outcome: "failed", error: { code } }]);
  world.fault.answer = undefined;
  expect(await textOf("listed")).toBe("plain");
});

test("an origin that fails or lies is an error, never a missing key or half of an object", async () => {
  await world.put("film", "whole");
  world.fault.answer = (_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<html>");
    return true;
  };
  await expect(store.get("film")).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(await statusOf("film")).toBe(503);
  expect(world.fault.fired, "the fault fired").toBe(2);
  world.fault.answer = undefined;
  expect(await statusOf("film")).toBe(200);
  await world.stop();
  await expect(store.get("other")).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(await statusOf("other")).toBe(503);
  expect(await statusOf("film"), "what is adopted needs no origin").toBe(200);
});
