/** Promises of the embedded endpoint only. The CLI's conformance suite tests what all S3 servers share. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterEach, expect, test, vi } from "vitest";
import { listenLocally } from "../listen-locally.ts";
import { startS3Endpoint, type S3Endpoint, type S3EndpointOptions } from "./s3-endpoint.ts";

const KEYS = { accessKeyId: "test", secretAccessKey: "secret" };
const BUCKET = "bucket";
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A bucket through the AWS SDK with its defaults. Failures are not retried. */
class Bucket {
  readonly #client: S3Client;

  constructor(endpoint: string) {
    const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1 };
    this.#client = new S3Client({ ...shared, endpoint, credentials: KEYS });
  }

  async put(key: string, body: Uint8Array | Readable, bytes?: number): Promise<void> {
    const length = bytes === undefined ? {} : { ContentLength: bytes };
    await this.#client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body, ...length }));
  }

  async get(key: string): Promise<Readable> {
    return (await this.#client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }))).Body as Readable;
  }

  /** Resolves with the object's length. */
  async head(key: string): Promise<number | undefined> {
    return (await this.#client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: key }))).ContentLength;
  }

  close(): void {
    this.#client.destroy();
  }
}

async function start(options: Partial<S3EndpointOptions> = {}): Promise<{ server: S3Endpoint; bucket: Bucket }> {
  const server = await startS3Endpoint({ ...KEYS, buckets: [BUCKET], ...options });
  closers.push(() => server.close());
  const bucket = new Bucket(server.url);
  closers.push(async () => bucket.close());
  return { server, bucket };
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-test-"));
  closers.push(() => rm(folder, { recursive: true }));
  return folder;
}

test("stored objects survive a restart, and half-written files are removed", async () => {
  const dir = await temporaryFolder();
  const first = await start({ dir });
  const body = randomBytes(1000);
  await first.bucket.put("kept", body);
  await first.server.close();
  await writeFile(join(dir, BUCKET, "data", "half-written"), "x");
  const second = await start({ dir });
  expect((await buffer(await second.bucket.get("kept"))).equals(body)).toBe(true);
  expect(await readdir(join(dir, BUCKET, "data"))).toHaveLength(1);
});

test("a body that breaks off on the wire leaves no object and no file", async () => {
  const dir = await temporaryFolder();
  const { server, bucket } = await start({ dir, publicRead: true });
  const { port } = new URL(server.url);
  let cut = false;
  // A proxy closes the socket after the first bytes of a signed put.
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), "127.0.0.1");
    let passed = 0;
    client.on("data", (data) => {
      passed += data.length;
      if (passed > 50_000) {
        cut = true;
        upstream.destroy();
        client.destroy();
      } else upstream.write(data);
    });
    upstream.pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
  });
  const cutUrl = await listenLocally(proxy);
  closers.push(() => new Promise((resolve) => proxy.close(resolve)));
  const cutBucket = new Bucket(cutUrl);
  closers.push(async () => cutBucket.close());
  await expect(cutBucket.put("cut", randomBytes(1_000_000))).rejects.toThrow();
  expect(cut, "the fault fired").toBe(true);
  await expect(bucket.head("cut")).rejects.toMatchObject({ name: "NotFound" });
  await expect.poll(() => readdir(join(dir, BUCKET, "data"))).toEqual([]);
});

test("a reader of an object that is replaced gets all bytes of the old one", async () => {
  const { bucket } = await start();
  const old = randomBytes(4_000_000);
  await bucket.put("replaced", old);
  const reading = await bucket.get("replaced");
  reading.pause();
  await once(reading, "readable");
  await bucket.put("replaced", randomBytes(10));
  expect((await buffer(reading)).equals(old)).toBe(true);
});

test("without public reads an anonymous GET is refused", async () => {
  const { server, bucket } = await start({ publicRead: false });
  await bucket.put("secret", new Uint8Array(1));
  expect((await fetch(`${server.url}/${BUCKET}/secret`)).status).toBe(403);
});

test("an operation that is not supported says so", async () => {
  const { server } = await start();
  const answer = await fetch(`${server.url}/${BUCKET}/x?torrent`);
  expect([answer.status, await answer.text()]).toEqual([501, expect.stringContaining("NotImplemented")]);
});

test("intercept answers instead of the endpoint", async () => {
  const { bucket } = await start({
    intercept(request, response) {
      if (!request.url?.includes("faulty")) return false;
      response.writeHead(503).end();
      return true;
    },
  });
  await expect(bucket.get("faulty")).rejects.toMatchObject({ $metadata: { httpStatusCode: 503 } });
  await expect(bucket.get("missing")).rejects.toMatchObject({ name: "NoSuchKey" });
});

test("a key of more than 1,024 bytes is refused", async () => {
  const { bucket } = await start();
  const put = bucket.put("k".repeat(1025), new Uint8Array(1));
  await expect(put).rejects.toMatchObject({ name: "KeyTooLongError" });
});

test("a clock that is 20 minutes off gets an error that says so", async () => {
  const { bucket } = await start({ nowMs: () => Date.now() + 20 * 60_000 });
  // With one attempt the SDK cannot correct its clock and retry.
  await expect(bucket.put("x", new Uint8Array(1))).rejects.toMatchObject({ name: "RequestTimeTooSkewed" });
});

test("a stalled bucket slows a streamed put instead of filling memory", async () => {
  const stalled = Promise.withResolvers<void>();
  let seen = 0;
  const { bucket } = await start({
    async intercept(request) {
      if (request.method !== "PUT") return false;
      seen++;
      await stalled.promise;
      return false;
    },
  });
  const body = new PassThrough();
  const bytes = 64 * 1024 * 1024;
  const put = bucket.put("slow", body, bytes);
  let taken = 0;
  const part = Buffer.alloc(64 * 1024);
  const writing = (async () => {
    for (; taken < bytes; taken += part.length) {
      if (!body.write(part)) await new Promise((resolve) => body.once("drain", resolve));
    }
    body.end();
  })();
  await vi.waitFor(() => expect(seen).toBe(1), 60_000);
  // Until the put takes no more.
  for (let before = -1; before !== taken;) {
    before = taken;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  // The sockets of both sides buffer some of it, far less than the whole.
  expect(taken).toBeLessThan(16 * 1024 * 1024);
  stalled.resolve();
  await writing;
  await put;
  expect(await bucket.head("slow")).toBe(bytes);
});
