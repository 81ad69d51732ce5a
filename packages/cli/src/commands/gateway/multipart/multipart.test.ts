/** Multipart uploads through the gateway, with the AWS SDK. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { GATEWAY_KEYS, startGatewayWorld, type GatewayWorld } from "../../../../test/gateway.ts";
import type { World } from "../../../../test/world.ts";
import type { Gateway } from "../server.ts";

const PART_BYTES = 5 * 1024 * 1024;
const Bucket = "agarose";
let started: GatewayWorld;
let world: World;
let gateway: Gateway;
let client: S3Client;

beforeAll(async () => {
  started = await startGatewayWorld({ stripeBytes: 1024 * 1024, spoolBytes: 3 * PART_BYTES });
  ({ world, gateway } = started);
  const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1 };
  client = new S3Client({ ...shared, endpoint: gateway.url, credentials: GATEWAY_KEYS });
});

afterAll(async () => {
  client.destroy();
  await started.close();
});

async function create(Key: string) {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key, ContentType: "video/mp4" }));
  return { Bucket, Key, UploadId };
}

type Created = Awaited<ReturnType<typeof create>>;

async function upload(created: Created, PartNumber: number, Body: Uint8Array) {
  const { ETag } = await client.send(new UploadPartCommand({ ...created, PartNumber, Body }));
  return { PartNumber, ETag };
}

function complete(created: Created, Parts: { PartNumber: number; ETag: string | undefined }[]) {
  return client.send(new CompleteMultipartUploadCommand({ ...created, MultipartUpload: { Parts } }));
}

test("parts in any order, one of them sent twice, become one object", async () => {
  const bytes = randomBytes(PART_BYTES + 12_345);
  const created = await create("large");
  const last = await upload(created, 9, bytes.subarray(PART_BYTES));
  await upload(created, 2, randomBytes(1000));
  const first = await upload(created, 2, bytes.subarray(0, PART_BYTES));
  const { ETag } = await complete(created, [first, last]);
  const answer = await client.send(new GetObjectCommand({ Bucket, Key: "large" }));
  expect(answer).toMatchObject({ ETag, ContentType: "video/mp4" });
  expect(bytes.equals(await answer.Body!.transformToByteArray())).toBe(true);
  expect(await world.verify("large")).toMatchObject({ sound: true });
  await expect(complete(created, [first, last])).rejects.toMatchObject({ name: "NoSuchUpload" });
});

test("an upload that is aborted leaves nothing, and gives its room in the spool back", async () => {
  for (let round = 0; round < 2; round++) {
    const created = await create("aborted");
    await upload(created, 1, Buffer.alloc(PART_BYTES));
    await upload(created, 2, Buffer.alloc(PART_BYTES));
    await client.send(new AbortMultipartUploadCommand(created));
    await expect(upload(created, 1, Buffer.alloc(1))).rejects.toMatchObject({ name: "NoSuchUpload" });
  }
  expect(await world.names("manifests/aborted")).toEqual([]);
  expect(await world.names("chunks/aborted")).toEqual([]);
});

test("a part that is too short, unknown or out of order is refused, and the upload stays", async () => {
  const created = await create("parts");
  const one = await upload(created, 1, Buffer.from("1"));
  const two = await upload(created, 2, Buffer.from("2"));
  await expect(complete(created, [one, two])).rejects.toMatchObject({ name: "EntityTooSmall" });
  await expect(complete(created, [{ ...one, ETag: two.ETag }])).rejects.toMatchObject({ name: "InvalidPart" });
  await complete(created, [one]);
  const answer = await client.send(new GetObjectCommand({ Bucket, Key: "parts" }));
  expect(await answer.Body!.transformToString()).toBe("1");
});
