/** Answers of a server to pages that upload, over a real S3 endpoint with three regions. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Manifest } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { coded } from "../../test/coded-page.ts";
import { allOf, startThreeRegions, type ThreeRegions } from "../../test/three-regions.ts";
import { configOfFields } from "../config/config.ts";
import { openDeployment, type Deployment } from "../deployment.ts";
import { readManifest } from "../objects/manifests.ts";
import { openParts } from "../parts.ts";
import type { UploadGrant, UploadsOptions } from "./handle-uploads.ts";
import { signUpload } from "./tokens.ts";

const SECRET = "a secret of thirty-two characters";
const MINUTE_MS = 60_000;

let world: ThreeRegions;
let store: Deployment;
let nowMs: number;
let handle: (request: Request) => Promise<Response>;

beforeEach(async () => {
  world = await startThreeRegions();
  nowMs = Date.now();
  await open();
});

afterEach(async () => {
  store.close();
  await world.close();
});

async function open(fields: object = {}, options: Partial<UploadsOptions> = {}): Promise<void> {
  store?.close();
  store = await openDeployment({ ...world.config, ...fields }, { nowMs: () => nowMs });
  handle = store.uploads({ secret: SECRET, bytesMax: 1_000_000, authorize: () => true, ...options });
}

async function ask<T = UploadGrant>(path: string, body?: BodyInit): Promise<T> {
  const url = `https://app.test/v1/uploads${path}`;
  const response = await handle(new Request(url, body === undefined ? {} : { method: "POST", body }));
  const answer = (await response.json()) as T & { error?: { code: string; message: string } };
  if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error, { status: response.status });
  return answer;
}

const begin = (wish: object): Promise<UploadGrant> => ask("", JSON.stringify(wish));

function signed(more: object = {}): string {
  return signUpload({ secret: SECRET, key: "a", bytesMax: 50_000, ...more }, nowMs);
}

async function send({ coded: code }: UploadGrant, chunks: readonly Uint8Array[], only = [0, 1, 2]): Promise<number[]> {
  const puts = only.map(async (chunk) => {
    const { url, headers } = code!.chunks[chunk]!;
    const body = chunks[chunk]! as Uint8Array<ArrayBuffer>;
    return (await fetch(url, { method: "PUT", headers, body })).status;
  });
  return Promise.all(puts);
}

/** Uploads all of it. */
async function upload(key: string, content: Uint8Array, wish: object = {}): Promise<UploadGrant> {
  const grant = await begin({ key, bytes: content.length, ...wish });
  const { chunks, leaves, query } = await coded(grant, content);
  expect(await send(grant, chunks)).toEqual([200, 200, 200]);
  await ask(`/${grant.ticket}${query}`, leaves);
  return grant;
}

async function read(key: string): Promise<Buffer> {
  return Buffer.concat(await allOf((await store.get(key)).body));
}

async function manifestOf(key: string): Promise<Manifest> {
  const parts = openParts(configOfFields(world.config, "test"), { attempts: 1 }, new AbortController().signal);
  try {
    return await readManifest(key, parts);
  } finally {
    for (const region of parts.stores) region.close();
  }
}

test("a page stores the chunks, and the server commits what verifies as any other object", async () => {
  const content = randomBytes(95_003);
  const grant = await begin({ key: "a/film.bin", bytes: content.length, contentType: "video/mp4" });
  expect(grant).toMatchObject({ lastsMs: 60 * MINUTE_MS, coded: { k: 2, m: 1, needed: 2, stripeBytes: 10_000 } });
  expect(JSON.stringify(grant)).not.toContain("storage-secret");
  const { chunks, leaves, query } = await coded(grant, content);
  await send(grant, chunks);
  await expect(store.stat("a/film.bin")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  const stored = await ask<{ version: string }>(`/${grant.ticket}${query}`, leaves);
  const again = await ask<object>(`/${grant.ticket}${query}`, leaves);
  expect(again, "the answer was lost").toMatchObject({ version: stored.version, outcome: "unchanged" });
  expect(stored).toMatchObject({ key: "a/film.bin", outcome: "stored", missing: [], bytes: 95_003 });
  expect((await read("a/film.bin")).equals(content)).toBe(true);
  expect(await store.stat("a/film.bin")).toMatchObject({ contentType: "video/mp4" });
  expect(await store.verify("a/film.bin")).toMatchObject({ sound: true });
});

test("blocks and pages of hashes are those of a put", async () => {
  await open({ stripeBytes: 300_000, code: { k: 2, m: 1 } });
  const blocks = randomBytes(700_001);
  await upload("blocks", blocks);
  expect(await store.verify("blocks")).toMatchObject({ sound: true });
  expect((await read("blocks")).equals(blocks)).toBe(true);
  await open({ stripeBytes: 1_000 });
  const pages = randomBytes(200_001);
  await upload("pages", pages);
  expect(await store.verify("pages")).toMatchObject({ sound: true });
  expect((await read("pages")).equals(pages)).toBe(true);
});

test("what fits into one stripe goes to the server, which does to it what a put does", async () => {
  await open({ code: "auto", compress: "small" });
  const text = "word ".repeat(1_000);
  const grant = await begin({ key: "note.txt", bytes: text.length, contentType: "text/plain" });
  expect(grant.coded).toBeUndefined();
  await expect(ask(`/${grant.ticket}`, `${text}x`)).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await expect(ask(`/${grant.ticket}`, "short")).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await ask(`/${grant.ticket}`, text);
  expect((await read("note.txt")).toString()).toBe(text);
  expect((await manifestOf("note.txt")).gzip).toMatchObject({ bytes: text.length });
  expect(await store.stat("note.txt")).toMatchObject({ contentType: "text/plain; charset=utf-8" });
  await expect(ask(`/${grant.ticket}`, text)).rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
  const empty = await begin({ key: "empty", bytes: 0 });
  await ask(`/${empty.ticket}`, "");
  expect(await store.stat("empty")).toMatchObject({ bytes: 0 });
});

test("a token is good for one upload of its key, within its bound and its time", async () => {
  await open({}, { prefix: "a", authorize: undefined as never });
  const content = randomBytes(30_000);
  const refusals: [string, object, string][] = [
    ["none", {}, "FORBIDDEN"],
    ["another secret", { token: signed({ secret: "another secret of the same length" }) }, "FORBIDDEN"],
    ["changed", { token: `e${signed()}` }, "FORBIDDEN"],
    ["another key", { token: signed({ key: "b" }) }, "FORBIDDEN"],
    ["a key outside the prefix", { token: signed({ key: "b" }), key: "b" }, "FORBIDDEN"],
    ["beyond its bound", { token: signed({ bytesMax: 29_999 }) }, "UPLOAD_REFUSED"],
    ["beyond the server's bound", { token: signed({ bytesMax: 2e6 }), bytes: 1_000_001 }, "UPLOAD_REFUSED"],
    ["a ticket in its place", { token: (await begin({ key: "a", bytes: 1, token: signed() })).ticket }, "FORBIDDEN"],
    ["no text", { token: 5 }, "REQUEST_INVALID"],
  ];
  for (const [what, wish, code] of refusals) {
    await expect(begin({ key: "a", bytes: content.length, ...wish }), what).rejects.toMatchObject({ code });
  }
  const late = signed({ expiresMs: MINUTE_MS });
  const token = signed();
  const grant = await upload("a", content, { token });
  await expect(begin({ key: "a", bytes: 30_000, token }), "used").rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
  await store.put("a", "another");
  await expect(begin({ key: "a", bytes: 30_000, token }), "used").rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
  const { leaves, query } = await coded(grant, content);
  await expect(ask(`/${grant.ticket}${query}`, leaves)).rejects.toMatchObject({ code: "UPLOAD_REFUSED", status: 403 });
  expect((await read("a")).toString(), "an old upload does not come again").toBe("another");
  nowMs += MINUTE_MS;
  await expect(begin({ key: "a", bytes: 30_000, token: late })).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(() => signed({ expiresMs: 61 * MINUTE_MS })).toThrow(/expiresMs/);
  expect(() => signed({ secret: "short" })).toThrow(/secret/);
  expect(() => store.uploads({ secret: "short", bytesMax: 1 })).toThrow(/secret/);
  expect(() => store.uploads({ secret: SECRET, bytesMax: -1 })).toThrow(/bytesMax/);
});

test("of begins at once with one token at most one is let go on, so that no two files mix their chunks", async () => {
  for (let round = 0; round < 8; round++) {
    const key = `at-once/${round}`;
    const token = signed({ key });
    const begins = [1, 2, 3].map(() => begin({ key, bytes: 30_000, token }));
    const outcomes = await Promise.allSettled(begins);
    const refused = outcomes.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    for (const { reason } of refused) expect(["UPLOAD_REFUSED", "WRITE_CONFLICT"]).toContain(reason.code);
    expect(refused.length).toBeGreaterThanOrEqual(2);
  }
});

test("requests that are none are refused", async () => {
  await expect(ask("", "{")).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await expect(ask("", "null")).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await expect(ask("", " ".repeat(20_000))).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await expect(begin({ key: "a", bytes: -1 })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await expect(begin({ key: "..", bytes: 1 })).rejects.toMatchObject({ code: "KEY_INVALID" });
  await expect(begin({ key: "a", bytes: 1, contentType: "a\nb" })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await open({}, { bytesMax: 2e10 });
  await expect(begin({ key: "a", bytes: 1.2e10 })).rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
  await expect(ask("/made-up.ticket", "")).rejects.toMatchObject({ code: "FORBIDDEN" });
  await expect(ask("")).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  const { ticket } = await begin({ key: "a", bytes: 30_000 });
  await expect(ask(`/${ticket}`, "")).rejects.toMatchObject({ code: "REQUEST_INVALID" });
});

test("the app decides on requests without a token", async () => {
  const asked: unknown[] = [];
  await open({}, { authorize: (request, wish) => asked.push([request.method, wish]) > 1 });
  const wish = { key: "a", bytes: 1, contentType: "image/png" };
  await expect(begin(wish)).rejects.toMatchObject({ code: "FORBIDDEN", status: 403 });
  await begin(wish);
  expect(asked).toEqual([
    ["POST", wish],
    ["POST", wish],
  ]);
});

test("a chunk of another length is refused by the store, and a second one never replaces the first", async () => {
  const content = randomBytes(30_000);
  const grant = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(grant, content);
  const short = chunks.map((chunk) => chunk.subarray(1));
  expect(await send(grant, short)).toEqual([403, 403, 403]);
  await send(grant, chunks, [0]);
  await expect(ask(`/${grant.ticket}${query}`, leaves)).rejects.toMatchObject({ code: "STORE_FAILED" });
  await expect(store.stat("a")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  await send(grant, chunks, [1, 2]);
  await expect(ask(`/${grant.ticket}${query}`, leaves.subarray(1))).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  await ask(`/${grant.ticket}${query}`, leaves);
  expect(
    await send(
      grant,
      chunks.map((chunk) => chunk.toReversed()),
    ),
  ).toEqual([412, 412, 412]);
  expect((await read("a")).equals(content)).toBe(true);
});

test("a page that lies about hashes makes an object that nobody reads as another", async () => {
  const content = randomBytes(30_000);
  const grant = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(grant, content);
  await send(grant, chunks);
  await ask(`/${grant.ticket}${query}`, leaves.toReversed());
  await expect(read("a")).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
});

test("an upload goes on where it was, with new URLs, for as long as its page comes back within the hour", async () => {
  const content = randomBytes(30_000);
  const first = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(first, content);
  await send(first, chunks, [1]);
  nowMs += 59 * MINUTE_MS;
  const second = await ask(`/${first.ticket}`);
  expect(second.coded!.chunks.map(({ stored }) => stored)).toEqual([false, true, false]);
  nowMs += 59 * MINUTE_MS;
  await expect(ask(`/${first.ticket}`)).rejects.toMatchObject({ code: "FORBIDDEN" });
  await send(second, chunks, [0, 2]);
  await ask(`/${second.ticket}${query}`, leaves);
  expect((await read("a")).equals(content)).toBe(true);
  await expect(ask(`/${second.ticket}`)).rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
});

test("an upload that was committed stays over, whatever was asked of it at the same time", async () => {
  const content = randomBytes(30_000);
  const grant = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(grant, content);
  await send(grant, chunks);
  const late = Promise.withResolvers<void>();
  let isLate = 0;
  world.held.until = async (method, url) => {
    if (method === "PUT" && url.includes("/claims/")) await (isLate++, late.promise);
  };
  const renewed = ask(`/${grant.ticket}`).catch(() => undefined);
  await vi.waitFor(() => expect(isLate, "the fault fired").toBe(3));
  world.held.until = undefined;
  await ask(`/${grant.ticket}${query}`, leaves);
  late.resolve();
  await renewed;
  await expect(ask(`/${grant.ticket}`)).rejects.toMatchObject({ code: "UPLOAD_REFUSED" });
});

test("a page learns nothing of the server's keys", async () => {
  const credentialsFile = join(world.folder, "none");
  await open({ credentials: { credentialsFile, profile: "default" } });
  const failure = await begin({ key: "a", bytes: 30_000 }).catch((error: Error) => error);
  expect(failure).toMatchObject({ code: "CREDENTIALS_REFUSED" });
  expect(JSON.stringify([failure, (failure as Error).message])).not.toContain(world.folder);
});

test("a region that is down costs its chunk, which repair makes", async () => {
  const content = randomBytes(30_000);
  const grant = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(grant, content);
  world.down.add("tokyo");
  const statuses = await send(grant, chunks);
  expect(statuses.filter((status) => status === 500)).toHaveLength(1);
  const stored = await ask<object>(`/${grant.ticket}${query}`, leaves);
  expect(stored).toMatchObject({ missing: [statuses.indexOf(500)] });
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(1);
  world.down.clear();
  expect((await read("a")).equals(content)).toBe(true);
  const other = await openDeployment(world.config);
  await allOf(other.repair());
  expect(await other.verify("a")).toMatchObject({ sound: true });
  other.close();
});

test("the last commit of a key wins, whether a page or a program makes it", async () => {
  const [one, two] = [randomBytes(30_000), randomBytes(30_000)];
  const grants = await Promise.all([one, two].map((content) => begin({ key: "a", bytes: content.length })));
  const made = await Promise.all([one, two].map((content, at) => coded(grants[at]!, content)));
  for (const [at, { chunks }] of made.entries()) await send(grants[at]!, chunks);
  const commit = (at: number): Promise<unknown> => ask(`/${grants[at]!.ticket}${made[at]!.query}`, made[at]!.leaves);
  await commit(1);
  await store.put("a", "put");
  expect((await read("a")).toString()).toBe("put");
  await commit(0);
  expect((await read("a")).equals(one)).toBe(true);
  expect(await store.verify("a")).toMatchObject({ sound: true });
});

test("gc keeps the chunks of an upload under way, and removes those of one that was given up", async () => {
  const content = randomBytes(30_000);
  const grant = await begin({ key: "a", bytes: content.length });
  const { chunks, leaves, query } = await coded(grant, content);
  await send(grant, chunks);
  const gone = await begin({ key: "gone", bytes: content.length });
  await send(gone, (await coded(gone, content)).chunks);
  const states = async (): Promise<string[]> =>
    (await allOf(store.gc("", { olderThanMs: 0 }))).map(({ key, state }) => `${key} ${state}`);
  expect(await states()).toEqual(["a marked", "gone marked"]);
  expect(await states(), "their claims keep them").toEqual(["a waiting", "gone waiting"]);
  await ask(`/${grant.ticket}${query}`, leaves);
  expect((await read("a")).equals(content)).toBe(true);
  expect(await states()).toEqual(["gone waiting"]);
  nowMs += 121 * MINUTE_MS;
  world.clock.aheadMs += 121 * MINUTE_MS;
  expect(await states()).toEqual(["gone removed"]);
  expect((await read("a")).equals(content)).toBe(true);
});

test("what the configuration wants encrypted or compressed is not stored as it is", async () => {
  await writeFile(join(world.folder, "secret"), `aes256:${randomBytes(32).toString("base64")}`);
  await open({ encryption: [{ prefix: "private/", secrets: [{ file: join(world.folder, "secret") }] }] });
  const refusal = { code: "UPLOAD_REFUSED", message: expect.stringContaining("encryption") };
  await expect(begin({ key: "private/a", bytes: 30_000 })).rejects.toMatchObject(refusal);
  expect((await begin({ key: "public/a", bytes: 30_000 })).coded).toBeDefined();
  const small = await begin({ key: "private/note", bytes: 5 });
  await ask(`/${small.ticket}`, "words");
  expect((await read("private/note")).toString()).toBe("words");
  await open({ compress: "all" });
  const message = expect.stringContaining("compress");
  await expect(begin({ key: "a", bytes: 30_000 })).rejects.toMatchObject({ code: "UPLOAD_REFUSED", message });
});
