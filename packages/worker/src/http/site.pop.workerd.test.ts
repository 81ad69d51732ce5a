/** A site below a prefix, in both runtimes. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

const READ_TOKEN = "a token for all readers";
const SIGNING_KEY = "a key that signs URLs";
const bearer = { authorization: `Bearer ${READ_TOKEN}` };
const MISSING = Buffer.from("<h1>not here</h1>".repeat(200));
let world: TestWorld;

const html = { "cache-control": "public, max-age=31536000, immutable" };

async function put(target: TestWorld, key: string, content: string | Uint8Array, headers = {}): Promise<void> {
  const edit = <M extends object>(manifest: M): M => ({
    ...manifest,
    contentType: "text/html; charset=utf-8",
    headers,
  });
  await target.put(key, Buffer.from(content), { edit });
}

beforeAll(async () => {
  const site = { prefix: "web/", notFound: "404.html" };
  world = await startWorld({
    SITE: JSON.stringify(site),
    PRIVATE_PREFIXES: '["web/members/"]',
    READ_TOKEN,
    SIGNING_KEY,
  });
  await put(world, "web/index.html", "top");
  await put(world, "web/docs/index.html", "docs");
  await put(world, "web/größe/index.html", "size");
  await put(world, "web/404.html", MISSING, html);
  await put(world, "web/own.html", "own", { "content-security-policy": "default-src 'self'" });
  await put(world, "web/members/index.html", "members");
  await put(world, "other/index.html", "other");
});
afterAll(() => world.close());

const get = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${world.url}/o/${path}`, { redirect: "manual", ...init });

test.each([
  ["web/", "top"],
  ["web/docs/", "docs"],
  ["web/docs/?v=1", "docs"],
  ["web/docs/index.html", "docs"],
  ["web/gr%C3%B6%C3%9Fe/", "size"],
])("/o/%s answers with the page of the folder", async (path, expected) => {
  const answer = await get(path);
  expect([answer.status, await answer.text()]).toEqual([200, expected]);
  const etag = answer.headers.get("etag")!;
  expect((await get(path, { headers: { "if-none-match": etag } })).status).toBe(304);
  expect((await get(path, { method: "HEAD" })).headers.get("etag")).toBe(etag);
  expect((await get(path, { headers: { range: "bytes=0-1" } })).status).toBe(206);
});

test.each(["web", "web/docs", "web/docs?v=1&w=%2F", "web/gr%C3%B6%C3%9Fe"])(
  "/o/%s is a folder without its slash, so that links in its page would lead elsewhere",
  async (path) => {
    const answer = await get(path);
    const [folder, query] = path.split("?");
    expect([answer.status, answer.headers.get("location")]).toEqual([302, `/o/${folder}/${query ? `?${query}` : ""}`]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const followed = await get(path, { redirect: "follow" });
    expect(followed.status).toBe(200);
    await followed.body?.cancel();
  },
);

describe("what is not there", () => {
  test.each(["web/none", "web/none/", "web/docs/none.js", "web/docs/index.html/x"])("/o/%s is 404", async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(Buffer.from(await answer.arrayBuffer()).equals(MISSING)).toBe(true);
    // The page has its own rule when it is asked for by its name, and must not be kept under another one.
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("etag")).toBeNull();
    expect((await get("web/404.html")).headers.get("cache-control")).toBe(html["cache-control"]);
  });

  test("is 404 whatever conditions and ranges a client sends, and without a body to HEAD", async () => {
    const { headers } = await get("web/404.html");
    for (const sent of [
      { "if-none-match": headers.get("etag")! },
      { "if-none-match": "*" },
      { "if-match": '"other"' },
      { range: "bytes=0-1" },
      { range: "bytes=99999999-" },
    ]) {
      const answer = await get("web/none", { headers: sent });
      expect([answer.status, (await answer.arrayBuffer()).byteLength], JSON.stringify(sent)).toEqual([
        404,
        MISSING.length,
      ]);
    }
    const head = await get("web/none", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([404, ""]);
  });

  test.each(["other/", "other", "other/none", "webs/none"])("/o/%s beside the site is an error", async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/json"]);
  });
});

test("pages of the site may run scripts, under their own policy if they have one, and no others may", async () => {
  expect((await get("web/")).headers.get("content-security-policy")).toBeNull();
  expect((await get("web/own.html")).headers.get("content-security-policy")).toBe("default-src 'self'");
  expect((await get("other/index.html")).headers.get("content-security-policy")).toContain("sandbox");
});

test("a private folder is closed, with and without its slash, and tells nobody whether it is there", async () => {
  for (const path of ["web/members/", "web/members/index.html", "web/members/none"]) {
    expect((await get(path)).status, path).toBe(403);
  }
  expect((await get("web/members")).status).toBe(404);
  expect((await get("web/members", { headers: bearer })).status).toBe(302);
  const opened = await get("web/members/", { headers: bearer });
  expect([await opened.text(), opened.headers.get("cache-control")]).toEqual(["members", "private, no-cache"]);
  expect((await get("web/members/none", { headers: bearer })).status).toBe(404);
});

test("a link to a folder opens its pages, and nothing that they load without the query of the link", async () => {
  const expires = Math.floor(Date.now() / 1000) + 60;
  const text = `agarose-read-prefix\nweb/members/\n${expires}`;
  const signature = createHmac("sha256", SIGNING_KEY).update(text).digest("hex");
  const link = `?prefix=web%2Fmembers%2F&expires=${expires}&signature=${signature}`;
  const page = await get(`web/members/${link}`);
  expect([page.status, await page.text()]).toEqual([200, "members"]);
  const bare = await get(`web/members${link}`);
  expect([bare.status, bare.headers.get("location")]).toEqual([302, `/o/web/members/${link}`]);
  const relative = new URL("index.html", `${world.url}/o/web/members/${link}`);
  expect((await fetch(relative)).status).toBe(403);
  relative.search = link;
  expect((await fetch(relative)).status).toBe(200);
});

test("an outage is an error, and never the page for what is not there", async () => {
  const cut = await startWorld({ SITE: JSON.stringify({ notFound: "404.html" }) });
  try {
    await put(cut, "404.html", MISSING);
    expect((await fetch(`${cut.url}/o/404.html`)).status).toBe(200);
    for (const region of REGIONS) cut.buckets.faults.set(region, { status: 503 });
    const answer = await fetch(`${cut.url}/o/unseen`);
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(cut.buckets.fired.size).toBe(REGIONS.length);
  } finally {
    await cut.close();
  }
});

test("without SITE, and with one that is no site, nothing of this happens", async () => {
  const plain = await startWorld();
  try {
    await put(plain, "index.html", randomBytes(10));
    await put(plain, "404.html", MISSING);
    const statuses = await Promise.all(
      ["", "none"].map(async (path) => (await fetch(`${plain.url}/o/${path}`)).status),
    );
    expect(statuses).toEqual([400, 404]);
    expect((await fetch(`${plain.url}/o/index.html`)).headers.get("content-security-policy")).toContain("sandbox");
  } finally {
    await plain.close();
  }
  const wrong = await startWorld({ SITE: '{"index": "a/b.html"}' });
  try {
    const answer = await fetch(`${wrong.url}/o/x`);
    expect(answer.headers.get("x-agarose-error")).toBe("CONFIG_INVALID");
    expect(await answer.text()).toContain("SITE");
  } finally {
    await wrong.close();
  }
});
