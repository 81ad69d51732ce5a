/**
 * Buckets that refuse unsigned reads: S3 that checks signatures, PoPs in workerd, the client of the service worker.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemSha256, systemClock } from "@agarose/core";
import { acceptUnsigned, objectUrl, parsePlan, chunkName, type Plan } from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import { javascriptCodec } from "@agarose/ec-wasm";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { ObjectClient, withSignatures, type FullPlan } from "@agarose/sw/testing";
import { parseConfig } from "@agarose/storage/config/config";
import { partsOf } from "@agarose/storage/parts";
import { putObject, type PutResult } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { startS3Endpoint, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { bucketOf, CREDENTIALS, REGIONS, storesOf } from "./world.ts";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Keys that S3 and its signers spell in different ways. */
const KEYS = ["plain.bin", "with space/ü & +plus=.bin", "100%25 (sure)!*'.bin"];
const ADMIN_TOKEN = "admin-token-of-tests";
const body = randomBytes(500_000);

let s3: S3Endpoint;
let pops: Pops;
let folder: string;
/** Added to the bucket's clock. */
let skewMs = 0;
/** Requests that the buckets answered, as path and query. */
const asked: string[] = [];
const puts = new Map<string, PutResult>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-private-"));
  s3 = await startS3Endpoint({
    ...CREDENTIALS,
    buckets: REGIONS.map(bucketOf),
    publicRead: false,
    nowMs: () => Date.now() + skewMs,
    intercept: ({ url }) => {
      asked.push(url ?? "");
      return false;
    },
  });
  const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: s3.url, bucket: bucketOf(name) }));
  const config = parseConfig(
    JSON.stringify({ regions, code: { k: 4, m: 2 }, stripeBytes: 100_000 }),
    "agarose.config.json",
  );
  const stores = storesOf(config, CREDENTIALS);
  const path = join(folder, "body");
  await writeFile(path, body);
  const signal = new AbortController().signal;
  for (const key of KEYS) {
    const object = {
      key,
      source: fileSource(path),
      contentType: "application/octet-stream",
      headers: {},
      force: false,
    };
    puts.set(key, await putObject(object, partsOf({ config, stores, signal })));
  }
  for (const store of stores) store.close();
  const popRegions = config.regions.map(({ name, url }) => ({ name, url, private: true, awsRegion: "us-east-1" }));
  const vars = { REGIONS: JSON.stringify(popRegions), ADMIN_TOKEN, UNSIGNED: "true", MANIFEST_TTL_SECONDS: "0" };
  const wrong = { ...CREDENTIALS, secretAccessKey: "wrong" };
  pops = await startPops({
    pops: [
      { name: "fra", vars: { ...vars, BUCKET_CREDENTIALS: JSON.stringify({ "*": CREDENTIALS }) } },
      { name: "lhr", vars: { ...vars, BUCKET_CREDENTIALS: JSON.stringify({ "*": wrong }) } },
      { name: "iad", vars },
    ],
  });
});

afterAll(async () => {
  await pops.dispose();
  await s3.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(() => {
  skewMs = 0;
  asked.length = 0;
});

const urlOf = (pop: string): string => pops.pops.find(({ name }) => name === pop)!.url;
const encoded = (key: string): string => key.split("/").map(encodeURIComponent).join("/");

async function planOf(key: string): Promise<Plan> {
  const response = await fetch(`${urlOf("fra")}/v1/read/${encoded(key)}`);
  const frames = new FrameReader(response.body!);
  const plan = await parsePlan((await frames.next()).payload, { key, trust: acceptUnsigned, sha256: systemSha256 });
  await frames.cancel();
  return plan;
}

test.each(KEYS)("the PoP itself reads %j with signatures", async (key) => {
  const response = await fetch(`${urlOf("fra")}/o/${encoded(key)}`);
  expect(response.status).toBe(200);
  expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), body)).toBe(0);
  const chunks = asked.filter((url) => url.includes("/chunks/"));
  expect(chunks.length).toBeGreaterThanOrEqual(4);
  for (const url of chunks) expect(url).toMatch(/[?&]X-Amz-Expires=300&.*X-Amz-Signature=[\da-f]{64}/);
});

test("a region of private buckets is not down, and a period fills the cache from it", async () => {
  await (await fetch(`${urlOf("fra")}/o/${encoded(KEYS[0]!)}`)).arrayBuffer();
  await pops.cron("fra");
  const response = await fetch(`${urlOf("fra")}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const { regions, lastPeriod } = (await response.json()) as Record<string, any>;
  expect(regions.filter(({ down }: { down: boolean }) => down)).toEqual([]);
  expect(lastPeriod.errors).toEqual([]);
});

test.each(KEYS)("a plan's signatures open exactly the chunks of %j, to anyone, for some minutes", async (key) => {
  const { upload } = puts.get(key)!;
  const plan = await planOf(key);
  for (const { name, url, signed } of plan.regions) {
    expect(signed!.seconds).toBeGreaterThanOrEqual(240);
    expect(signed!.seconds).toBeLessThanOrEqual(300);
    for (const [chunk, query] of Object.entries(signed!.queries)) {
      expect(plan.manifest!.placement[Number(chunk)]).toBe(name);
      const address = objectUrl(url, chunkName(key, upload, Number(chunk)));
      expect((await fetch(`${address}?${query}`, { headers: { range: "bytes=0-9" } })).status).toBe(206);
      expect((await fetch(address)).status).toBe(403);
      expect((await fetch(`${address}x?${query}`)).status).toBe(403);
      skewMs = 301_000;
      expect((await fetch(`${address}?${query}`)).status).toBe(403);
      skewMs = 0;
    }
  }
  expect(plan.regions.flatMap(({ signed }) => Object.keys(signed!.queries))).toHaveLength(6);
});

/** A client of which only the clock is not the system's own. */
function clientAt(now: () => number): ObjectClient {
  return new ObjectClient(
    { prefix: "/ec/", pops: [{ name: "fra", url: urlOf("fra") }], regions: [], delta: undefined } as never,
    {
      fetch: (url, init) => fetch(url, init),
      clock: { ...systemClock, now },
      sha256: systemSha256,
      random: Math.random,
      codec: async () => javascriptCodec(),
      emit: () => {},
      savesData: () => false,
    },
  );
}

test.each(KEYS)("a client reads %j from the buckets by the plan's signatures", async (key) => {
  const client = clientAt(systemClock.now);
  const answer = await client.answer({ key, method: "GET", headers: new Headers({ range: "bytes=100000-399999" }) });
  const bytes = new Uint8Array(await new Response(answer.body).arrayBuffer());
  expect(Buffer.compare(bytes, body.subarray(100_000, 400_000))).toBe(0);
});

test("a read that outlives its signatures continues with those of a new plan", async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const client = clientAt(clock.now);
  const first = await planOf(KEYS[1]!);
  const used = (): Set<string | undefined> =>
    new Set(asked.filter((url) => url.includes("/chunks/")).map((url) => /X-Amz-Date=([^&]+)/.exec(url)?.[1]));
  const answer = await client.answer({ key: KEYS[1]!, method: "GET", headers: new Headers() });
  const known = client.plans.get(KEYS[1]!)!;
  const { signal } = new AbortController();
  const request = { key: KEYS[1]!, signal, fetch: fetch.bind(globalThis), trace: crypto.randomUUID() };
  const sign = (plan: FullPlan): Promise<FullPlan> =>
    withSignatures(plan, request, {
      clock,
      sha256: systemSha256,
      trust: acceptUnsigned,
      latencies: client.latencies,
      plans: client.plans,
      pops: client.pops,
    });
  expect(await sign(known)).toBe(known);
  aheadMs = 290_000;
  const renewed = await sign(known);
  expect(renewed).not.toBe(known);
  expect(renewed.signedUntilMs).toBeGreaterThan(known.signedUntilMs!);
  expect(renewed.version).toBe(first.version);
  expect(Buffer.compare(new Uint8Array(await new Response(answer.body).arrayBuffer()), body)).toBe(0);
  expect(used().has(undefined)).toBe(false);
});

test("credentials that the buckets refuse are not reported as a missing object", async () => {
  const response = await fetch(`${urlOf("lhr")}/o/${KEYS[0]}`);
  expect(response.status).toBe(502);
  const { error } = (await response.json()) as { error: { code: string } };
  expect(error.code).toBe("NO_SOURCE");
  await pops.cron("lhr");
  const status = await fetch(`${urlOf("lhr")}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const { regions } = (await status.json()) as { regions: { down: boolean }[] };
  expect(regions.every(({ down }) => down)).toBe(true);
});

test("a private region without credentials is an error of the configuration that names it", async () => {
  const response = await fetch(`${urlOf("iad")}/healthz`);
  expect(response.status).toBe(500);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  expect(error).toMatchObject({ code: "CONFIG_INVALID", message: expect.stringContaining("frankfurt") });
});
