import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADMIN_TOKEN, randomBytes, readBundle, startWorld, type TestWorld } from "../../test/world.ts";

const READ_TOKEN = "a token for all readers";
const SIGNING_KEY = "a key that signs URLs";
const content = randomBytes(10_000);

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    PRIVATE_PREFIXES: '["members/"]',
    PUBLIC_PREFIXES: '["members/free/"]',
    READ_TOKEN,
    SIGNING_KEY,
  });
  for (const key of ["open", "members/größe", "members/free/a"]) {
    await world.put(key, content, {
      edit: (manifest) => ({ ...manifest, headers: { "cache-control": "public, max-age=3600" } }),
    });
  }
});
afterAll(() => world.close());

const sign = (key: string, seconds = 60, signingKey = SIGNING_KEY): string => {
  const expires = Math.floor(Date.now() / 1000) + seconds;
  const signature = createHmac("sha256", signingKey).update(`agarose-read\n${key}\n${expires}`).digest("hex");
  return `expires=${expires}&signature=${signature}`;
};

const signPrefix = (prefix: string): string => {
  const expires = Math.floor(Date.now() / 1000) + 60;
  const signature = createHmac("sha256", SIGNING_KEY)
    .update(`agarose-read-prefix\n${prefix}\n${expires}`)
    .digest("hex");
  return `${new URLSearchParams({ prefix })}&expires=${expires}&signature=${signature}`;
};

const bearer = { authorization: `Bearer ${READ_TOKEN}` };
const PRIVATE = encodeURI("members/größe");

describe.each(["/o/", "/v1/read/"])("%s", (route) => {
  const get = (path: string, init?: RequestInit): Promise<Response> => fetch(`${world.url}${route}${path}`, init);

  test("serves public keys to anyone, and private ones only with a token or signature", async () => {
    expect((await get("open")).status).toBe(200);
    expect((await get("members/free/a")).status).toBe(200);
    for (const path of [PRIVATE, `%6Dembers/${encodeURI("größe")}`, "members/nothing"]) {
      const response = await get(path);
      expect(response.status).toBe(403);
      expect(response.headers.get("x-agarose-error")).toBe("FORBIDDEN");
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  test("serves a private key to the token", async () => {
    expect((await get(PRIVATE, { headers: bearer })).status).toBe(200);
    expect((await get(PRIVATE, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).status).toBe(403);
  });

  test("serves a private key to its signed URL, until that has expired", async () => {
    expect((await get(`${PRIVATE}?${sign("members/größe")}`)).status).toBe(200);
    expect((await get(`${PRIVATE}?${sign("members/größe", -30)}`)).status).toBe(200);
    expect((await get(`${PRIVATE}?${sign("members/größe", -120)}`)).status).toBe(403);
    expect((await get(`${PRIVATE}?${sign("members/free/a")}`)).status).toBe(403);
    expect((await get(`${PRIVATE}?${sign("members/größe", 60, "another")}`)).status).toBe(403);
  });
});

test("a link to a prefix opens what is below it, by every route that reads, and for no shared cache", async () => {
  const link = signPrefix("members/");
  for (const route of ["/o/", "/v1/read/"]) {
    expect((await fetch(`${world.url}${route}${PRIVATE}?${link}`)).status).toBe(200);
    expect((await fetch(`${world.url}${route}members/none?${link}`)).status).toBe(404);
    expect((await fetch(`${world.url}${route}${PRIVATE}?${signPrefix("members/g/")}`)).status).toBe(403);
    expect((await fetch(`${world.url}${route}${PRIVATE}?${signPrefix("members/gr")}`)).status).toBe(403);
  }
  const answer = await fetch(`${world.url}/o/${PRIVATE}?${link}`);
  expect(answer.headers.get("cache-control")).toBe("private, no-cache");
  expect((await answer.arrayBuffer()).byteLength).toBe(content.length);
  const plans = `${world.url}/v1/plans?${new URLSearchParams({ key: "members/größe" })}`;
  const opened = await (await fetch(`${plans}&${link}`)).text();
  expect(opened).toContain("members/größe");
  expect(await (await fetch(plans)).text()).not.toContain("members/größe");
});

test("a refused request reads nothing and counts for nothing", async () => {
  world.buckets.requests.length = 0;
  expect((await fetch(`${world.url}/o/members/unseen`)).status).toBe(403);
  expect((await fetch(`${world.url}/o/members/unseen`, { method: "HEAD" })).status).toBe(403);
  expect(world.buckets.requests).toEqual([]);
});

test("a private object is for no shared cache, whatever its own headers say", async () => {
  const open = await fetch(`${world.url}/o/open`);
  expect(open.headers.get("cache-control")).toBe("public, max-age=3600");
  const closed = await fetch(`${world.url}/o/${PRIVATE}`, { headers: bearer });
  expect(closed.headers.get("cache-control")).toBe("private, no-cache");
  expect(Buffer.compare(new Uint8Array(await closed.arrayBuffer()), content)).toBe(0);
  const etag = closed.headers.get("etag")!;
  const unchanged = await fetch(`${world.url}/o/${PRIVATE}`, { headers: { ...bearer, "if-none-match": etag } });
  expect([unchanged.status, unchanged.headers.get("cache-control")]).toEqual([304, "private, no-cache"]);
});

test("a signed bundle can be asked for in parts", async () => {
  const { plan } = await readBundle(
    `${world.url}/v1/read/${PRIVATE}?${sign("members/größe")}&from=0&to=0`,
    "members/größe",
  );
  expect(plan.manifest?.key).toBe("members/größe");
});

test.each([
  { PRIVATE_PREFIXES: "members/" },
  { PRIVATE_PREFIXES: "[1]" },
  { PUBLIC_PREFIXES: '{"a":1}' },
  { SIGNING_KEY: "short" },
  { READ_TOKEN: "short" },
])("a wrong variable closes the PoP: %j", async (vars) => {
  const other = await startWorld(vars as Record<string, string>);
  try {
    const response = await fetch(`${other.url}/o/open`);
    expect(response.status).toBe(500);
    expect(response.headers.get("x-agarose-error")).toBe("CONFIG_INVALID");
    expect(await response.text()).toContain(Object.keys(vars)[0]);
  } finally {
    await other.close();
  }
});

test.each(["/metrics", "/v1/status", "/healthz", "/nothing", "/o/nothing", "/v1/read/open"])(
  "no cache in front of the PoP may keep the answer of %s",
  async (path) => {
    const response = await fetch(`${world.url}${path}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    await response.body?.cancel();
    expect(response.headers.get("cache-control")).toBe("no-store");
  },
);
