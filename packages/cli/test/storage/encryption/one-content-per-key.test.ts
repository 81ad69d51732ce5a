/** No region ever gets two contents of a cell under one data key, whatever makes a put encrypt it again. */
import { randomBytes } from "node:crypto";
import { open, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chunkName, manifestName } from "@agarose/core/format";
import { REGIONS, startTestWorld, type RunResult, type World } from "../../world.ts";

const [REGION] = REGIONS;
const BYTES = 3_000_000;
let world: World;
let path: string;

beforeEach(async () => {
  world = await startTestWorld({ stripeBytes: 400_000 });
  await world.run(["keys", "secret", "own.secret"]);
  path = join(world.dir, "upload-file");
  await writeFile(path, randomBytes(BYTES));
  const thenS = Date.now() / 1000 - 3_600;
  await utimes(path, thenS, thenS);
});

afterEach(() => world.close());

const put = (): Promise<RunResult> => world.run(["put", "upload-file", "--key", "file"]);

/** Changes the file in place, as a database does. */
async function change(): Promise<void> {
  const file = await open(path, "r+");
  await file.write(Buffer.from("a new secret in place of the old one"), 0, 36, 1_000);
  await file.close();
}

/** Whether one body is the beginning of the other: then both are of one content. */
function areOneContent(a: Buffer, b: Buffer): boolean {
  const length = Math.min(a.length, b.length);
  return a.subarray(0, length).equals(b.subarray(0, length));
}

/** Fails each upload of chunk 0, the first one half-way, and returns what they sent. */
function failChunk(onFirst: () => Promise<void>): Buffer[][] {
  const bodies: Buffer[][] = [];
  world.faults.set(REGION, async (request, response, name) => {
    if (request.method !== "PUT" || !/^chunks\/file!.*\/0$/.test(name)) return false;
    const parts: Buffer[] = [];
    const isFirst = bodies.push(parts) === 1;
    let seen = 0;
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      parts.push(part as Buffer);
      seen += (part as Buffer).length;
      if (isFirst && seen > BYTES / 8) break;
    }
    if (isFirst) {
      await onFirst();
      request.destroy();
    } else response.writeHead(503).end();
    return true;
  });
  return bodies;
}

describe("a chunk that is sent again because its region failed", () => {
  test("has the same bytes", async () => {
    const bodies = failChunk(async () => {});
    expect(await put()).toMatchObject({ code: 0 });
    expect(bodies.length).toBeGreaterThan(1);
    const [first, ...others] = bodies.map((parts) => Buffer.concat(parts));
    for (const other of others) {
      expect(other.length).toBeGreaterThan(0);
      expect(areOneContent(first!, other)).toBe(true);
    }
  });

  test("is not sent when the file has changed meanwhile, and the put fails or leaves it to a repair", async () => {
    const bodies = failChunk(change);
    const { code, stderr } = await put();
    expect(bodies.length).toBeGreaterThan(0);
    const [first, ...others] = bodies.map((parts) => Buffer.concat(parts));
    for (const other of others) expect(areOneContent(first!, other)).toBe(true);
    expect([code, stderr]).toEqual([2, expect.stringContaining("FILE_UNREADABLE")]);
    expect(await world.names("manifests/")).toEqual([]);
  });
});

test("a chunk that a region has dropped is not stored again with other bytes", async () => {
  let dropped: Buffer | undefined;
  const again: Buffer[][] = [];
  let upload: string | undefined;
  world.faults.set(REGION, async (request, response, name) => {
    const own = /^chunks\/file!([0-9a-f]+)\/0$/.exec(name);
    if (request.method === "PUT" && own) {
      upload ??= own[1]!;
      if (!dropped) return false;
      const parts: Buffer[] = [];
      again.push(parts);
      // Bytes that arrived before the put gives up count, too.
      for await (const part of request) parts.push(part as Buffer);
      response.writeHead(503).end();
      return true;
    }
    if (request.method === "PUT" && name === manifestName("file") && upload && !dropped) {
      const chunk = chunkName("file", upload, 0);
      dropped = await world.read(REGION, chunk);
      await world.store(REGION).remove([chunk]);
      await change();
    }
    return false;
  });
  const { code, stdout, stderr } = await put();
  expect(dropped!.length).toBeGreaterThan(100_000);
  // The manifest is committed, and the other chunks are there.
  expect([code, `${stdout.toString()}${stderr}`]).toEqual([1, expect.stringContaining("WRITE_UNCERTAIN")]);
  // Frames of aws-chunked stand between the bytes, so a run of them is looked for.
  for (const body of again.map((parts) => Buffer.concat(parts))) {
    expect(body.length < 1_200 || body.includes(dropped!.subarray(1_000, 1_200))).toBe(true);
  }
});
