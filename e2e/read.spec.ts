import { openApp, openControlledApp, read, sha256, takeServiceWorker } from "./fixtures/app.ts";
import { expect, test } from "./fixtures/test.ts";

/** Of a full stripe of 4 MiB, coded 9+3. */
const SHARD_BYTES = Math.ceil((4 * 1024 * 1024) / 9);

for (const [name, bytes] of [
  ["an empty object", 0],
  ["a 1-byte object", 1],
  ["a 1 MB object", 1_000_000],
  ["a 40 MB object", 40_000_000],
] as const) {
  test(`the service worker reads ${name} byte for byte`, async ({ context, world, putRandom }) => {
    const content = await putRandom(`sizes/${bytes}`, bytes);
    const page = await openControlledApp(context, world);
    const answer = await read(page, `sizes/${bytes}`);
    expect(answer).toMatchObject({ status: 200, bytes, sha256: sha256(content) });
    expect(answer.headers["x-agarose-read"]).toBe(bytes === 0 ? "edge" : "origin");
  });
}

test("before a service worker controls the page, the edge decodes the same URL", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("first/load", 300_000);
  const page = await openApp(context, world);
  const answer = await read(page, "first/load");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(answer.headers["x-agarose-pop"]).toBe("fra");
  await takeServiceWorker(page);
  const second = await read(page, "first/load");
  expect(second).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(second.headers["x-agarose-pop"]).toBeUndefined();
});

test("a hard reload, which bypasses the service worker, still reads", async ({ context, world, putRandom }) => {
  const content = await putRandom("hard/reload", 300_000);
  const page = await openControlledApp(context, world);
  const session = await context.newCDPSession(page);
  const loaded = page.waitForEvent("load");
  await session.send("Page.reload", { ignoreCache: true });
  await loaded;
  expect(await page.evaluate(() => navigator.serviceWorker.controller)).toBeNull();
  expect(await read(page, "hard/reload")).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("the classic build works as the module does", async ({ context, world, putRandom }) => {
  const content = await putRandom("classic", 300_000);
  const page = await openApp(context, world);
  await takeServiceWorker(page, "classic");
  expect(await read(page, "classic")).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("a range reads only the stripes it touches", async ({ context, world, putRandom }) => {
  const content = await putRandom("range", 20_000_000);
  const page = await openControlledApp(context, world);
  const start = 9_000_000;
  const answer = await read(page, "range", { range: `bytes=${start}-${start + 999_999}` });
  expect(answer).toMatchObject({ status: 206, sha256: sha256(content.subarray(start, start + 1_000_000)) });
  expect(answer.headers["content-range"]).toBe(`bytes ${start}-${start + 999_999}/20000000`);
  const gets = (await world.log()).filter(({ method, path }) => method === "GET" && path.includes("/chunks/"));
  expect(new Set(gets.map(({ range }) => range)), "the shards of stripe 2 and no others").toEqual(
    new Set([`bytes=${2 * SHARD_BYTES}-${3 * SHARD_BYTES - 1}`]),
  );
});

test("a range outside the object is 416 with the object's length", async ({ context, world, putRandom }) => {
  await putRandom("short", 1000);
  const page = await openControlledApp(context, world);
  const answer = await read(page, "short", { range: "bytes=1000-" });
  expect(answer.status).toBe(416);
  expect(answer.headers["content-range"]).toBe("bytes */1000");
  expect(answer.text).toContain("RANGE_UNSATISFIABLE");
});

test("an unknown key is 404 with a code", async ({ context, world }) => {
  const page = await openControlledApp(context, world);
  const answer = await read(page, "no/such/object");
  expect(answer.status).toBe(404);
  expect(answer.text).toContain("OBJECT_NOT_FOUND");
});

test("a key of every Unicode class reads back", async ({ context, world, putRandom }) => {
  const key = "ключ/å´ 漢字 😀/a+b%2F&c=d;e@f!'(g)*~#?.bin";
  const content = await putRandom(key, 5000);
  const page = await openControlledApp(context, world);
  const path = key.split("/").map(encodeURIComponent).join("/");
  expect(await read(page, path)).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("requests outside the prefix are left alone", async ({ context, world }) => {
  const page = await openControlledApp(context, world);
  const answer = await page.evaluate(async () => {
    const response = await fetch("/agarose.json");
    return { status: response.status, read: response.headers.get("x-agarose-read") };
  });
  expect(answer).toEqual({ status: 200, read: null });
});
