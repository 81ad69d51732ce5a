import { setTimeout as sleep } from "node:timers/promises";
import { chunkName, encodeKey, manifestName } from "@agarose/core/format";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomBytes, REGIONS, startWorld, type TestWorld } from "../../../test/world.ts";

let world: TestWorld;
const content = randomBytes(300_001);

beforeAll(async () => {
  world = await startWorld();
  await world.put("cat.jpg", content);
});
afterAll(() => world.close());

const get = (key: string, init?: RequestInit): Promise<Response> => fetch(`${world.url}/o/${key}`, init);
const bytesOf = async (response: Response): Promise<Uint8Array> => new Uint8Array(await response.arrayBuffer());
const errorOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { code: string } }).error.code;

describe("an object", () => {
  test("of several stripes arrives whole, with its headers", async () => {
    const manifest = await world.put("photos/größe 1.jpg", content);
    const response = await get("photos/gr%C3%B6%C3%9Fe%201.jpg");
    expect(response.status).toBe(200);
    expect(await bytesOf(response)).toEqual(content);
    expect(response.headers.get("content-length")).toBe("300001");
    expect(response.headers.get("etag")).toBe(`"${manifest.version}"`);
    expect(response.headers.get("accept-ranges")).toBe("bytes");
    expect(response.headers.get("x-agarose-read")).toBe("origin");
    expect(response.headers.get("x-agarose-pop")).toBe("fra");
    expect(response.headers.get("server-timing")).toMatch(/(region-r\d);desc="\d x \1";dur=/);
  });

  test.each([
    ["empty", 0],
    ["one byte", 1],
    ["one whole stripe", 64 * 1024],
  ])("that is %s arrives whole", async (name, bytes) => {
    const small = randomBytes(bytes, 7);
    await world.put(name, small);
    const response = await get(encodeURIComponent(name));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-length")).toBe(String(bytes));
    expect(await bytesOf(response)).toEqual(small);
  });

  test("is answered to HEAD with the headers of GET, and no chunk is fetched for it", async () => {
    world.buckets.requests.length = 0;
    const response = await get("cat.jpg", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-length")).toBe("300001");
    expect(response.headers.get("content-type")).toBe("application/octet-stream");
    expect(await bytesOf(response)).toHaveLength(0);
    expect(world.buckets.requests.filter(({ name }) => name.startsWith("chunks/"))).toEqual([]);
  });
});

describe("a Range request", () => {
  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=65530-65545", 65_530, 65_546],
    ["bytes=299990-", 299_990, 300_001],
    ["bytes=-5", 299_996, 300_001],
  ])("for %s gets those bytes", async (range, start, end) => {
    const response = await get("cat.jpg", { headers: { range } });
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/300001`);
    expect(response.headers.get("content-length")).toBe(String(end - start));
    expect(await bytesOf(response)).toEqual(content.subarray(start, end));
  });

  test("asks one bucket for the one shard that has its bytes", async () => {
    world.buckets.requests.length = 0;
    await bytesOf(await get("cat.jpg", { headers: { range: "bytes=150000-150001" } }));
    expect(world.buckets.requests.flatMap(({ range }) => range ?? [])).toEqual(["bytes=32768-49151"]);
  });

  test("that cannot be met gets 416 with the length", async () => {
    const response = await get("cat.jpg", { headers: { range: "bytes=300001-" } });
    expect(response.status).toBe(416);
    expect(response.headers.get("content-range")).toBe("bytes */300001");
    expect(await errorOf(response)).toBe("RANGE_UNSATISFIABLE");
  });
});

describe("a conditional request", () => {
  test("with the current ETag gets 304 without a body", async () => {
    const etag = (await get("cat.jpg", { method: "HEAD" })).headers.get("etag")!;
    const response = await get("cat.jpg", { headers: { "if-none-match": etag } });
    expect(response.status).toBe(304);
    expect(response.headers.get("etag")).toBe(etag);
  });

  test("with another If-Match gets 412", async () => {
    expect((await get("cat.jpg", { headers: { "if-match": '"other"' } })).status).toBe(412);
  });

  test("with an outdated If-Range gets the whole object", async () => {
    const response = await get("cat.jpg", { headers: { range: "bytes=0-9", "if-range": '"other"' } });
    expect(response.status).toBe(200);
    expect(await bytesOf(response)).toHaveLength(300_001);
  });
});

describe("other origins", () => {
  test("may read an object and the headers that describe the read", async () => {
    const response = await get("cat.jpg", { headers: { origin: "https://app.example" } });
    await response.body?.cancel();
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    const exposed = response.headers.get("access-control-expose-headers")!.split(/, */);
    expect(exposed).toEqual(
      expect.arrayContaining(["etag", "content-range", "server-timing", "x-agarose-read", "x-agarose-pop"]),
    );
    expect(response.headers.get("timing-allow-origin")).toBe("*");
  });

  test("see the code of an error too", async () => {
    const response = await get("nothing", { headers: { origin: "https://app.example" } });
    expect(response.status).toBe(404);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("may ask for ranges", async () => {
    const response = await get("cat.jpg", {
      method: "OPTIONS",
      headers: { origin: "https://app.example", "access-control-request-headers": "range" },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-headers")).toContain("range");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });
});

test.each(["a/../b", "../a", "/a", "a//b", "a/./b/", "~{_}"])(
  "the key %j is read under its encoded path",
  async (key) => {
    await world.put(key, new TextEncoder().encode(key));
    const response = await get(encodeKey(key));
    expect([response.status, await response.text()]).toEqual([200, key]);
  },
);

describe("bad requests", () => {
  test.each([
    ["nothing-here", 404, "OBJECT_NOT_FOUND"],
    ["", 400, "KEY_INVALID"],
    ["a%00b", 400, "KEY_INVALID"],
    ["c%2F..%2Fd", 404, "OBJECT_NOT_FOUND"],
    ["%FF", 400, "KEY_INVALID"],
    ["x".repeat(961), 400, "KEY_TOO_LONG"],
  ])("for the key %j get %i %s", async (key, status, code) => {
    const response = await get(key);
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await errorOf(response)).toBe(code);
  });

  test("to unknown paths and methods get 404", async () => {
    expect((await fetch(`${world.url}/elsewhere`)).status).toBe(404);
    expect((await get("cat.jpg", { method: "PUT", body: "x" })).status).toBe(404);
  });
});

describe("a manifest", () => {
  test.each([
    [
      "truncated",
      (manifest: object) => new TextEncoder().encode(JSON.stringify(manifest).slice(0, 100)),
      "MANIFEST_INVALID",
    ],
    ["too large", () => new Uint8Array(8 * 1024 * 1024 + 1), "MANIFEST_TOO_LARGE"],
    ["of a newer format", (manifest: object) => ({ ...manifest, agarose: 3 }), "MANIFEST_NEWER"],
    [
      "of a foreign region",
      (manifest: object) => ({ ...manifest, placement: REGIONS.map(() => "evil") }),
      "REGION_UNKNOWN",
    ],
  ])("that is %s is refused", async (name, edit, code) => {
    await world.put(name, randomBytes(100), { edit });
    const response = await get(encodeURIComponent(name));
    expect(response.status).toBe(502);
    expect(await errorOf(response)).toBe(code);
  });
});

describe("regions in trouble", () => {
  const spoiled = {
    "wrong lengths": (body: Uint8Array) => body.subarray(1),
    "wrong bytes": (body: Uint8Array) => body.map((byte) => byte ^ 1),
  };

  test.each(Object.entries(spoiled))("that deliver %s are replaced by others", async (_name, spoil) => {
    world.buckets.fired.clear();
    // Three of the first chunks: at least one is always among the k + delta that a read starts with.
    world.buckets.faults.set("r0", { spoil }).set("r1", { spoil });
    const response = await get("cat.jpg");
    expect(await bytesOf(response)).toEqual(content);
    world.buckets.faults.clear();
    expect((world.buckets.fired.get("r0") ?? 0) + (world.buckets.fired.get("r1") ?? 0)).toBeGreaterThan(0);
  });

  test("that lose chunks and do not answer leave the reader that reason, not that of a second look", async () => {
    await world.put("lost", content);
    expect((await bytesOf(await get("lost"))).length).toBe(content.length);
    for (const name of world.buckets.objects.keys()) {
      if (name.startsWith("r0/") && name.includes("lost")) world.buckets.objects.delete(name);
    }
    world.buckets.fired.clear();
    for (const region of REGIONS.slice(1)) world.buckets.faults.set(region, { down: true });
    const response = await get("lost");
    world.buckets.faults.clear();
    expect(await errorOf(response)).toBe("NOT_ENOUGH_CHUNKS");
    expect(world.buckets.fired.size).toBe(REGIONS.length - 1);
  });

  test("that are as many as the layout survives do not hinder a read", async () => {
    // The others answer only after one in trouble was asked for a chunk, so that the first stripe meets it.
    const met = Promise.withResolvers<void>();
    for (const region of REGIONS) world.buckets.faults.set(region, { chunksAfter: met.promise });
    world.buckets.faults.set("r0", { down: true }).set("r3", { down: true });
    world.buckets.requests.length = 0;
    const answer = get("cat.jpg");
    const inTrouble = () =>
      world.buckets.requests.filter(({ region, name }) => /r0|r3/.test(region) && name.startsWith("chunks/"));
    await expect.poll(inTrouble).not.toEqual([]);
    await sleep(200);
    met.resolve();
    const response = await answer;
    expect(await bytesOf(response)).toEqual(content);
    expect(response.headers.get("x-agarose-read")).toBe("degraded");
    world.buckets.faults.clear();
  });

  test("that are one more lead to an error status", async () => {
    for (const region of ["r0", "r2", "r3"]) world.buckets.faults.set(region, { down: true });
    const response = await get("cat.jpg");
    world.buckets.faults.clear();
    expect(response.status).toBe(502);
    expect(await errorOf(response)).toBe("NOT_ENOUGH_CHUNKS");
  });

  test("that redirect are not followed", async () => {
    world.buckets.fired.clear();
    await world.put("never-read.jpg", content);
    for (const region of REGIONS) world.buckets.faults.set(region, { redirect: `${world.buckets.url}/moved` });
    const response = await get("never-read.jpg");
    world.buckets.faults.clear();
    expect(response.status).toBe(502);
    expect(await errorOf(response)).toBe("NO_SOURCE");
    expect(world.buckets.fired.get("r0")).toBeGreaterThan(0);
    expect(world.buckets.requests.filter(({ region }) => region === "moved")).toEqual([]);
  });
});

test("a read has six requests at a time wait for headers, not more", async () => {
  // One stripe, because what the next one asks for overlaps with what this one aborts, as a server sees it.
  await world.put("wide", content, { k: 10, m: 5, stripeBytes: 512 * 1024 });
  const held = Promise.withResolvers<void>();
  for (const region of REGIONS) world.buckets.faults.set(region, { chunksAfter: held.promise });
  world.buckets.mostWaiting = 0;
  const answer = get("wide");
  await expect.poll(() => world.buckets.mostWaiting).toBe(6);
  // A seventh would come now.
  await sleep(200);
  world.buckets.faults.clear();
  held.resolve();
  expect(await bytesOf(await answer)).toEqual(content);
  expect(world.buckets.mostWaiting).toBe(6);
});

test("a read that fails half-way is cut off, never short", async () => {
  const { upload } = await world.put("broken", randomBytes(900_000, 3));
  // Chunks that end in the middle: the later stripes cannot be read from three of six regions.
  for (const chunk of [0, 1, 2]) {
    const name = `${REGIONS[chunk]}/${chunkName("broken", upload, chunk)}`;
    world.buckets.objects.set(name, world.buckets.objects.get(name)!.subarray(0, 200_000));
  }
  const response = await get("broken");
  expect(response.status).toBe(200);
  await expect(bytesOf(response)).rejects.toThrow();
});

test("a key whose old version is gone is read by the manifest that the buckets have now", async () => {
  const other = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
  try {
    // An isolate remembers smaller ones whole.
    const old = await other.put("page", randomBytes(140_000, 1));
    await bytesOf(await fetch(`${other.url}/o/page`));
    const renewed = randomBytes(150_000, 2);
    await other.put("page", renewed);
    const before = await fetch(`${other.url}/o/page`, { method: "HEAD" });
    expect(before.headers.get("etag"), "the manifest in memory is the old one").toBe(`"${old.version}"`);
    for (let chunk = 0; chunk < 6; chunk++) {
      expect(other.buckets.objects.delete(`${REGIONS[chunk]}/${chunkName("page", old.upload, chunk)}`)).toBe(true);
    }
    const response = await fetch(`${other.url}/o/page`);
    expect(response.status).toBe(200);
    expect(await bytesOf(response)).toEqual(renewed);
  } finally {
    await other.close();
  }
});

test("a small object that was read costs no request again, and neither does any range of it", async () => {
  const small = randomBytes(18_000, 8);
  await world.put("small", small);
  expect(await bytesOf(await get("small"))).toEqual(small);
  world.buckets.requests.length = 0;
  expect(await bytesOf(await get("small"))).toEqual(small);
  const part = await fetch(`${world.url}/o/small`, { headers: { range: "bytes=17000-" } });
  expect([part.status, await bytesOf(part)]).toEqual([206, small.subarray(17_000)]);
  expect(world.buckets.requests.filter(({ name }) => name.startsWith("chunks/"))).toEqual([]);
});

test("many first requests for one key share one lookup of its manifest, and the majority that confirms it", async () => {
  const other = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
  try {
    await other.put("page", content);
    const responses = await Promise.all(Array.from({ length: 20 }, () => fetch(`${other.url}/o/page`)));
    for (const response of responses) expect(await bytesOf(response)).toEqual(content);
    const lookups = other.buckets.requests.filter(({ name }) => name === manifestName("page"));
    // Four of six regions are a majority, and a late answer makes either ask one more.
    expect(lookups.length).toBeLessThanOrEqual(1 + 4 + 2);
  } finally {
    await other.close();
  }
});
