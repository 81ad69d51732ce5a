/** What only the embedded endpoint promises, beyond the contract that all servers share. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { startS3Endpoint, type S3Endpoint, type S3EndpointOptions } from "./index.ts";
import { S3Store } from "../../../cli/src/lib/store/s3-store.ts";

const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "secret" };
const BUCKET = "bucket";
const OCTETS = { contentType: "application/octet-stream" };
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(options: Partial<S3EndpointOptions> = {}): Promise<{ server: S3Endpoint; store: S3Store }> {
  const server = await startS3Endpoint({ ...CREDENTIALS, buckets: [BUCKET], ...options });
  closers.push(() => server.close());
  const region = { name: "r", provider: "p", endpoint: server.url, bucket: BUCKET, awsRegion: "us-east-1", url: "" };
  const store = new S3Store(region, { credentials: CREDENTIALS, attempts: 1 });
  closers.push(async () => store.close());
  return { server, store };
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-test-"));
  closers.push(() => rm(folder, { recursive: true }));
  return folder;
}

test("what was stored is there again after a restart, and half-written files are gone", async () => {
  const dir = await temporaryFolder();
  const first = await start({ dir });
  const body = randomBytes(1000);
  await first.store.put("kept", body, { bytes: 1000, ...OCTETS });
  await first.server.close();
  await writeFile(join(dir, BUCKET, "data", "half-written"), "x");
  const second = await start({ dir });
  const response = await second.store.get("kept");
  expect(Buffer.from(await new Response(response.body).arrayBuffer()).equals(body)).toBe(true);
  expect(await readdir(join(dir, BUCKET, "data"))).toHaveLength(1);
});

test("a body that breaks off on the wire leaves no object and no file", async () => {
  const dir = await temporaryFolder();
  const { server, store } = await start({ dir, publicRead: true });
  const { port } = new URL(server.url);
  let cut = false;
  // A signed put is cut after its first bytes, below HTTP, by a proxy that closes the socket.
  const { createServer } = await import("node:net");
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
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => proxy.close(resolve)));
  const address = proxy.address() as { port: number };
  const region = { ...store.region, endpoint: `http://127.0.0.1:${address.port}` };
  const cutStore = new S3Store(region, { credentials: CREDENTIALS, attempts: 1 });
  const put = cutStore.put("cut", randomBytes(1_000_000), { bytes: 1_000_000, ...OCTETS });
  await expect(put).rejects.toMatchObject({ code: "STORE_FAILED" });
  cutStore.close();
  expect(cut).toBe(true);
  expect(await store.head("cut")).toBeUndefined();
  await expect.poll(() => readdir(join(dir, BUCKET, "data"))).toEqual([]);
});

test("a reader of an object that is replaced meanwhile gets all of the old one", async () => {
  const { store } = await start();
  const old = randomBytes(4_000_000);
  await store.put("replaced", old, { bytes: old.length, ...OCTETS });
  const reader = (await store.get("replaced")).body!.getReader();
  const parts = [(await reader.read()).value!];
  await store.put("replaced", randomBytes(10), { bytes: 10, ...OCTETS });
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  expect(Buffer.concat(parts).equals(old)).toBe(true);
});

test("without public reads an anonymous GET is refused", async () => {
  const { server, store } = await start({ publicRead: false });
  await store.put("secret", new Uint8Array(1), { bytes: 1, ...OCTETS });
  expect((await fetch(`${server.url}/${BUCKET}/secret`)).status).toBe(403);
});

test("an operation that is not supported says so", async () => {
  const { server } = await start();
  const answer = await fetch(`${server.url}/${BUCKET}/x?tagging`);
  expect([answer.status, await answer.text()]).toEqual([501, expect.stringContaining("NotImplemented")]);
});

test("intercept answers in the endpoint's place", async () => {
  const { store } = await start({
    intercept(request, response) {
      if (!request.url?.includes("faulty")) return false;
      response.writeHead(503).end();
      return true;
    },
  });
  expect((await store.get("faulty")).status).toBe(503);
  expect((await store.get("missing")).status).toBe(404);
});

test("a key of more than 1,024 bytes is refused", async () => {
  const { store } = await start();
  const put = store.put("k".repeat(1025), new Uint8Array(1), { bytes: 1, ...OCTETS });
  await expect(put).rejects.toMatchObject({ code: "STORE_FAILED", details: { error: "KeyTooLongError" } });
});

test("a clock that is 20 minutes off is told as such", async () => {
  const { store } = await start({ nowMs: () => Date.now() + 20 * 60_000 });
  const put = store.put("x", new Uint8Array(1), { bytes: 1, ...OCTETS });
  // The SDK may correct its clock and try again, but not with one attempt.
  await expect(put).rejects.toMatchObject({ details: { error: "RequestTimeTooSkewed" } });
});

test("a stalled bucket holds a streamed put back instead of filling memory", async () => {
  const stalled = Promise.withResolvers<void>();
  let seen = 0;
  const { store } = await start({
    async intercept(request) {
      if (request.method !== "PUT") return false;
      seen++;
      await stalled.promise;
      return false;
    },
  });
  const { PassThrough } = await import("node:stream");
  const body = new PassThrough();
  const bytes = 64 * 1024 * 1024;
  const put = store.put("slow", body, { bytes, ...OCTETS });
  let taken = 0;
  const part = Buffer.alloc(64 * 1024);
  const writing = (async () => {
    for (; taken < bytes; taken += part.length) {
      if (!body.write(part)) await new Promise((resolve) => body.once("drain", resolve));
    }
    body.end();
  })();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(seen).toBe(1);
  // What the sockets of both sides buffer is the kernel's; it stays far below the whole.
  expect(taken).toBeLessThan(16 * 1024 * 1024);
  stalled.resolve();
  await writing;
  await put;
  expect(await store.head("slow")).toBe(bytes);
});
