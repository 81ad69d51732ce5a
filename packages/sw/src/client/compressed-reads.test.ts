/** Compressed objects, as a browser's worker reads them. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import type { ObjectClient } from "./object-client.ts";

const KEY = "app/main.js";
const CONTENT = Buffer.from(Buffer.from(sampleBytes(150_000)).toString("hex"));
const BYTES = CONTENT.length;

/** A world with the object, in segments of `segmentBytes`, compressed from `content`. */
function startWorld(segmentBytes = BYTES, content = CONTENT) {
  const world = new FakeWorld();
  const segments: Buffer[] = [];
  for (let at = 0; at < BYTES; at += segmentBytes) {
    segments.push(gzipSync(content.subarray(at, at + segmentBytes >= BYTES ? undefined : at + segmentBytes)));
  }
  const sha256 = createHash("sha256").update(CONTENT).digest("hex");
  const gzip = { bytes: BYTES, sha256, segmentBytes, segments: segments.map(({ length }) => length) };
  const stored = new Uint8Array(Buffer.concat(segments));
  world.put(KEY, stored, { stripeBytes: 100_000, requires: ["gzip"], gzip });
  return { world, stored, client: world.client() };
}

/** Lets time pass until `promise` is settled: the platform inflates beside the virtual clock. */
async function settle<T>(world: FakeWorld, promise: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const watch = (): void => void (state.isSettled = true);
  promise.then(watch, watch);
  while (!state.isSettled) {
    await world.clock.pass(1);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return promise;
}

async function read(world: FakeWorld, client: ObjectClient, headers: Record<string, string> = {}) {
  const answer = await settle(world, client.answer({ key: KEY, method: "GET", headers: new Headers(headers) }));
  const body = new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).bytes();
  return { ...answer, bytes: await settle(world, body) };
}

test.each([BYTES, 70_000])(
  "an object in segments of %i bytes is inflated, whole and by range",
  async (segmentBytes) => {
    const { world, client } = startWorld(segmentBytes);
    const whole = await read(world, client);
    expect(whole.headers).toMatchObject({ "content-length": String(BYTES), "accept-ranges": "bytes" });
    expect(whole.headers).not.toHaveProperty("content-encoding");
    expect(Buffer.compare(whole.bytes, CONTENT)).toBe(0);
    for (const [start, end] of [
      [0, 1],
      [69_999, 70_001],
      [120_000, BYTES],
    ] as const) {
      const part = await read(world, client, { range: `bytes=${start}-${end - 1}` });
      expect([part.status, part.headers["content-range"]]).toEqual([206, `bytes ${start}-${end - 1}/${BYTES}`]);
      expect(Buffer.compare(part.bytes, CONTENT.subarray(start, end)), `${start}`).toBe(0);
    }
  },
);

test("a range asks for what its segments take, and not for the whole object", async () => {
  const { world, client } = startWorld(70_000);
  await read(world, client, { range: "bytes=0-0" });
  world.log.length = 0;
  await read(world, client, { range: "bytes=280000-280001" });
  const ranges = world.log.map(({ url }) => url).filter((url) => url.includes("/chunks/"));
  expect(ranges.length).toBeGreaterThan(0);
  expect(ranges.length).toBeLessThan(9);
});

test.each([
  ["more", Buffer.concat([CONTENT, Buffer.alloc(1)])],
  ["less", CONTENT.subarray(0, -1)],
])("a body that inflates to %s than signed fails with OBJECT_CORRUPT", async (_what, content) => {
  const { world, client } = startWorld(BYTES, content);
  await expect(read(world, client)).rejects.toMatchObject({ code: "OBJECT_CORRUPT" });
});
