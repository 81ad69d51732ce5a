/** Streams that are too long for one put. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CREDENTIALS, REGIONS, startTestWorld, type World } from "../../world.ts";

const MIB = 1024 * 1024;
const BYTES = randomBytes(23 * MIB + 5);

let world: World;
let store: S3Store;
beforeEach(async () => {
  world = await startTestWorld();
  const region = world.config.regions[0]!;
  store = new S3Store(region, { credentials: CREDENTIALS, attempts: 1, partBytes: 5 * MIB });
});
afterEach(async () => {
  store.close();
  await world.close();
});

/** A put of `bytes`, in buffers that end elsewhere than the parts, and the requests that it makes. */
async function put(bytes: Buffer): Promise<void> {
  const buffers = Array.from({ length: Math.ceil(bytes.length / 1_000_003) }, (_, i) =>
    bytes.subarray(i * 1_000_003, (i + 1) * 1_000_003),
  );
  const options = { bytes: bytes.length, contentType: "application/octet-stream", cacheControl: "no-cache" };
  await store.put("long", Readable.from(buffers, { objectMode: false }), options);
}

test("are stored in parts, and are there as one object", async () => {
  const numbers: string[] = [];
  world.faults.set(REGIONS[0], (request) => {
    const number = new URL(request.url!, "http://x").searchParams.get("partNumber");
    if (number) numbers.push(number);
    return false;
  });
  await put(BYTES);
  expect(numbers).toEqual(["1", "2", "3", "4", "5"]);
  expect((await world.read(REGIONS[0], "long")).equals(BYTES)).toBe(true);
});

test("of four parts or fewer are stored by one put", async () => {
  let requests = 0;
  world.faults.set(REGIONS[0], () => {
    requests++;
    return false;
  });
  await put(BYTES.subarray(0, 20 * MIB));
  expect(requests).toBe(1);
});

test("leave nothing behind when a part fails", async () => {
  const ends: string[] = [];
  world.faults.set(REGIONS[0], (request, response) => {
    if (request.method === "DELETE") ends.push(request.url!);
    if (!request.url!.includes("partNumber=3")) return false;
    request.resume();
    response.writeHead(500).end();
    return true;
  });
  await expect(put(BYTES)).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(world.fired.get(REGIONS[0])).toBe(1);
  expect(ends).toEqual([expect.stringContaining("uploadId=")]);
  expect(await world.names()).toEqual([]);
});
