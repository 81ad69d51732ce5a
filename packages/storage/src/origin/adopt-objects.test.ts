/** Plain objects that become objects of a deployment, over real S3 endpoints, from an origin that lies. */
import { createHash } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWithOrigin, type OriginFault, type WithOrigin } from "../../test/origin.ts";
import { allOf } from "../../test/three-regions.ts";
import { openOrigin } from "../buckets/stores.ts";
import { singleAfter } from "../commit/generations.ts";
import { claimName } from "../commit/names.ts";
import { configOfFields } from "../config/config.ts";
import { Deployment, openDeployment } from "../deployment.ts";
import { collectGarbage } from "../maintenance/gc/collect-garbage.ts";
import { readRecord } from "../objects/manifests.ts";
import { closeParts, openParts } from "../parts.ts";
import type { AdoptOutcome } from "./adopt-object.ts";
import { adoptObjects } from "./adopt-objects.ts";

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

async function adopt(prefix?: string): Promise<AdoptOutcome[]> {
  return allOf(store.adopt(prefix));
}

async function textOf(key: string): Promise<string> {
  return Buffer.concat(await allOf((await store.get(key)).body)).toString();
}

/** Does something before the first request for an object is answered. */
function once(action: () => Promise<unknown>): OriginFault {
  return async () => {
    world.fault.answer = undefined;
    world.fault.fired++;
    await action();
    return false;
  };
}

test("brings bytes, type, headers and ETag, once, and leaves the origin as it is", async () => {
  await world.put("a/film", BYTES, { contentType: "video/mp4", cacheControl: "max-age=60" });
  await world.put("a/empty", "");
  await world.put("a/Käse & co", "cheese");
  await world.put("b/other", "other");
  expect(await allOf(store.adopt("a/", { dryRun: true }))).toMatchObject([
    { key: "a/Käse & co", outcome: "due", bytes: 6 },
    { key: "a/empty", outcome: "due" },
    { key: "a/film", outcome: "due" },
  ]);
  expect(await allOf(store.list()), "a dry run stores nothing").toEqual([]);
  expect((await adopt("a/")).map(({ outcome }) => outcome)).toEqual(["adopted", "adopted", "adopted"]);
  const { bytes, contentType, headers, body } = await store.get("a/film");
  expect(Buffer.concat(await allOf(body)).equals(BYTES)).toBe(true);
  const md5 = createHash("md5").update(BYTES).digest("base64");
  expect({ bytes, contentType, headers }).toEqual({
    bytes: 60_000,
    contentType: "video/mp4",
    headers: { "cache-control": "max-age=60", "x-amz-checksum-md5": md5 },
  });
  expect(await textOf("a/Käse & co")).toBe("cheese");
  expect(await adopt("a/"), "again").toEqual([]);
  world.fault.answer = (_request, response) => {
    response.writeHead(200, {
      "content-length": "5",
      "x-amz-meta-owner": "=?UTF-8?Q?J=C3=BCrgen?=",
      "x-amz-request-id": "none",
    });
    response.end("other");
    return true;
  };
  expect(await adopt("b/")).toMatchObject([{ outcome: "adopted" }]);
  expect((await store.stat("b/other")).headers).toMatchObject({ "x-amz-meta-owner": "=?UTF-8?Q?J=C3=BCrgen?=" });
  expect((await allOf(world.origin.list(""))).length).toBe(4);
  expect(
    (await readdir(tmpdir())).filter((name) => name.includes(`-${process.pid}-`) && name.includes("adopt")),
  ).toEqual([]);
});

test("never replaces what was put or removed in the regions, also while it reads", async () => {
  for (const key of ["put", "removed", "late", "gone"]) await world.put(key, "old");
  await store.put("put", "new");
  await store.put("removed", "new");
  await store.remove("removed");
  expect(await adopt("put")).toEqual([]);
  expect(await adopt("removed")).toEqual([]);
  await expect(store.get("removed")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  world.fault.answer = once(() => store.put("late", "newest"));
  expect(await adopt("late")).toEqual([]);
  expect(await textOf("late")).toBe("newest");
  world.fault.answer = once(async () => {
    await store.put("gone", "newest");
    await store.remove("gone");
  });
  expect(await adopt("gone")).toEqual([]);
  await expect(store.get("gone")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  expect(world.fault.fired, "the faults fired").toBe(2);
});

test("follows an origin that changes, and reports what was written to it later", async () => {
  await world.put("before", "old");
  await world.put("after", "old");
  await world.put("away", "old");
  // Between the listing and the read.
  world.fault.answer = once(() => world.put("before", "newer"));
  expect(await adopt("before")).toMatchObject([{ outcome: "adopted", bytes: 5 }]);
  expect(await textOf("before")).toBe("newer");
  // Between the read and the commit: the answer has the old bytes already.
  world.fault.answer = async (_request, response) => {
    world.fault.answer = undefined;
    await world.put("after", "newer");
    response.writeHead(200, { etag: `"${createHash("md5").update("old").digest("hex")}"`, "content-length": "3" });
    response.end("old");
    return true;
  };
  expect(await adopt("after")).toMatchObject([{ outcome: "adopted", bytes: 5 }]);
  expect(await textOf("after")).toBe("newer");
  world.fault.answer = once(() => world.origin.remove(["away"]));
  expect(await adopt("away")).toMatchObject([{ outcome: "gone" }]);
  expect(world.fault.fired, "the faults fired").toBe(3);
  await new Promise((resolve) => setTimeout(resolve, 1_100)); // S3 lists times in seconds
  await world.put("before", "by an old program");
  expect(await adopt()).toMatchObject([
    { key: "before", outcome: "newer", problem: expect.stringContaining("stored at") },
  ]);
  expect(await textOf("before")).toBe("newer");
});

test.each<[string, OriginFault, RegExp]>([
  ["lies about the length", answer(200, { "content-length": "60001" }, 60_001), /lists 60000 bytes and sends 60001/],
  [
    "ends short",
    (_request, response) => {
      response.writeHead(200);
      response.end(BYTES.subarray(0, 7));
      return true;
    },
    /sent 7 of 60000 bytes/,
  ],
  [
    "cuts the connection",
    (_request, response) => {
      response.writeHead(200, { "content-length": "60000" });
      response.write(BYTES.subarray(0, 7));
      setTimeout(() => response.destroy(), 20);
      return true;
    },
    /./,
  ],
  ["sends other bytes", answer(200, { "content-length": "60000" }, 60_000), /MD5/],
  [
    "answers with a page",
    answer(200, { "content-type": "text/html", "content-length": "20" }, 20),
    /lists 60000 bytes and sends 20/,
  ],
  ["fails", answer(500, {}, 0), /500/],
  [
    "hangs",
    (_request, response) => {
      response.writeHead(200, { "content-length": "60000" });
      response.write(BYTES.subarray(0, 7));
      return true;
    },
    /./,
  ],
])("adopts nothing from an origin that %s", async (_what, fault, problem) => {
  await world.put("film", BYTES);
  world.fault.answer = fault;
  const { signal } = new AbortController();
  const parts = openParts(world.config, { attempts: 1, idleMs: 400 }, signal);
  const outcomes: AdoptOutcome[] = [];
  const totals = await adoptObjects({ onOutcome: async (outcome) => void outcomes.push(outcome) }, parts);
  parts.origin!.close();
  expect(outcomes).toMatchObject([
    {
      outcome: "failed",
      error: { code: expect.stringMatching(/^(SOURCE_FAILED|READ_TIMEOUT)$/), message: expect.stringMatching(problem) },
    },
  ]);
  expect(totals).toMatchObject({ objects: 1, adopted: 0, failed: 1 });
  expect(world.fault.fired, "the fault fired").toBeGreaterThan(0);
  expect(await allOf(store.list())).toEqual([]);
  world.fault.answer = undefined;
  expect(await adopt(), "the next run").toMatchObject([{ outcome: "adopted" }]);
});

/** Answers with so many bytes that are none of the object's. */
function answer(status: number, headers: Record<string, string>, bytes: number): OriginFault {
  return (_request, response) => {
    response.writeHead(status, headers);
    response.end(Buffer.alloc(bytes, "x"));
    return true;
  };
}

test("continues behind a cursor, keeps to its rate and shard, and needs an origin", async () => {
  for (const name of ["a", "b", "c"]) await world.put(name, BYTES.subarray(0, 20_000));
  const cursor = join(world.folder, "cursor");
  const parts = openParts(world.config, {}, new AbortController().signal);
  const stopped = adoptObjects(
    {
      cursor,
      jobs: 1,
      onOutcome: async ({ key }) => {
        if (key === "b") throw new Error("killed");
      },
    },
    parts,
  );
  await expect(stopped).rejects.toThrow("killed");
  const startMs = performance.now();
  const seen: string[] = [];
  const onOutcome = async ({ key, outcome }: AdoptOutcome): Promise<void> => void seen.push(`${key} ${outcome}`);
  const totals = await adoptObjects({ cursor, rate: 100_000, onOutcome }, parts);
  expect(seen, "b was stored before the run was killed").toEqual(["c adopted"]);
  expect(totals).toMatchObject({ objects: 3, adopted: 2 });
  await world.put("d", BYTES.subarray(0, 20_000));
  await world.put("e", BYTES.subarray(0, 20_000));
  await world.put("f", BYTES.subarray(0, 20_000));
  await adoptObjects({ rate: 100_000, onOutcome }, parts);
  expect(performance.now() - startMs, "60,000 bytes at 100,000 a second, but for the last").toBeGreaterThan(350);
  const other = { ...parts, shard: { index: 1, count: 2 } };
  const halves = await Promise.all([
    adoptObjects({ dryRun: true, onOutcome }, other),
    adoptObjects({ dryRun: true, onOutcome }, { ...parts, shard: { index: 2, count: 2 } }),
  ]);
  expect(halves[0].objects + halves[1].objects).toBe(6);
  await expect(adoptObjects({ onOutcome }, { ...parts, origin: undefined })).rejects.toMatchObject({
    code: "CONFIG_INVALID",
  });
  // A tombstone is all that keeps a removed object from being adopted again.
  const search = { prefix: "", removes: false, forgets: true, olderThanMs: 0, onUpload: async () => {} };
  await expect(collectGarbage(search, parts)).rejects.toMatchObject({ code: "USAGE" });
  parts.origin!.close();
});

test("a key that a killed run has claimed fails, and is not said to be known", async () => {
  await world.put("film", "plain");
  const parts = openParts(world.config, {}, new AbortController().signal);
  const claim = Buffer.from(JSON.stringify({ upload: "killed", copies: 0 }));
  for (const region of parts.stores) {
    await region.put(claimName("film", singleAfter(0)), claim, {
      bytes: claim.length,
      contentType: "application/json",
    });
  }
  expect(await adopt()).toMatchObject([{ key: "film", outcome: "failed", error: { code: "BUSY" } }]);
  await expect(store.get("film")).rejects.toMatchObject({ code: "BUSY" });
  await closeParts(parts);
});

test.each([
  ["is replaced by more bytes", "newer", 2],
  ["is replaced by as many bytes", "new", 2],
  ["is removed", undefined, 2],
  ["does not answer", "old", 1],
])("an object that %s after it was copied is not stored", async (what, content, faults) => {
  await world.put("film", "old");
  const parts = openParts(world.config, { attempts: 1 }, new AbortController().signal);
  world.fault.head = async (_request, response) => {
    if (content === undefined) await world.origin.remove(["film"]);
    else await world.put("film", content);
    // Nothing after the HEAD shows it.
    world.fault.list = answer(403, {}, 0);
    if (what !== "does not answer") return world.fault.fired++ < 0;
    response.writeHead(503).end();
    return true;
  };
  const outcomes: AdoptOutcome[] = [];
  await adoptObjects({ onOutcome: async (outcome) => void outcomes.push(outcome) }, parts);
  expect(outcomes).toMatchObject([{ outcome: "failed" }]);
  expect(world.fault.fired, "the faults fired").toBe(faults);
  expect((await readRecord("film", parts)).record, "nothing is stored").toBe(undefined);
  world.fault.list = undefined;
  world.fault.head = undefined;
  expect(await adopt(), "later").toMatchObject(content === undefined ? [] : [{ outcome: "adopted" }]);
  if (content !== undefined) expect(await textOf("film")).toBe(content);
  await closeParts(parts);
});

test("an object that changes before each commit is a conflict, and nothing is stored", async () => {
  await world.put("film", "old");
  world.fault.head = async () => {
    await world.put("film", `version ${++world.fault.fired}`);
    return false;
  };
  expect(await adopt()).toMatchObject([{ outcome: "failed", error: { code: "REPLACED_MEANWHILE" } }]);
  expect(world.fault.fired, "the fault fired").toBe(3);
  world.fault.head = undefined;
  expect(await allOf(store.list())).toEqual([]);
  expect(await adopt(), "the next run").toMatchObject([{ outcome: "adopted" }]);
  expect(await textOf("film")).toBe("version 3");
});

test("a replacement that a run could not see any more is reported by the next one", async () => {
  await world.put("film", "old");
  await new Promise((resolve) => setTimeout(resolve, 1_100)); // S3 lists times in seconds
  const { config } = world;
  const parts = openParts(config, { attempts: 1 }, new AbortController().signal);
  world.fault.head = async (_request, response) => {
    await world.put("film", "newer");
    world.fault.list = answer(403, {}, 0);
    response.writeHead(200, { etag: `"${createHash("md5").update("old").digest("hex")}"`, "content-length": "3" });
    response.end();
    return true;
  };
  const outcomes: AdoptOutcome[] = [];
  await adoptObjects({ onOutcome: async (outcome) => void outcomes.push(outcome) }, parts);
  expect(outcomes).toMatchObject([{ outcome: "failed" }]);
  expect(world.fault.fired, "both faults fired").toBe(2);
  world.fault.list = undefined;
  world.fault.head = undefined;
  expect(await textOf("film")).toBe("old");
  expect(await adopt(), "later").toMatchObject([{ outcome: "newer" }]);
  await closeParts(parts);
});

test("a list that lacks an object for once removes nothing", async () => {
  await world.put("film", "plain");
  const none =
    "<ListBucketResult><Name>plain</Name><Prefix>film</Prefix><IsTruncated>false</IsTruncated></ListBucketResult>";
  world.fault.answer = async () => {
    world.fault.list = (_request, response) => {
      world.fault.list = undefined;
      response.writeHead(200, { "content-type": "application/xml" });
      response.end(none);
      return true;
    };
    return false;
  };
  expect(await adopt()).toMatchObject([{ outcome: "failed", error: { code: "SOURCE_FAILED" } }]);
  expect(world.fault.fired, "the fault fired").toBe(1);
  expect(await textOf("film")).toBe("plain");
});

test("two runs at once store each object once", async () => {
  for (let at = 0; at < 12; at++) await world.put(`twice/${at}`, `object ${at}`);
  const other = await openDeployment(world.fields);
  const [one, two] = await Promise.all([adopt(), allOf(other.adopt())]);
  other.close();
  const stored = [...one, ...two].filter(({ outcome }) => outcome === "adopted");
  expect([...one, ...two].filter(({ outcome }) => outcome === "failed")).toEqual([]);
  expect(stored.map(({ key }) => key).toSorted()).toEqual(
    Array.from({ length: 12 }, (_, at) => `twice/${at}`).toSorted(),
  );
  expect(await textOf("twice/11")).toBe("object 11");
});

test("a bucket of a region is no origin, and files of its keys are beside the configuration", async () => {
  const bucket = world.config.regions[0]!;
  const own = { ...world.fields, origin: { endpoint: bucket.endpoint, bucket: bucket.bucket } };
  expect(() => configOfFields(own, "test")).toThrow(/bucket of a region/);
  await writeFile(join(world.folder, "wrong"), "[default]\naws_access_key_id = a\naws_secret_access_key = b\n");
  const credentials = { credentialsFile: "wrong", profile: "default" };
  const path = join(world.folder, "agarose.config.json");
  const config = configOfFields({ ...own, origin: { ...world.fields.origin, credentials } }, path);
  const wrong = openOrigin(config, {})!;
  await expect(allOf(wrong.list(""))).rejects.toMatchObject({ code: "CREDENTIALS_REFUSED" });
  wrong.close();
});
