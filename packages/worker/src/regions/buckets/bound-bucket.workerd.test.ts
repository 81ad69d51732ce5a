/** An R2 bucket that is bound to the Worker reads like the same bucket behind an S3 endpoint. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { startS3Endpoint, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { Miniflare } from "miniflare";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { bundleWorker } from "../../../build.ts";
import { ADMIN_TOKEN, randomBytes, readObject, startWorld, type TestWorld } from "../../../test/world.ts";

const KEYS = { accessKeyId: "test", secretAccessKey: "secret" };
const NAME = "chunks/a photo@1/0";
const CONTENT = randomBytes(1_000, 3);

describe("a read", () => {
  let endpoint: S3Endpoint;
  let miniflare: Miniflare;
  let bases: Record<string, string>;

  beforeAll(async () => {
    endpoint = await startS3Endpoint({ ...KEYS, buckets: ["bucket"] });
    const client = new S3Client({ endpoint: endpoint.url, region: "auto", forcePathStyle: true, credentials: KEYS });
    await client.send(new PutObjectCommand({ Bucket: "bucket", Key: NAME, Body: CONTENT }));
    client.destroy();
    const entry = fileURLToPath(new URL("../../../test/bound-bucket.worker.ts", import.meta.url));
    const outDir = await mkdtemp(join(tmpdir(), "agarose-bound-"));
    const { script } = await bundleWorker(entry, outDir);
    miniflare = new Miniflare({ modules: true, script: await readFile(script, "utf8"), r2Buckets: ["BUCKET"] });
    await rm(outDir, { recursive: true });
    await (await miniflare.getR2Bucket("BUCKET")).put(NAME, CONTENT);
    bases = { "S3 endpoint": `${endpoint.url}/bucket`, "R2 binding": String(await miniflare.ready).replace(/\/$/, "") };
  });
  afterAll(async () => {
    await miniflare.dispose();
    await endpoint.close();
  });

  test.each([
    { asks: "the whole object", status: 200, start: 0, end: 1_000 },
    { asks: "a range", headers: { range: "bytes=100-299" }, status: 206, start: 100, end: 300 },
    { asks: "one byte", headers: { range: "bytes=0-0" }, status: 206, start: 0, end: 1 },
    { asks: "from a byte to the end", headers: { range: "bytes=990-" }, status: 206, start: 990, end: 1_000 },
    { asks: "more than there is", headers: { range: "bytes=900-5000" }, status: 206, start: 900, end: 1_000 },
    { asks: "the last bytes", headers: { range: "bytes=-10" }, status: 206, start: 990, end: 1_000 },
    { asks: "a range beyond the end", headers: { range: "bytes=1000-1001" }, status: 416 },
    { asks: "an object that does not exist", name: "nowhere", status: 404 },
    { asks: "the headers alone", method: "HEAD", status: 200, start: 0, end: 1_000 },
    { asks: "the headers of nothing", method: "HEAD", name: "nowhere", status: 404 },
    { asks: "for another ETag", headers: { "if-match": '"another"' }, status: 412 },
  ])("of $asks is answered with $status, as by an S3 endpoint", async (given) => {
    const { method = "GET", name = NAME, headers = {}, status, start, end } = given;
    for (const [kind, base] of Object.entries(bases)) {
      const path = name.split("/").map(encodeURIComponent).join("/");
      const response = await fetch(`${base}/${path}`, { method, headers });
      const body = new Uint8Array(await response.arrayBuffer());
      expect(response.status, kind).toBe(status);
      if (status !== 200 && status !== 206) continue;
      expect(body, kind).toEqual(method === "HEAD" ? new Uint8Array() : CONTENT.subarray(start, end));
      const range = response.headers.get("content-range");
      expect(range, kind).toBe(status === 206 ? `bytes ${start}-${end! - 1}/1000` : null);
      expect(response.headers.get("etag"), kind).toMatch(/^".+"$/);
    }
  });
});

describe("a PoP with a region bound to R2", () => {
  let world: TestWorld;
  afterEach(() => world.close());

  test("reads it through the binding, and never over HTTP", async () => {
    world = await startWorld({}, { bound: { r0: "BUCKET_R0" } });
    const content = randomBytes(300_000, 9);
    await world.put("photo", content);
    const bucket = await world.pops.miniflare.getR2Bucket("BUCKET_R0", "fra");
    for (const [path, bytes] of world.buckets.objects) {
      if (path.startsWith("r0/")) await bucket.put(path.slice("r0/".length), bytes);
    }
    // Any four of six chunks make the object: without two other regions the bound one is needed.
    for (const name of ["r0", "r4", "r5"]) world.buckets.faults.set(name, { down: true });
    expect((await readObject(world, "photo")).bytes).toEqual(content);
    expect(world.buckets.requests.filter(({ region }) => region === "r0")).toEqual([]);
    expect(world.buckets.fired.size, "the other regions were asked, and were down").toBeGreaterThan(0);
    await world.pops.cron("fra");
    const { regions } = await world.status();
    expect(regions.find(({ name }) => name === "r0")).toMatchObject({ down: false });
    expect(world.buckets.requests.filter(({ region }) => region === "r0")).toEqual([]);
  });

  test("that lacks the binding says which one is missing", async () => {
    world = await startWorld({}, { bound: { r0: "BUCKET_R0" }, withoutBindings: true });
    const response = await fetch(`${world.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({
      error: { code: "CONFIG_INVALID", message: expect.stringContaining("R2 binding BUCKET_R0") },
    });
  });
});
