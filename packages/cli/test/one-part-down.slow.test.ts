/**
 * * Results of the readers of a public and of a private object while one part of a deployment is down, for the outages
 * of docs/guides/troubleshooting.md. Two PoPs in workerd and one on Node, buckets that anyone may read beside buckets
 * that check signatures, and the client of the service worker.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { systemClock, systemSha256 } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { startS3Endpoint, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { startPopProcess, type PopProcess } from "@agarose/pop/test";
import { handleOf, ObjectClient } from "@agarose/sw/testing";
import { LIMITED_WORKER } from "@agarose/worker/testing";
import { parseConfig } from "@agarose/storage/config/config";
import { partsOf } from "@agarose/storage/parts";
import { putObject } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { bucketOf, CREDENTIALS, REGIONS, storesOf } from "./world.ts";

/** The Worker behind faults of its platform: of Durable Objects and of KV. */
const READ_TOKEN = "read-token-of-tests";
const ADMIN_TOKEN = "admin-token-of-one-part-down";
const KEYS = { public: "open/page.bin", private: "members/report.bin" } as const;
const bodies = { public: randomBytes(300_000), private: randomBytes(300_000) };

interface Side {
  readonly s3: S3Endpoint;
  readonly workers: Pops;
  readonly node: PopProcess;
  readonly regions: readonly { readonly name: string; readonly url: string }[];
}

let folder: string;
/** Each with buckets, Workers and a PoP on Node of its own, because a deployment reads one list of buckets. */
let sides: Record<keyof typeof KEYS, Side>;
/** Origins and paths that do not answer, as `down` says. */
let isDown: (url: string) => boolean = () => false;
let downRegion: string | undefined;
/** Requests that met what is down. */
let refused = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-one-part-"));
  sides = { public: await startSide("public"), private: await startSide("private") };
});
afterAll(async () => {
  for (const { s3, workers, node } of Object.values(sides)) {
    await node.kill();
    await workers.dispose();
    await s3.close();
  }
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  isDown = () => false;
  downRegion = undefined;
  refused = 0;
  await setFaults({ kv: "ok" });
});

async function startSide(kind: keyof typeof KEYS): Promise<Side> {
  const s3 = await startS3Endpoint({
    ...CREDENTIALS,
    buckets: REGIONS.map(bucketOf),
    publicRead: kind === "public",
    intercept: (request) => {
      const isOut = downRegion !== undefined && (request.url ?? "").startsWith(`/${bucketOf(downRegion)}/`);
      if (isOut) {
        refused++;
        request.destroy();
      }
      return isOut;
    },
  });
  const json = REGIONS.map((name) => ({ name, provider: name, endpoint: s3.url, bucket: bucketOf(name) }));
  const config = parseConfig(JSON.stringify({ regions: json, code: { k: 4, m: 2 }, stripeBytes: 100_000 }), "x.json");
  const stores = storesOf(config, CREDENTIALS);
  const path = join(folder, kind);
  await writeFile(path, bodies[kind]);
  const object = { key: KEYS[kind], source: fileSource(path), contentType: "a/b", headers: {}, force: false };
  const { signal } = new AbortController();
  await putObject(object, partsOf({ config, stores, signal }));
  for (const store of stores) store.close();
  const regions = config.regions.map(({ name, url }) => ({ name, url }));
  const vars = {
    REGIONS: JSON.stringify(
      kind === "public" ? regions : regions.map((one) => ({ ...one, private: true, awsRegion: "us-east-1" })),
    ),
    UNSIGNED: "true",
    ...(kind === "private" && {
      PRIVATE_PREFIXES: '["members/"]',
      BUCKET_CREDENTIALS: JSON.stringify({ "*": CREDENTIALS }),
    }),
    READ_TOKEN,
    ADMIN_TOKEN,
  };
  const workers = await startPops({ pops: ["fra", "lhr"].map((name) => ({ name, vars })) });
  const node = await startPopProcess(
    { variables: { ...vars, POP: "home" }, folder: join(folder, `${kind}-pop`), periodMs: 0 },
    () => {},
  );
  return { s3, workers, node, regions };
}

/** Writes a new configuration of the cache. */
async function purgeAll(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const body = JSON.stringify({ keys: Object.values(KEYS) });
  expect((await fetch(`${url}/v1/purge`, { method: "POST", headers, body })).status).toBe(200);
}

async function setFaults(fault: { readonly kv: "ok" | "down" | "slow" | "stale" }): Promise<void> {
  for (const { workers } of Object.values(sides)) {
    for (const { name } of workers.pops) await workers.setFault(name, fault);
  }
}

/** A client that has just started: it knows the PoPs, and the buckets that anyone may read. */
function read(kind: keyof typeof KEYS, alone?: Pops["pops"]): Promise<Response> {
  const { workers, node, regions } = sides[kind];
  const pops = alone ?? [...workers.pops, { name: "home", url: node.url }];
  const known = kind === "public" ? regions : [];
  const client = new ObjectClient({ prefix: "/ec/", pops, regions: known, delta: undefined, unsigned: true } as never, {
    fetch(url, init) {
      if (!isDown(url)) return fetch(url, init);
      refused++;
      return Promise.reject(new TypeError("Failed to fetch"));
    },
    clock: systemClock,
    sha256: systemSha256,
    random: Math.random,
    codec: async () => javascriptCodec(),
    emit: () => {},
    savesData: () => false,
  });
  const headers = kind === "private" ? { authorization: `Bearer ${READ_TOKEN}` } : {};
  return handleOf(client)(new Request(`https://app.test/ec/${KEYS[kind]}`, { headers }))!;
}

async function expectReads(...kinds: (keyof typeof KEYS)[]): Promise<void> {
  for (const kind of kinds) {
    const response = await read(kind);
    expect(response.status, kind).toBe(200);
    expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), bodies[kind]), kind).toBe(0);
  }
}

const urlsOf = (name: string): string[] =>
  Object.values(sides).map(({ workers, node }) => workers.pops.find((pop) => pop.name === name)?.url ?? node.url);
const anyOf =
  (...names: string[]) =>
  (url: string): boolean =>
    names.flatMap(urlsOf).some((one) => url.startsWith(one));

test("nothing is down", () => expectReads("public", "private"));

// Before anything is cached, because a bundle of all chunks needs no region.
test("each region is down", async () => {
  for (const region of REGIONS) {
    downRegion = region;
    await expectReads("public", "private");
  }
  expect(refused, "they were asked").toBeGreaterThan(0);
});

test("Cron never ran, and then once", async () => {
  await expectReads("public", "private");
  for (const { workers, node } of Object.values(sides)) {
    await workers.cron();
    await node.runPeriod();
  }
  await expectReads("public", "private");
});

test.each(["down", "slow", "stale"] as const)("KV is %s", async (kv) => {
  await setFaults({ kv });
  // Isolates look at KV every five seconds, and stale values show only once there are newer ones.
  const fired = async (): Promise<void> => {
    if (kv === "stale") {
      for (const { workers } of Object.values(sides)) {
        for (const { url } of workers.pops) await purgeAll(url);
        await workers.cron();
      }
    }
    await expectReads("public", "private");
    for (const { workers } of Object.values(sides)) {
      const faults = await Promise.all(workers.pops.map(({ name }) => workers.fault(name)));
      expect(faults.reduce((sum, one) => sum + one.fired, 0)).toBeGreaterThan(0);
    }
  };
  await vi.waitFor(fired, { timeout: 50_000, interval: 500 });
  await expectReads("public", "private");
});

test.each(["fra", "lhr", "home"])("PoP %s is down", async (name) => {
  isDown = anyOf(name);
  await expectReads("public", "private");
  expect(refused, "it was asked").toBeGreaterThan(0);
});

test("all Workers are down: the PoP on Node serves both", async () => {
  isDown = anyOf("fra", "lhr");
  await expectReads("public", "private");
  expect(refused, "they were asked").toBeGreaterThan(0);
});

test("all PoPs are down: the buckets serve the public object, and the private one ends with an error", async () => {
  isDown = anyOf("fra", "lhr", "home");
  await expectReads("public");
  const response = await read("private");
  expect(response.status).toBe(502);
  expect(response.headers.get("x-agarose-error")).toBe("NO_SOURCE");
});

test("Durable Objects refuse every call", async () => {
  for (const kind of ["public", "private"] as const) {
    const { regions } = sides[kind];
    const vars = {
      REGIONS: JSON.stringify(
        kind === "public" ? regions : regions.map((one) => ({ ...one, private: true, awsRegion: "us-east-1" })),
      ),
      UNSIGNED: "true",
      BUCKET_CREDENTIALS: JSON.stringify({ "*": CREDENTIALS }),
      PRIVATE_PREFIXES: '["members/"]',
      READ_TOKEN,
    };
    const workers = await startPops({
      pops: [{ name: "fra", vars }],
      entry: LIMITED_WORKER,
      compatibilityFlags: ["nodejs_als"],
    });
    try {
      const limits = async (method: "GET" | "POST", body?: string): Promise<{ fired: number }> => {
        const worker = await workers.miniflare.getWorker("fra");
        return (await worker.fetch("http://pop.invalid/__limits", { method, ...(body && { body }) })).json() as never;
      };
      await limits("POST", JSON.stringify({ objectsOverloaded: true }));
      const response = await read(kind, workers.pops);
      expect(response.status, kind).toBe(200);
      expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), bodies[kind]), kind).toBe(0);
      // Reads call objects beside the answer: the batch of counts, and the key of reports.
      const fired = async (): Promise<number> => (await limits("GET")).fired;
      await expect.poll(fired, { timeout: 60_000, message: "calls were refused" }).toBeGreaterThan(0);
      await workers.cron().catch(() => {});
      const after = await read(kind, workers.pops);
      expect(Buffer.compare(new Uint8Array(await after.arrayBuffer()), bodies[kind]), kind).toBe(0);
    } finally {
      await workers.dispose();
    }
  }
});
