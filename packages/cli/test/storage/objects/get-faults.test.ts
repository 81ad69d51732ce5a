/** Reads of an object, and of ranges of several blocks, while the region of one chunk answers wrongly or hardly. */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RequestRecord } from "@agarose/core/read";
import { getObject } from "@agarose/storage/objects/get-object";
import { readManifest } from "@agarose/storage/objects/manifests";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chunkPlace, REGIONS, startTestWorld, type World } from "../../world.ts";

/** Three stripes, each of whose shards has eleven blocks. */
const BODY = randomBytes(2_300_000);
const BLOCK_BYTES = 32_768;
const CHUNK = 0;

let world: World;
let put: PutResult;
let stored: Buffer;
let region: string;
let name: string;

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 1_000_000, k: 3, m: 3 });
  put = await world.put("video.mp4", BODY);
  [region, name] = chunkPlace(put, CHUNK);
  stored = await world.read(region, name);
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

/** Answers GETs of the chunk by `send`, and the regions of the others only once it was asked for. */
function answerBy(send: (response: ServerResponse, body: Buffer, start: number) => void) {
  const wasAsked = Promise.withResolvers<void>();
  const open = new Set<ServerResponse>();
  for (const other of REGIONS) {
    world.faults.set(other, async ({ method, headers: { range } }, response, path) => {
      if (method !== "GET" || !path.startsWith("chunks/") || path.endsWith("/256")) return false;
      if (path !== name) {
        await wasAsked.promise;
        return false;
      }
      wasAsked.resolve();
      open.add(response);
      response.on("close", () => open.delete(response));
      const [start, last] = /^bytes=(\d+)-(\d+)$/
        .exec(range ?? "")
        ?.slice(1)
        .map(Number) ?? [0, stored.length - 1];
      const body = stored.subarray(start, last! + 1);
      const length = { "content-length": String(body.length) };
      const at = range === undefined ? {} : { "content-range": `bytes ${start}-${last}/${stored.length}` };
      response.writeHead(range === undefined ? 200 : 206, { ...length, ...at });
      send(response, body, start!);
      return true;
    });
  }
  return open;
}

const RANGES = [
  ["the whole object", 0, BODY.length],
  ["a range within one block", 40_000, 40_010],
  ["a range of several blocks", BLOCK_BYTES + 7, 5 * BLOCK_BYTES - 7],
  ["a range of all stripes", 900_000, 2_200_000],
] as const;

describe.each([
  [
    "stops in the middle of a body",
    (response: ServerResponse, body: Buffer) => response.write(body.subarray(0, body.length / 2)),
  ],
  [
    "drips",
    (response: ServerResponse, body: Buffer) => {
      let at = 0;
      const timer = setInterval(() => response.write(body.subarray(at, ++at)), 20);
      response.on("close", () => clearInterval(timer));
    },
  ],
  [
    "closes the connection in the middle of a body",
    (response: ServerResponse, body: Buffer) =>
      response.write(body.subarray(0, body.length / 2), () => response.destroy()),
  ],
  [
    "answers with the bytes of another range",
    (response: ServerResponse, body: Buffer, start: number) => {
      const from = start >= body.length ? start - body.length : start + 1;
      const other = stored.subarray(from, from + body.length);
      response.end(Buffer.concat([other, Buffer.alloc(body.length - other.length)]));
    },
  ],
])("a region that %s", (_fault, send) => {
  test.each(RANGES)("does not keep `get` from %s", async (_range, start, end) => {
    const open = answerBy(send);
    const range = end - start < BODY.length ? ["--range", `${start}-${end - 1}`] : [];
    const { code, stderr } = await world.run(["get", put.key, "out", ...range]);
    expect(code, stderr).toBe(0);
    expect((await readFile(join(world.dir, "out"))).equals(BODY.subarray(start, end))).toBe(true);
    expect(world.fired.get(region)).toBeGreaterThan(0);
    await expect.poll(() => open.size).toBe(0);
  });
});

test.each([
  ["first", 1],
  ["third", 3],
  ["last", 4],
])("a wrong bit in the %s block of a range is found, and the block comes from other regions", async (_which, block) => {
  const at = block * BLOCK_BYTES + 100;
  let sent = 0;
  answerBy((response, body, start) => {
    if (at >= start && at < start + body.length) sent++;
    response.end(body.map((byte, index) => (start + index === at ? byte ^ 1 : byte)));
  });
  const range = { start: BLOCK_BYTES + 7, end: 5 * BLOCK_BYTES - 7 };
  const parts: Uint8Array[] = [];
  const manifest = await readManifest(put.key, world.parts());
  const { requests } = await getObject(manifest, range, async (part) => parts.push(part), world.parts());
  expect(Buffer.concat(parts).equals(BODY.subarray(range.start, range.end))).toBe(true);
  expect(sent).toBeGreaterThan(0);
  const wrong = expect.objectContaining<Partial<RequestRecord>>({ chunk: CHUNK, error: "CHUNK_CORRUPT" });
  expect(requests).toContainEqual(wrong);
});
