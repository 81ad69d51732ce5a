/** Multipart uploads through the gateway, with the AWS SDK. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayWorld, type GatewayWorld } from "../../../../test/gateway.ts";
import { MultipartClient, PART_BYTES } from "../../../../test/multipart-client.ts";
import type { World } from "../../../../test/world.ts";

let started: GatewayWorld;
let world: World;
let client: MultipartClient;

beforeAll(async () => {
  started = await startGatewayWorld({ stripeBytes: 1024 * 1024, spoolBytes: 3 * PART_BYTES });
  world = started.world;
  client = new MultipartClient(started.gateway.url);
});

afterAll(async () => {
  client.close();
  await started.close();
});

test("parts in any order, one of them sent twice, become one object", async () => {
  const bytes = randomBytes(PART_BYTES + 12_345);
  const created = await client.create("large");
  const last = await client.upload(created, 9, bytes.subarray(PART_BYTES));
  await client.upload(created, 2, randomBytes(1000));
  const first = await client.upload(created, 2, bytes.subarray(0, PART_BYTES));
  const { ETag } = await client.complete(created, [first, last]);
  const got = await client.get("large");
  expect(got).toMatchObject({ ETag, type: "video/mp4" });
  expect(bytes.equals(got.bytes)).toBe(true);
  expect(await world.verify("large")).toMatchObject({ sound: true });
  await expect(client.complete(created, [first, last])).rejects.toMatchObject({ name: "NoSuchUpload" });
});

test("an upload that is aborted leaves nothing, and gives its room in the spool back", async () => {
  for (let round = 0; round < 2; round++) {
    const created = await client.create("aborted");
    await client.upload(created, 1, Buffer.alloc(PART_BYTES));
    await client.upload(created, 2, Buffer.alloc(PART_BYTES));
    await client.abort(created);
    await expect(client.upload(created, 1, Buffer.alloc(1))).rejects.toMatchObject({ name: "NoSuchUpload" });
  }
  expect(await world.names("manifests/aborted")).toEqual([]);
  expect(await world.names("chunks/aborted")).toEqual([]);
});

test("a part that is too short, unknown or out of order is refused, and the upload stays", async () => {
  const created = await client.create("parts");
  const one = await client.upload(created, 1, Buffer.from("1"));
  const two = await client.upload(created, 2, Buffer.from("2"));
  await expect(client.complete(created, [one, two])).rejects.toMatchObject({ name: "EntityTooSmall" });
  await expect(client.complete(created, [{ ...one, ETag: two.ETag }])).rejects.toMatchObject({ name: "InvalidPart" });
  await client.complete(created, [one]);
  expect(Buffer.from((await client.get("parts")).bytes).toString()).toBe("1");
});
