import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { AwsClient } from "aws4fetch";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import type { ListedObject, Store } from "@agarose/storage/buckets/store";
import { findVersitygw, startS3Endpoint, startVersitygw, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { FetchStore, PUT_BYTES_MAX } from "./fetch-store.ts";

const KEYS = { accessKeyId: "AKIAFETCHSTORE", secretAccessKey: "a/secret+with=signs" };
const BUCKET = "fetch-store";
const TYPE = { contentType: "application/octet-stream" };

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

describe("the embedded S3 endpoint", () => suite(startS3Endpoint));
describe.skipIf(!versitygw)(`versitygw${reason}`, () => suite(startVersitygw));

function suite(startServer: typeof startS3Endpoint | typeof startVersitygw): void {
  let server: Pick<S3Endpoint, "url" | "close">;
  let store: Store;
  beforeAll(async () => {
    server = await startServer({ ...KEYS, buckets: [BUCKET] });
    store = storeWith(KEYS);
  });
  afterAll(() => server.close());

  const storeWith = (keys: typeof KEYS, endpoint = server.url): FetchStore => {
    const region = { name: "x", provider: "x", endpoint, bucket: BUCKET, awsRegion: "us-east-1", url: "" };
    return new FetchStore(region, new AwsClient({ ...keys, service: "s3", region: "us-east-1", retries: 0 }));
  };
  const put = (name: string, body: Uint8Array, more: Partial<Parameters<Store["put"]>[2]> = {}) =>
    store.put(name, body, { ...TYPE, bytes: body.length, ...more });
  const read = async (name: string, range?: string) => {
    const { status, body } = await store.get(name, range === undefined ? {} : { range });
    return { status, bytes: Buffer.from(await new Response(body as BodyInit | null).arrayBuffer()) };
  };
  const listed = async (prefix: string, from = store): Promise<ListedObject[]> => {
    const objects: ListedObject[] = [];
    for await (const object of from.list(prefix)) objects.push(object);
    return objects;
  };
  const names = async (prefix: string, after?: string): Promise<string[]> => {
    const all: string[] = [];
    for await (const { name } of store.list(prefix, undefined, after)) all.push(name);
    return all;
  };

  test.each([0, 1, 70_000])("%i bytes come back as they were, whole and by range", async (length) => {
    const body = randomBytes(length);
    await put("sized", body);
    expect((await read("sized")).bytes.equals(body)).toBe(true);
    expect(await store.head("sized")).toBe(length);
    if (length > 10) expect(await read("sized", "bytes=3-9")).toEqual({ status: 206, bytes: body.subarray(3, 10) });
  });

  test("a stream is stored when it has its length, and not when it is short or long", async () => {
    const body = randomBytes(300_000);
    const stream = (): Readable => Readable.from([body.subarray(0, 7), body.subarray(7)]);
    await store.put("stream", stream(), { ...TYPE, bytes: body.length });
    expect((await read("stream")).bytes.equals(body)).toBe(true);
    for (const bytes of [body.length - 1, body.length + 1]) {
      const stored = store.put("other-stream", stream(), { ...TYPE, bytes });
      await expect(stored).rejects.toMatchObject({
        code: "STORE_FAILED",
        details: { expected: bytes, actual: 300_000 },
      });
    }
    expect((await read("other-stream")).status).toBe(404);
  });

  test("what a Worker cannot hold is refused before a byte is sent", async () => {
    const bytes = PUT_BYTES_MAX + 1;
    const stored = store.put("long", Readable.from([]), { ...TYPE, bytes });
    await expect(stored).rejects.toMatchObject({ code: "STORE_FAILED", details: { bytes, limit: PUT_BYTES_MAX } });
  });

  test("names as Agarose makes them are stored, listed and removed", async () => {
    const name = manifestName("ä+b & c/%41/猫'🐈\u0001(!*)~");
    await put(name, Buffer.from("{}"));
    expect((await read(name)).bytes.toString()).toBe("{}");
    expect(await names(name)).toEqual([name]);
    expect(await store.remove([name, "never-there"])).toEqual([]);
    expect(await names(name)).toEqual([]);
    expect(await store.head(name)).toBeUndefined();
  });

  test("a listing has every name once and in order, over pages, and begins after a name", async () => {
    const all = Array.from({ length: 1_005 }, (_, i) => `paged/${String(i).padStart(4, "0")}`);
    for (let at = 0; at < all.length; at += 50) {
      await Promise.all(all.slice(at, at + 50).map((name) => put(name, Buffer.from(name))));
    }
    expect(await names("paged/")).toEqual(all);
    expect(await names("paged/", "paged/1002")).toEqual(["paged/1003", "paged/1004"]);
    expect(await names("nothing/")).toEqual([]);
  });

  test("a listed ETag is that of the put", async () => {
    const { etag } = await put("listed/etag", Buffer.from("etag"));
    const [object] = await listed("listed/");
    expect(object).toMatchObject({ name: "listed/etag", bytes: 4, etag });
    expect(Math.abs(object!.modifiedMs - Date.now())).toBeLessThan(60_000);
  });

  test("conditions hold: a put that must be first, one that must replace, a removal of what was seen", async () => {
    const refused = { code: "STORE_FAILED", details: { status: 412 } };
    const { etag } = await put("conditional", Buffer.from("first"), { ifNoneMatch: "*" });
    await expect(put("conditional", Buffer.from("again"), { ifNoneMatch: "*" })).rejects.toMatchObject(refused);
    await expect(put("conditional", Buffer.from("other"), { ifMatch: '"other"' })).rejects.toMatchObject(refused);
    await put("conditional", Buffer.from("second"), { ifMatch: etag! });
    await expect(store.removeMatching("conditional", etag!)).rejects.toMatchObject(refused);
    expect((await read("conditional")).bytes.toString()).toBe("second");
  });

  test.each([{ secretAccessKey: "wrong" }, { accessKeyId: "AKIAUNKNOWN" }])(
    "keys that are refused do not look like an absent object: %j",
    async (wrong) => {
      const refused = { code: "CREDENTIALS_REFUSED" };
      const other = storeWith({ ...KEYS, ...wrong });
      await expect(other.get("not-there")).rejects.toMatchObject(refused);
      await expect(listed("x", other)).rejects.toMatchObject(refused);
      expect((await read("not-there")).status).toBe(404);
    },
  );

  test("a region that cannot be reached fails, and an abort is the caller's", async () => {
    const gone = storeWith(KEYS, "http://127.0.0.1:9");
    await expect(gone.get("x")).rejects.toMatchObject({ code: "SOURCE_FAILED", details: { region: "x" } });
    const abort = AbortSignal.abort(new DOMException("stopped", "AbortError"));
    await expect(store.get("x", { signal: abort })).rejects.toMatchObject({ name: "AbortError" });
  });
}
