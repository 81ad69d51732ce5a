import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  ADMIN_TOKEN,
  POP,
  putCached,
  randomBytes,
  readFromCache,
  readObject,
  startWorld,
  type TestWorld,
} from "../../test/world.ts";

let world: TestWorld;
const start = async (): Promise<void> => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
};

const post = (body: string, token = ADMIN_TOKEN, to = world): Promise<Response> =>
  fetch(`${to.url}/v1/purge`, { method: "POST", body, headers: { authorization: `Bearer ${token}` } });

interface Report {
  epoch: number;
  objects: number;
  stripes: number;
  left: number;
  errors: string[];
}

async function purge(request: object, to = world): Promise<Report> {
  const response = await post(JSON.stringify(request), ADMIN_TOKEN, to);
  expect(response.status).toBe(200);
  return (await response.json()) as Report;
}

const CONTENTS = {
  "photos/a": randomBytes(200_000, 1),
  "photos/b": randomBytes(200_000, 2),
  "videos/a": randomBytes(200_000, 3),
};

/** Three objects of four stripes, all cached; their versions by key. */
async function putThree(): Promise<Map<string, string>> {
  const versions = new Map<string, string>();
  for (const [key, content] of Object.entries(CONTENTS)) {
    versions.set(key, (await world.put(key, content)).version);
    await readObject(world, key);
  }
  await world.pops.cron(POP);
  expect((await world.status()).cache.objects).toHaveLength(3);
  return versions;
}

const cachedKeys = async (): Promise<string[]> => (await world.status()).cache.objects.map(({ key }) => key).toSorted();

describe("a purge", () => {
  beforeEach(start);
  afterEach(() => world.close());

  test("of a key removes its chunks from KV and from every promise, and leaves the others", async () => {
    const versions = await putThree();
    const before = (await world.status()).epoch;
    expect(await purge({ keys: ["photos/a"] })).toEqual({
      epoch: before + 1,
      objects: 1,
      stripes: 4,
      left: 0,
      errors: [],
    });
    expect(await cachedKeys()).toEqual(["photos/b", "videos/a"]);
    const kv = await world.kv();
    expect(await kv.get(`chunks:${versions.get("photos/a")}:0`)).toBeNull();
    expect(await kv.get(`chunks:${versions.get("photos/b")}:0`)).not.toBeNull();
    const published = JSON.parse(String(await kv.get("configuration"))) as { epoch: number; cached: object };
    expect(published.epoch).toBe(before + 1);
    expect(Object.keys(published.cached)).not.toContain(versions.get("photos/a"));
    expect((await readObject(world, "photos/a")).kind).toBe("origin");
    await readFromCache(world, "photos/b", CONTENTS["photos/b"]);
  });

  test("of a prefix removes what begins so, and the empty one everything", async () => {
    await putThree();
    expect(await purge({ prefix: "photos/" })).toMatchObject({ objects: 2, stripes: 8 });
    expect(await cachedKeys()).toEqual(["videos/a"]);
    expect(await purge({ prefix: "" })).toMatchObject({ objects: 1, stripes: 4 });
    expect(await cachedKeys()).toEqual([]);
  });

  test("makes a key name its new version at once", async () => {
    const old = await world.put("page", randomBytes(1_000, 1));
    await readObject(world, "page");
    const { version } = await world.put("page", randomBytes(1_000, 2));
    const etag = async (): Promise<string | null> =>
      (await fetch(`${world.url}/o/page`, { method: "HEAD" })).headers.get("etag");
    expect(await etag()).toBe(`"${old.version}"`);
    expect(await purge({ keys: ["page"] })).toMatchObject({ objects: 0, errors: [] });
    expect(await etag()).toBe(`"${version}"`);
  });

  test("of a popular object lasts until a period caches it again", async () => {
    const content = randomBytes(100_000);
    await putCached(world, "page", content);
    await purge({ keys: ["page"] });
    expect(await readObject(world, "page")).toEqual({ kind: "origin", bytes: content });
    await world.pops.cron(POP);
    await readFromCache(world, "page", content);
  });

  test("at the same time as a period leaves nothing of the object, or all of it from afterwards", async () => {
    const content = randomBytes(200_000);
    const version = await putCached(world, "page", content);
    const [{ errors }] = await Promise.all([purge({ keys: ["page"] }), world.pops.cron(POP)]);
    expect(errors).toEqual([]);
    // The period may have begun first, and the purge waited for it. Or it began last, and it caches again what is as
    // popular as before.
    const { objects } = (await world.status()).cache;
    const stored = (await (await world.kv()).get(`chunks:${version}:0`)) !== null;
    expect(objects.map(({ chunks, done }) => [chunks.length, done])).toEqual(stored ? [[4, 4]] : []);
    expect((await readObject(world, "page")).bytes).toEqual(content);
  });

  test("within a second of a period's publication waits for KV's limit of one write a second", async () => {
    const limited = await startWorld({}, { limited: true });
    try {
      await putCached(limited, "page", randomBytes(100_000));
      expect(await purge({ keys: ["page"] }, limited)).toMatchObject({ epoch: 2, stripes: 2, left: 0, errors: [] });
      const { epoch } = JSON.parse(String(await (await limited.kv()).get("configuration"))) as { epoch: number };
      expect(epoch).toBe(2);
    } finally {
      await limited.close();
    }
  });
});

describe("the route", () => {
  beforeAll(start);
  afterAll(() => world.close());

  test("is closed without the admin token", async () => {
    expect((await post('{"prefix":""}', "wrong")).status).toBe(401);
    expect((await fetch(`${world.url}/v1/purge`, { method: "POST", body: '{"prefix":""}' })).status).toBe(401);
  });

  test.each([
    "",
    "{",
    "null",
    "{}",
    '{"keys":[]}',
    '{"keys":"a"}',
    '{"keys":[1]}',
    '{"prefix":1}',
    `{"keys":[${'"a",'.repeat(100)}"a"]}`,
  ])("refuses %s", async (body) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(response.headers.get("x-agarose-error")).toBe("REQUEST_INVALID");
  });
});
