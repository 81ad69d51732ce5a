/** A PoP on Node as a process: what survives a kill, and how it ends. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startBuckets, type BucketServer } from "../../worker/test/bucket-server.ts";
import { putObject, randomBytes, REGIONS } from "../../worker/test/objects.ts";
import { startPopProcess, type PopProcess } from "../test/start-pop-process.ts";

const ADMIN_TOKEN = "admin-token-of-16+";
const content = randomBytes(400_000);
let folder: string;
let buckets: BucketServer;
let pop: PopProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pop-"));
  buckets = await startBuckets();
});
afterEach(async () => {
  await pop?.kill();
  await buckets.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(more: Record<string, string> = {}): Promise<PopProcess> {
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const variables = {
    POP: "own",
    REGIONS: JSON.stringify(regions),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    MANIFEST_TTL_SECONDS: "0",
    ...more,
  };
  return (pop = await startPopProcess({ variables, folder, periodMs: 0 }, () => {}));
}

async function read(): Promise<{ kind: string | null; bytes: Buffer }> {
  const response = await fetch(`${pop!.url}/o/page`);
  return { kind: response.headers.get("x-agarose-read"), bytes: Buffer.from(await response.arrayBuffer()) };
}

async function status(): Promise<{ epoch: number; cache: { objects: { done: number; stripes: number }[] } }> {
  const response = await fetch(`${pop!.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return (await response.json()) as Awaited<ReturnType<typeof status>>;
}

test("the cache and the state are there after kill -9, and reads come from the disk", async () => {
  await putObject(buckets, "page", content);
  await start();
  await read();
  await pop!.runPeriod();
  const before = await status();
  expect(before.cache.objects).toHaveLength(1);
  await pop!.kill();
  expect(pop!.process.signalCode).toBe("SIGKILL");
  await start();
  expect(await status()).toMatchObject({ epoch: before.epoch, cache: before.cache });
  const { kind, bytes } = await read();
  expect(kind).toBe("edge");
  expect(bytes.equals(content)).toBe(true);
});

test("a kill at any moment of a fill leaves a PoP that reads right and fills again", async () => {
  await putObject(buckets, "page", content, { stripeBytes: 20_000 });
  let killed = 0;
  for (const afterMs of [5, 40, 90, 160, 250]) {
    await start();
    await read();
    const period = pop!.runPeriod().then(
      () => "ended",
      () => "killed",
    );
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await pop!.kill();
    if ((await period) === "killed") killed++;
  }
  expect(killed, "periods that were cut off").toBeGreaterThan(0);
  await start();
  for (let i = 0; i < 3; i++) {
    expect((await read()).bytes.equals(content)).toBe(true);
    await pop!.runPeriod().catch(() => {});
  }
  const { objects } = (await status()).cache;
  expect(objects.every(({ done, stripes }) => done === stripes)).toBe(true);
  expect((await read()).bytes.equals(content)).toBe(true);
});

test.each([
  ["what memory holds outlives its files", {}, "edge"],
  ["without memory, each read is of the files", { MEMORY_BYTES: "0" }, "origin"],
])("%s", async (_name, variables, kind) => {
  await putObject(buckets, "page", content);
  await start(variables);
  await read();
  await pop!.runPeriod();
  // It looks for a new configuration every 5 s.
  await expect.poll(async () => (await read()).kind, { timeout: 60_000 }).toBe("edge");
  await rm(join(folder, "chunks"), { recursive: true });
  const after = await read();
  expect(after.bytes.equals(content)).toBe(true);
  expect(after.kind).toBe(kind);
});

test("a client that claims an address in Cloudflare's header is answered", async () => {
  await putObject(buckets, "page", content);
  await start();
  const response = await fetch(`${pop!.url}/o/page`, { headers: { "cf-connecting-ip": "198.51.100.7" } });
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
});

test("a chunk that is damaged on disk is not served", async () => {
  await putObject(buckets, "page", content);
  await start();
  await read();
  await pop!.runPeriod();
  await pop!.kill();
  const chunks = join(folder, "chunks");
  let damaged = 0;
  for (const shard of (await readdir(chunks)).filter((name) => name !== "new")) {
    for (const file of await readdir(join(chunks, shard))) {
      await writeFile(join(chunks, shard, file), randomBytes(30_000, 7));
      damaged++;
    }
  }
  expect(damaged).toBeGreaterThan(0);
  await start();
  expect((await read()).bytes.equals(content)).toBe(true);
});
