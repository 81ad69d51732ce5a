/** Multipart uploads in a folder of their own, which survive the gateway. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { acceptUnsigned } from "@agarose/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { GATEWAY_KEYS } from "../../../../test/gateway.ts";
import { startTestWorld, type World } from "../../../../test/world.ts";
import { loadCodec, loadEncoder } from "../../../lib/context.ts";
import { startGateway, type Gateway } from "../server.ts";

const PART_BYTES = 5 * 1024 * 1024;
const WEEK_MS = 7 * 86_400_000;
const Bucket = "agarose";
const Key = "folder/large.mp4";
let world: World;
let uploads: string;
let gateway: Gateway;
let client: S3Client;

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
  const { config, stores } = world;
  const { signal } = new AbortController();
  const files = { codec: loadCodec, encoder: loadEncoder };
  const context = { config, stores, signal, trust: acceptUnsigned, ...files, json: false };
  gateway = await startGateway({
    credentials: GATEWAY_KEYS,
    port: 0,
    host: "127.0.0.1",
    spoolBytes,
    uploads,
    context,
  });
  client = clientOf(gateway.url);
}

async function close(): Promise<void> {
  client.destroy();
  await gateway.close(0);
}

async function restart(spoolBytes?: number): Promise<void> {
  await close();
  await open(spoolBytes);
}

function clientOf(endpoint: string): S3Client {
  const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: GATEWAY_KEYS };
  return new S3Client({ ...shared, endpoint });
}

async function create() {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key, ContentType: "video/mp4" }));
  return { Bucket, Key, UploadId };
}

type Created = Awaited<ReturnType<typeof create>>;

async function upload(created: Created, PartNumber: number, Body: Uint8Array, by = client) {
  const { ETag } = await by.send(new UploadPartCommand({ ...created, PartNumber, Body }));
  return { PartNumber, ETag };
}

type Part = Awaited<ReturnType<typeof upload>>;

function complete(created: Created, Parts: Part[], by = client) {
  return by.send(new CompleteMultipartUploadCommand({ ...created, MultipartUpload: { Parts } }));
}

/** What is in the folder beside the bodies of the gateway itself. */
async function kept(): Promise<string[]> {
  const names = await readdir(uploads, { recursive: true });
  return names.filter((name) => !name.startsWith("agarose-gateway-"));
}

test("an upload that began before a restart continues, with the parts that were acknowledged last", async () => {
  const bytes = randomBytes(2 * PART_BYTES + 999);
  const created = await create();
  await upload(created, 1, randomBytes(PART_BYTES));
  const first = await upload(created, 1, bytes.subarray(0, PART_BYTES));
  await restart();
  const second = await upload(created, 2, bytes.subarray(PART_BYTES, 2 * PART_BYTES));
  await restart();
  const third = await upload(created, 3, bytes.subarray(2 * PART_BYTES));
  await complete(created, [first, second, third]);
  const answer = await client.send(new GetObjectCommand({ Bucket, Key }));
  expect(answer.ContentType).toBe("video/mp4");
  expect(bytes.equals(await answer.Body!.transformToByteArray())).toBe(true);
  expect(await kept()).toEqual([]);
  await restart();
  await expect(complete(created, [first])).rejects.toMatchObject({ name: "NoSuchUpload" });
});

test("a part that was acknowledged survives kill -9", async () => {
  await close();
  const body = randomBytes(PART_BYTES);
  const run = async (use: (url: string) => Promise<void>): Promise<void> => {
    const printed = Promise.withResolvers<string>();
    const done = Promise.withResolvers<void>();
    const env = {
      AGAROSE_GATEWAY_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
      AGAROSE_GATEWAY_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
    };
    const ended = world.spawn(["gateway", "--port", "0", "--json", "--uploads", uploads], {
      env,
      killWhen: done.promise,
      killSignal: "SIGKILL",
      onStdout: (text) => printed.resolve(String(text)),
    });
    try {
      await use((JSON.parse(await printed.promise) as { url: string }).url);
    } finally {
      done.resolve();
      await ended;
    }
  };
  let created: Created;
  let part: Part;
  await run(async (url) => {
    client = clientOf(url);
    created = await create();
    part = await upload(created, 7, body);
    client.destroy();
  });
  await run(async (url) => {
    client = clientOf(url);
    await complete(created, [part]);
    client.destroy();
  });
  expect((await world.get(Key)).equals(body)).toBe(true);
  await open();
});

test("an upload that is aborted, also after a restart, leaves nothing and gives its room back", async () => {
  const created = await create();
  await upload(created, 1, Buffer.alloc(PART_BYTES));
  await upload(created, 2, Buffer.alloc(PART_BYTES));
  await restart(2 * PART_BYTES + 5_000);
  await expect(upload(created, 3, Buffer.alloc(PART_BYTES)), "what was there counts").rejects.toMatchObject({
    name: "ServiceUnavailable",
  });
  await client.send(new AbortMultipartUploadCommand(created));
  expect(await kept()).toEqual([]);
  const other = await create();
  await upload(other, 1, Buffer.alloc(2 * PART_BYTES));
});

test("bytes without their record, and a record without its bytes, are no part", async () => {
  const created = await create();
  const one = await upload(created, 1, Buffer.alloc(PART_BYTES, 1));
  const two = await upload(created, 2, Buffer.alloc(PART_BYTES, 2));
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
  await expect(complete(created, [one])).rejects.toMatchObject({ name: "InvalidPart" });
  await expect(complete(created, [two])).rejects.toMatchObject({ name: "InvalidPart" });
});

test("of parts that come twice at once, a restart finds the one that counts", async () => {
  const bodies = Array.from({ length: 4 }, (_, i) => Buffer.alloc(200_000, i));
  const created = await create();
  const parts = await Promise.all(bodies.map((body) => upload(created, 1, body)));
  const isThere = async (part: Part): Promise<boolean> =>
    complete(created, [part]).then(
      () => true,
      () => false,
    );
  await restart();
  const there: boolean[] = [];
  for (const part of parts) there.push(await isThere(part));
  expect(there.filter(Boolean)).toHaveLength(1);
  const body = bodies[there.indexOf(true)]!;
  expect((await world.get(Key)).equals(body)).toBe(true);
});

test("an upload that is a week old goes with the next start, and the folder of something else stays", async () => {
  const [old, young] = [await create(), await create()];
  await upload(old, 1, Buffer.alloc(10));
  const atS = (Date.now() - WEEK_MS - 60_000) / 1000;
  await utimes(join(uploads, old.UploadId!, "upload.json"), atS, atS);
  await writeFile(join(uploads, "notes.txt"), "of something else");
  await restart();
  expect((await kept()).toSorted()).toEqual(
    ["notes.txt", young.UploadId!, join(young.UploadId!, "upload.json")].toSorted(),
  );
  await expect(upload(old, 2, Buffer.alloc(10))).rejects.toMatchObject({ name: "NoSuchUpload" });
  await upload(young, 1, Buffer.alloc(10));
});

test("two gateways do not share a folder, and a file is no folder", async () => {
  const own = { AGAROSE_GATEWAY_ACCESS_KEY_ID: "a", AGAROSE_GATEWAY_SECRET_ACCESS_KEY: "b" };
  const second = await world.run(["gateway", "--port", "0", "--uploads", uploads], own);
  expect([second.code, second.stderr]).toEqual([2, expect.stringMatching(/USAGE: the gateway of process \d+ has/)]);
  const path = join(uploads, "file");
  await writeFile(path, "");
  const third = await world.run(["gateway", "--port", "0", "--uploads", path], own);
  expect([third.code, third.stderr]).toEqual([2, expect.stringMatching(/USAGE: --uploads .* is no folder/)]);
});
