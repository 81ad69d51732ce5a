/** Keys that only the origin has, in both runtimes: from a server of files that is sound, and from one that lies. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeManifest, manifestName, sealTombstone } from "@agarose/core/format";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isOnNode } from "../../test/node-pops.ts";
import { ADMIN_TOKEN, randomBytes, REGIONS, startWorld, type TestWorld } from "../../test/world.ts";

const READ_TOKEN = "a token for all readers";
const SMALL = randomBytes(100_000, 1);
const LARGE = randomBytes(5_000_000, 2);

let world: TestWorld;
let server: Server;
let files: Map<string, Uint8Array>;
/** Methods and paths that were asked for, with the range if there was one. */
let asked: string[];
let fault: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
let fired: number;

const etagOf = (bytes: Uint8Array): string => `"${createHash("sha256").update(bytes).digest("hex").slice(0, 20)}"`;

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { method, url = "", headers } = request;
  asked.push([method, url, headers.range].filter(Boolean).join(" "));
  if (fault?.(request, response)) {
    fired++;
    return;
  }
  const bytes = files.get(url);
  if (!bytes) return void response.writeHead(404).end();
  const etag = etagOf(bytes);
  if (headers["if-match"] && headers["if-match"] !== etag) return void response.writeHead(412).end();
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
  const part = start === undefined ? bytes : bytes.subarray(Number(start), Number(end) + 1);
  response.writeHead(start === undefined ? 200 : 206, {
    etag,
    "content-type": "text/html",
    "content-length": part.length,
    "cache-control": "max-age=60",
    "set-cookie": "secret=1",
    ...(start !== undefined && { "content-range": `bytes ${start}-${end}/${bytes.length}` }),
  });
  response.end(method === "HEAD" ? undefined : part);
}

beforeAll(async () => {
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/files`;
  world = await startWorld({
    ORIGIN: JSON.stringify(origin),
    MANIFEST_TTL_SECONDS: "60",
    PRIVATE_PREFIXES: '["members/"]',
    READ_TOKEN,
  });
});
afterAll(async () => {
  await world.close();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  files = new Map();
  asked = [];
  fault = undefined;
  fired = 0;
});

const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(`${world.url}${path}`, init);
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

test("a small object is read once, and answers ranges and conditions from the copy", async () => {
  files.set("/files/a/K%C3%A4se%20%26%20co", SMALL);
  const path = "/o/a/K%C3%A4se%20%26%20co";
  const whole = await get(path);
  expect([whole.status, whole.headers.get("etag"), whole.headers.get("x-agarose-read")]).toEqual([
    200,
    etagOf(SMALL),
    "plain",
  ]);
  expect(whole.headers.get("content-security-policy"), "a document of a stranger").toContain("sandbox");
  expect(whole.headers.get("set-cookie")).toBeNull();
  expect((await bytesOf(whole)).equals(SMALL)).toBe(true);
  // The copy is written behind the answer.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const part = await get(path, { headers: { range: "bytes=10-19" } });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 10-19/100000"]);
  expect((await bytesOf(part)).equals(SMALL.subarray(10, 20))).toBe(true);
  expect((await get(path, { headers: { "if-none-match": etagOf(SMALL) } })).status).toBe(304);
  expect((await get(path, { method: "HEAD" })).headers.get("content-length")).toBe("100000");
  expect((await get(path, { headers: { range: "bytes=100000-" } })).status).toBe(416);
  expect(new Set(asked)).toEqual(new Set(["GET /files/a/K%C3%A4se%20%26%20co"]));
});

test("a large object is passed on, and of a range only its bytes come", async () => {
  files.set("/files/film", LARGE);
  expect((await bytesOf(await get("/o/film"))).equals(LARGE)).toBe(true);
  asked = [];
  const part = await get("/o/film", { headers: { range: "bytes=4000000-4000009" } });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 4000000-4000009/5000000"]);
  expect((await bytesOf(part)).equals(LARGE.subarray(4_000_000, 4_000_010))).toBe(true);
  expect(asked).toEqual(["GET /files/film", "GET /files/film bytes=4000000-4000009"]);
  expect((await get("/o/film", { method: "HEAD" })).headers.get("content-length")).toBe("5000000");
});

test("a client of bundles is sent to /o/, and a key that nobody has is 404 in both", async () => {
  files.set("/files/note", SMALL);
  const bundle = await get("/v1/read/note");
  expect([bundle.status, bundle.headers.get("x-agarose-error")]).toEqual([404, "OBJECT_PLAIN"]);
  expect(asked, "nothing but its head").toEqual(["HEAD /files/note"]);
  for (const path of ["/v1/read/none", "/o/none"]) {
    expect((await get(path)).headers.get("x-agarose-error"), path).toBe("OBJECT_NOT_FOUND");
  }
});

test("what the regions have, or had and removed, is theirs", async () => {
  files.set("/files/known", SMALL);
  files.set("/files/removed", SMALL);
  await world.put("known", LARGE);
  const grave = { key: "removed", generation: 3, modified: "2026-01-02T03:04:06.000Z" };
  const tombstone = encodeManifest(await sealTombstone(grave));
  for (const region of REGIONS) world.buckets.objects.set(`${region}/${manifestName("removed")}`, tombstone);
  expect((await bytesOf(await get("/o/known"))).equals(LARGE)).toBe(true);
  for (let i = 0; i < 3; i++) expect((await get("/o/removed")).status).toBe(404);
  expect((await get("/v1/read/removed")).headers.get("x-agarose-error")).toBe("OBJECT_NOT_FOUND");
  expect(asked).toEqual([]);
});

test("regions that do not answer are no reason to serve what they may have replaced", async () => {
  files.set("/files/replaced", SMALL);
  for (const region of REGIONS) world.buckets.faults.set(region, { status: 503 });
  const answer = await get("/o/replaced");
  world.buckets.faults.clear();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(world.buckets.fired.size).toBe(REGIONS.length);
  expect(asked).toEqual([]);
});

test("private keys stay private", async () => {
  files.set("/files/members/note", SMALL);
  expect((await get("/o/members/note")).status).toBe(403);
  expect(asked).toEqual([]);
  const opened = await get("/o/members/note", { headers: { authorization: `Bearer ${READ_TOKEN}` } });
  expect([opened.status, opened.headers.get("cache-control")]).toEqual([200, "private, no-cache"]);
});

test.each<[key: string, purged: object]>([
  ["page", { keys: ["page"] }],
  // A Cache API does not say which keys it has below a prefix.
  ...(isOnNode() ? ([["below/page", { prefix: "below/" }]] satisfies [[string, object]]) : []),
])("a purge drops the copy of %s", async (key, purged) => {
  files.set(`/files/${key}`, SMALL);
  await bytesOf(await get(`/o/${key}`));
  await new Promise((resolve) => setTimeout(resolve, 300));
  files.set(`/files/${key}`, LARGE.subarray(0, 50));
  expect((await bytesOf(await get(`/o/${key}`))).length, "there is a copy").toBe(SMALL.length);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
  expect((await get("/v1/purge", { method: "POST", headers, body: JSON.stringify(purged) })).status).toBe(200);
  expect((await bytesOf(await get(`/o/${key}`))).length).toBe(50);
});

const head = { etag: '"e"', "content-type": "text/plain" };
const LIES: readonly [string, typeof fault][] = [
  ["says no length", (_, response) => (response.writeHead(200, head).write("x"), response.end(), true)],
  ["has no ETag", (_, response) => (response.writeHead(200, { "content-length": 1 }).end("x"), true)],
  [
    "has a weak ETag",
    (_, response) => (response.writeHead(200, { etag: 'W/"e"', "content-length": 1 }).end("x"), true),
  ],
  [
    "codes its content",
    (_, response) => (
      response.writeHead(200, { ...head, "content-length": 1, "content-encoding": "br" }).end("x"),
      true
    ),
  ],
  ["redirects", (_, response) => (response.writeHead(302, { location: "/files/other" }).end(), true)],
  ["fails", (_, response) => (response.writeHead(500).end(), true)],
  [
    "ends short",
    (_, response) => {
      response.writeHead(200, { ...head, "content-length": 1_000 }).write("short");
      setTimeout(() => response.destroy(), 50);
      return true;
    },
  ],
];

test.each(LIES)("an origin that %s is an error, and nothing of it is kept", async (what, lie) => {
  const name = what.replaceAll(" ", "-");
  files.set(`/files/${name}`, SMALL);
  fault = lie;
  const answer = await get(`/o/${name}`);
  expect([answer.status, answer.headers.get("x-agarose-error")]).toEqual([502, "SOURCE_FAILED"]);
  expect(fired).toBe(1);
  fault = undefined;
  expect((await bytesOf(await get(`/o/${name}`))).equals(SMALL), "later").toBe(true);
});

test("a large object that ends short cuts the answer off, and one that changes under a range is an error", async () => {
  files.set("/files/cut", LARGE);
  fault = (_, response) => {
    response.writeHead(200, { ...head, "content-length": 5_000_000 }).write(Buffer.alloc(4_500_000));
    setTimeout(() => response.destroy(), 100);
    return true;
  };
  await expect(get("/o/cut").then(bytesOf)).rejects.toThrow();
  expect(fired).toBe(1);
  fault = (request) => {
    if (request.headers.range === undefined) return false;
    files.set("/files/cut", randomBytes(5_000_000, 3));
    fired++;
    return false;
  };
  const range = await get("/o/cut", { headers: { range: "bytes=0-9" } });
  expect([range.status, range.headers.get("x-agarose-error")]).toEqual([502, "SOURCE_FAILED"]);
  expect(fired).toBe(2);
});
