/** Multipart uploads through the gateway, with the AWS SDK. */
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { gatewayOver, signed, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { MultipartClient, PART_BYTES } from "../../multipart-client.ts";
import { REGIONS, type World } from "../../world.ts";

const DAY_MS = 86_400_000;

let started: GatewayWorld;
let world: World;
let client: MultipartClient;

beforeAll(async () => {
  started = await startGatewayWorld({ stripeBytes: 1024 * 1024, spoolBytes: 3 * PART_BYTES });
  world = started.world;
  client = new MultipartClient(started.gateway);
});

afterEach(() => {
  world.faults.clear();
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
  const second = await client.get("large", 2);
  expect([second.parts, bytes.subarray(PART_BYTES).equals(second.bytes)]).toEqual([2, true]);
  await expect(client.get("large", 3)).rejects.toMatchObject({ name: "InvalidPartNumber" });
  const single = await client.create("single");
  await client.complete(single, [await client.upload(single, 1, bytes.subarray(0, 1000))]);
  expect(await client.get("single", 1)).toMatchObject({ parts: 1, bytes: { length: 1000 } });
});

test("an upload that is completed again, while that runs or later, answers the same", async () => {
  const created = await client.create("twice");
  const parts = [await client.upload(created, 1, randomBytes(1000))];
  let claims = 0;
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("claims/")) return false;
      claims++;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return false;
    });
  }
  const answers = await Promise.all([client.complete(created, parts), client.complete(created, parts)]);
  world.faults.clear();
  expect(claims, "the fault fired").toBeGreaterThan(0);
  answers.push(await client.complete(created, parts));
  const { ETag } = await client.get("twice");
  expect(answers.map((answer) => answer.ETag)).toEqual([ETag, ETag, ETag]);
  const other = client.complete(created, [{ ...parts[0]!, PartNumber: 2 }]);
  await expect(other, "other parts are another request").rejects.toMatchObject({ name: "OperationAborted" });
});

test("an upload whose regions take long is answered by white space until it is stored, or by why it is not", async () => {
  let isHeld = true;
  let held = 0;
  for (const region of REGIONS) {
    world.faults.set(region, async (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("claims/")) return false;
      held++;
      await vi.waitFor(() => expect(isHeld).toBe(false), { timeout: 20_000 });
      if (name.includes("failing")) response.writeHead(403).end();
      return name.includes("failing");
    });
  }
  const begun = new Map<string, { answer: Response; text: Promise<string> }>();
  for (const key of ["slow", "failing"]) {
    const created = await client.create(key);
    const { ETag = "" } = await client.upload(created, 1, randomBytes(1000));
    const url = await signed(started.gateway, { key, method: "POST", query: { uploadId: created.UploadId! } });
    const part = `<Part><PartNumber>1</PartNumber><ETag>${ETag}</ETag></Part>`;
    const body = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`;
    const answer = await fetch(url, { method: "POST", body });
    begun.set(key, { answer, text: answer.text() });
  }
  expect(held, "the fault fired").toBeGreaterThan(0);
  isHeld = false;
  const slow = begun.get("slow")!;
  expect([slow.answer.status, await slow.text]).toEqual([
    200,
    expect.stringMatching(/^<\?xml [^>]*>\s+<CompleteMultipartUploadResult .*<ETag>/),
  ]);
  expect((await client.get("slow")).bytes).toHaveLength(1000);
  const failing = begun.get("failing")!;
  expect(failing.answer.status).toBe(200);
  expect(await failing.text).toMatch(/^<\?xml [^>]*>\s+<Error><Code>\w+<\/Code>/);
});

test("uploads that nobody completes are listed, and end when they are old or their room is needed", async () => {
  let aheadMs = 0;
  const gateway = await gatewayOver(world, { spoolBytes: 2 * PART_BYTES, nowMs: () => Date.now() + aheadMs });
  const near = new MultipartClient(gateway);
  near.setAhead(() => aheadMs);
  try {
    const [left, young] = [await near.create("left"), await near.create("young")];
    await near.upload(left, 1, Buffer.alloc(PART_BYTES));
    expect(await near.list()).toEqual(["left", "young"]);
    aheadMs += DAY_MS / 2;
    await near.upload(young, 1, Buffer.alloc(100));
    const tooMuch = near.upload(young, 2, Buffer.alloc(PART_BYTES));
    await expect(tooMuch).rejects.toMatchObject({ name: "ServiceUnavailable" });
    aheadMs += DAY_MS / 2 + 60_000;
    await near.upload(young, 2, Buffer.alloc(PART_BYTES));
    expect(await near.list()).toEqual(["young"]);
    aheadMs += 7 * DAY_MS;
    await near.create("new");
    expect(await near.list()).toEqual(["new"]);
  } finally {
    near.close();
    await gateway.close(0);
  }
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
