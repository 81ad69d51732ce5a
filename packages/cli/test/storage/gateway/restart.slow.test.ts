/** Multipart uploads in a folder of their own, which survive the gateway. */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { CompletedPart } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { GATEWAY_KEYS, gatewayOver } from "../../gateway.ts";
import { MultipartClient, PART_BYTES, type Created } from "../../multipart-client.ts";
import { startTestWorld, type World } from "../../world.ts";
import type { Gateway } from "@agarose/storage/gateway/gateway";

const WEEK_MS = 7 * 86_400_000;
const KEY = "folder/large.mp4";
let world: World;
let uploads: string;
let gateway: Gateway;
let client: MultipartClient;

beforeEach(async () => {
  world = await startTestWorld({ stripeBytes: 1024 * 1024 });
  uploads = await mkdtemp(join(tmpdir(), "agarose-uploads-"));
  await open();
});

afterEach(async () => {
  await close();
  await world.close();
  await rm(uploads, { recursive: true, force: true });
});

async function open(spoolBytes = 4 * PART_BYTES): Promise<void> {
  gateway = await gatewayOver(world, { spoolBytes, uploads });
  client = new MultipartClient(gateway);
}

async function close(): Promise<void> {
  client.close();
  await gateway.close(0);
}

async function restart(spoolBytes?: number): Promise<void> {
  await close();
  await open(spoolBytes);
}

/** Files in the folder other than the bodies of the gateway itself. */
async function kept(): Promise<string[]> {
  const names = await readdir(uploads, { recursive: true });
  return names.filter((name) => name !== "lock" && !name.startsWith("agarose-gateway-"));
}

test("an upload that began before a restart continues, with the parts that were acknowledged last", async () => {
  const bytes = randomBytes(2 * PART_BYTES + 999);
  const created = await client.create(KEY);
  await client.upload(created, 1, randomBytes(PART_BYTES));
  const first = await client.upload(created, 1, bytes.subarray(0, PART_BYTES));
  await restart();
  const second = await client.upload(created, 2, bytes.subarray(PART_BYTES, 2 * PART_BYTES));
  await restart();
  const third = await client.upload(created, 3, bytes.subarray(2 * PART_BYTES));
  await client.complete(created, [first, second, third]);
  const got = await client.get(KEY);
  expect(got.type).toBe("video/mp4");
  expect(bytes.equals(got.bytes)).toBe(true);
  const answer = [created.UploadId!, join(created.UploadId!, "done.json")];
  expect((await kept()).toSorted(), "the answer alone").toEqual(answer);
  await restart();
  expect((await client.complete(created, [first, second, third])).ETag).toBe(got.ETag);
  await expect(client.complete(created, [first])).rejects.toMatchObject({ name: "OperationAborted" });
  await expect(client.upload(created, 1, bytes)).rejects.toMatchObject({ name: "NoSuchUpload" });
});

test("a part that was acknowledged survives kill -9", async () => {
  await close();
  const body = randomBytes(PART_BYTES);
  const run = async (use: (gateway: { readonly url: string }) => Promise<void>): Promise<void> => {
    const printed = Promise.withResolvers<string>();
    const done = Promise.withResolvers<void>();
    const env = {
      AGAROSE_GATEWAY_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
      AGAROSE_GATEWAY_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
    };
    const ended = world.spawn(["gateway", "--listen", "127.0.0.1:0", "--json", "--uploads", uploads], {
      env,
      killWhen: done.promise,
      killSignal: "SIGKILL",
      onStdout: (text) => printed.resolve(String(text)),
    });
    try {
      await use(JSON.parse(await printed.promise) as { url: string });
    } finally {
      done.resolve();
      await ended;
    }
  };
  let created: Created;
  let part: CompletedPart;
  await run(async (other) => {
    client = new MultipartClient(other);
    created = await client.create(KEY);
    part = await client.upload(created, 7, body);
    client.close();
  });
  await run(async (other) => {
    client = new MultipartClient(other);
    await client.complete(created, [part]);
    client.close();
  });
  expect((await world.get(KEY)).equals(body)).toBe(true);
  await open();
});

test("an upload that is aborted, also after a restart, leaves nothing and gives its room back", async () => {
  const created = await client.create(KEY);
  await client.upload(created, 1, Buffer.alloc(PART_BYTES));
  await client.upload(created, 2, Buffer.alloc(PART_BYTES));
  await restart(2 * PART_BYTES + 5_000);
  await expect(client.upload(created, 3, Buffer.alloc(PART_BYTES)), "what was there counts").rejects.toMatchObject({
    name: "ServiceUnavailable",
  });
  await client.abort(created);
  expect(await kept()).toEqual([]);
  const other = await client.create(KEY);
  await client.upload(other, 1, Buffer.alloc(2 * PART_BYTES));
});

test("bytes without their record, and a record without its bytes, are no part", async () => {
  const created = await client.create(KEY);
  const one = await client.upload(created, 1, Buffer.alloc(PART_BYTES, 1));
  const two = await client.upload(created, 2, Buffer.alloc(PART_BYTES, 2));
  const folder = join(uploads, created.UploadId!);
  const names = await readdir(folder);
  await rm(join(folder, "1.json"));
  await writeFile(
    join(
      folder,
      names.find((name) => name.startsWith("2-"))!,
    ),
    "short",
  );
  await writeFile(join(folder, "3.json"), "{ no JSON");
  await restart();
  expect((await readdir(folder)).filter((name) => /^\d+-/.test(name))).toEqual([]);
  await expect(client.complete(created, [one])).rejects.toMatchObject({ name: "InvalidPart" });
  await expect(client.complete(created, [two])).rejects.toMatchObject({ name: "InvalidPart" });
});

test("of parts that come twice at once, a restart finds the one that counts", async () => {
  const bodies = Array.from({ length: 4 }, (_, i) => Buffer.alloc(200_000, i));
  const created = await client.create(KEY);
  const parts = await Promise.all(bodies.map((body) => client.upload(created, 1, body)));
  const isThere = async (part: CompletedPart): Promise<boolean> =>
    client.complete(created, [part]).then(
      () => true,
      () => false,
    );
  await restart();
  const there: boolean[] = [];
  for (const part of parts) there.push(await isThere(part));
  expect(there.filter(Boolean)).toHaveLength(1);
  const body = bodies[there.indexOf(true)]!;
  expect((await world.get(KEY)).equals(body)).toBe(true);
});

test("an upload that is a week old goes with the next start, and the folder of something else stays", async () => {
  const [old, young] = [await client.create(KEY), await client.create(KEY)];
  await client.upload(old, 1, Buffer.alloc(10));
  const atS = (Date.now() - WEEK_MS - 60_000) / 1000;
  await utimes(join(uploads, old.UploadId!, "upload.json"), atS, atS);
  await writeFile(join(uploads, "notes.txt"), "of something else");
  await restart();
  expect((await kept()).toSorted()).toEqual(
    ["notes.txt", young.UploadId!, join(young.UploadId!, "upload.json")].toSorted(),
  );
  await expect(client.upload(old, 2, Buffer.alloc(10))).rejects.toMatchObject({ name: "NoSuchUpload" });
  await client.upload(young, 1, Buffer.alloc(10));
});

test("what a killed gateway with the number of this process left is no other gateway: in containers all have one", async () => {
  const created = await client.create(KEY);
  const part = await client.upload(created, 1, Buffer.alloc(10, 1));
  await close();
  const left = join(uploads, `agarose-gateway-${process.pid}-killed`);
  await mkdir(left);
  await open();
  expect(await readdir(uploads)).not.toContain(basename(left));
  await client.complete(created, [part]);
});

test("two gateways do not share a folder, and a file is no folder", async () => {
  const own = { AGAROSE_GATEWAY_ACCESS_KEY_ID: "a", AGAROSE_GATEWAY_SECRET_ACCESS_KEY: "b" };
  const second = await world.run(["gateway", "--listen", "127.0.0.1:0", "--uploads", uploads], own);
  expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/STORE_FAILED: .* cannot be locked/)]);
  const path = join(uploads, "file");
  await writeFile(path, "");
  const third = await world.run(["gateway", "--listen", "127.0.0.1:0", "--uploads", path], own);
  expect([third.code, third.stderr]).toEqual([2, expect.stringMatching(/USAGE: .* is not a folder for uploads/)]);
});
