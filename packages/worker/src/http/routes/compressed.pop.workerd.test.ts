/** Compressed objects at a PoP: inflated for a client that does not accept gzip, and for ranges. */
import { request, type IncomingHttpHeaders } from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomBytes, readBundle, startWorld, type TestWorld } from "../../../test/world.ts";

/** Text, half of which repeats. */
const CONTENT = Buffer.from(Buffer.from(randomBytes(150_000)).toString("hex"));
const BYTES = CONTENT.length;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
  await put("whole", [BYTES], BYTES);
  await put(
    "cut",
    [0, 1, 2].map((i) => Math.min(100_000, BYTES - i * 100_000)),
    100_000,
  );
});
afterAll(() => world.close());

/** Stores segments of these lengths. */
function put(key: string, lengths: readonly number[], segmentBytes: number): Promise<void> {
  const segments = lengths.map((length, i) => gzipSync(CONTENT.subarray(i * segmentBytes, i * segmentBytes + length)));
  return putSegments(key, segments, segmentBytes);
}

/** Stores these segments, which need not be what the manifest says. */
async function putSegments(key: string, segments: readonly Buffer[], segmentBytes: number): Promise<void> {
  const gzip = {
    bytes: BYTES,
    sha256: createHash("sha256").update(CONTENT).digest("hex"),
    segmentBytes,
    segments: segments.map(({ length }) => length),
  };
  await world.put(key, Buffer.concat(segments), { stripeBytes: 64 * 1024, gzip });
}

interface Wire {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The response as it is on the wire. It resolves where the body is cut off, too. */
function wire(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const sent = request(`${world.url}${path}`, { headers, method }, (response) => {
      const parts: Buffer[] = [];
      const end = (): void =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) });
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", end);
      response.on("error", end);
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe.each(["whole", "cut"])("an object (%s)", (key) => {
  test("has the length, the entity tag and the bytes of its content for a client without gzip", async () => {
    const { status, headers, body } = await wire(`/o/${key}`);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ "content-length": String(BYTES), etag: expect.stringMatching(/^"/) });
    expect(headers).toMatchObject({ vary: expect.stringContaining("accept-encoding"), "accept-ranges": "bytes" });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(body.equals(CONTENT)).toBe(true);
  });

  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=99999-100000", 99_999, 100_001],
    ["bytes=150000-", 150_000, BYTES],
    ["bytes=-7", BYTES - 7, BYTES],
  ])("is sent by %s in bytes of its content", async (range, start, end) => {
    const { status, headers, body } = await wire(`/o/${key}`, { range, "accept-encoding": "gzip" });
    expect([status, headers["content-range"]]).toEqual([206, `bytes ${start}-${end - 1}/${BYTES}`]);
    expect(headers).not.toHaveProperty("content-encoding");
    expect(body.equals(CONTENT.subarray(start, end))).toBe(true);
  });

  test("is sent in several ranges of its content", async () => {
    const { status, body } = await wire(`/o/${key}`, { range: "bytes=0-9,200000-200009", "accept-encoding": "gzip" });
    expect(status).toBe(206);
    expect(body.includes(CONTENT.subarray(200_000, 200_010))).toBe(true);
  });

  test("has the head of its content", async () => {
    const { headers } = await wire(`/o/${key}`, { "accept-encoding": "gzip" }, "HEAD");
    expect(headers).toMatchObject({ "content-length": String(BYTES) });
  });

  test("is not sent again to a client that has it", async () => {
    const { headers } = await wire(`/o/${key}`, { "accept-encoding": "gzip" });
    const again = await wire(`/o/${key}`, { "if-none-match": headers.etag!, "accept-encoding": "gzip" });
    expect(again.status).toBe(304);
  });

  test("is cached compressed, and read from there", async () => {
    const { bytes } = (await readBundle(`${world.url}/v1/read/${key}`, key)).plan.manifest!;
    expect(bytes).toBeLessThan(0.62 * BYTES);
    const { plan } = await readBundle(`${world.url}/v1/read/${key}?range=bytes%3D0-1`, key);
    expect(plan.manifest?.gzip?.bytes).toBe(BYTES);
  });
});

describe("a client that accepts gzip", () => {
  test.each(["gzip", "br, gzip;q=0.5", "deflate, GZIP"])("gets a segment as it is stored (%s)", async (accepted) => {
    const { status, headers, body } = await wire("/o/whole", { "accept-encoding": accepted });
    expect(status).toBe(200);
    expect(headers).toMatchObject({ "content-encoding": "gzip", "content-length": String(body.length) });
    expect(headers.etag).toMatch(/^W\/"/);
    expect(body.length).toBeLessThan(0.62 * BYTES);
    expect(gunzipSync(body).equals(CONTENT)).toBe(true);
  });

  test.each(["gzip;q=0", "br", "identity", "gzipped"])("is no client that sends %s", async (accepted) => {
    const { headers, body } = await wire("/o/whole", { "accept-encoding": accepted });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(body.equals(CONTENT)).toBe(true);
  });

  test("gets several segments inflated: some clients read the first alone", async () => {
    const { headers, body } = await wire("/o/cut", { "accept-encoding": "gzip" });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(body.equals(CONTENT)).toBe(true);
  });

  test("goes on where it was only with bytes of the content", async () => {
    const { headers } = await wire("/o/whole", { "accept-encoding": "gzip" });
    const asked = { range: "bytes=10-", "if-range": headers.etag!, "accept-encoding": "gzip" };
    expect((await wire("/o/whole", asked)).status).toBe(200);
  });
});

const MEMBER = gzipSync(CONTENT);

const DAMAGED: [string, Buffer][] = [
  ["longer than signed", gzipSync(Buffer.concat([CONTENT, Buffer.alloc(1)]))],
  ["shorter", gzipSync(CONTENT.subarray(1))],
  ["cut off", MEMBER.subarray(0, -1)],
  ["cut off behind its content", MEMBER.subarray(0, -8)],
  ["followed by other bytes", Buffer.concat([MEMBER, Buffer.alloc(4)])],
  ["two members", Buffer.concat([gzipSync(CONTENT.subarray(0, 9)), gzipSync(CONTENT.subarray(9))])],
  ["followed by an empty member", Buffer.concat([MEMBER, gzipSync("")])],
  ["not compressed", CONTENT],
];
const WRONG_CRC = MEMBER.map((byte, i) => (i === MEMBER.length - 8 ? byte ^ 1 : byte)) as Buffer;

test.each<[string, Buffer]>([...DAMAGED, ["of another CRC-32", WRONG_CRC]])(
  "a segment that is %s cuts the answer off",
  async (name, segment) => {
    const key = `damaged/${name}`;
    await putSegments(key, [segment], BYTES);
    const { body } = await wire(`/o/${encodeURI(key)}`);
    expect(body.length).toBeLessThan(BYTES);
  },
);

test.each(DAMAGED)("a segment that is %s does not end well for a client that accepts gzip", async (name, segment) => {
  const key = `passed on/${name}`;
  await putSegments(key, [segment], BYTES);
  const { headers, body } = await wire(`/o/${encodeURI(key)}`, { "accept-encoding": "gzip" });
  expect(headers).toMatchObject({ "content-encoding": "gzip", "content-length": String(segment.length) });
  expect(body.length).toBeLessThan(segment.length);
});

test("a wrong CRC-32 is for the client that inflates", async () => {
  await putSegments("wrong-crc", [WRONG_CRC], BYTES);
  const { body } = await wire("/o/wrong-crc", { "accept-encoding": "gzip" });
  expect(body.equals(WRONG_CRC)).toBe(true);
  expect(() => gunzipSync(body)).toThrow("incorrect data check");
});

test("a segment that inflates to a thousand times what is signed ends with the signed bytes", async () => {
  await putSegments("bomb", [gzipSync(Buffer.alloc(300_000_000))], BYTES);
  const { body } = await wire("/o/bomb");
  expect(body.length).toBeLessThanOrEqual(BYTES);
});
