/** The table of ranges over HTTP, answered by the edge in workerd. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyObjectCases, mediaProbes, rangeCases, type RangeCase } from "@agarose/core/testing";
import { randomBytes, startWorld, type TestWorld } from "../../../test/world.ts";

const BYTES = 150_001;
/** Represents the object's own tag and date, which are known only once it has been put. */
const PLACEHOLDER = { bytes: BYTES, etag: '"this"', lastModified: "Sun, 06 Nov 1994 08:49:37 GMT" };

const ofOneRange = (request: RangeCase): boolean => !request.isSeveral;

const content = randomBytes(BYTES);
let world: TestWorld;
let cases: Map<string, RangeCase>;
let etag: string;

beforeAll(async () => {
  world = await startWorld();
  await world.put("ranged", content);
  await world.put("empty", new Uint8Array());
  const { headers } = await fetch(`${world.url}/o/ranged`, { method: "HEAD" });
  etag = headers.get("etag")!;
  const object = { bytes: BYTES, etag, lastModified: headers.get("last-modified")! };
  const names = rangeCases(PLACEHOLDER).map(({ name }) => name);
  cases = new Map(rangeCases(object).map((request, i) => [names[i]!, request]));
});
afterAll(() => world.close());

async function check(key: string, object: Uint8Array, { method, headers, expected }: RangeCase): Promise<void> {
  const response = await fetch(`${world.url}/o/${key}`, { method, headers });
  const body = new Uint8Array(await response.arrayBuffer());
  expect(response.status).toBe(expected.status);
  expect(response.headers.get("content-range")).toBe(expected.contentRange);
  if (expected.status === 416) {
    expect(response.headers.get("x-agarose-error")).toBe("RANGE_UNSATISFIABLE");
    return;
  }
  expect(response.headers.get("accept-ranges")).toBe("bytes");
  expect(body).toEqual(object.subarray(...(expected.body ?? [0, 0])));
}

describe("the edge's answer to", () => {
  const names = rangeCases(PLACEHOLDER)
    .filter(ofOneRange)
    .map(({ name }) => name);
  test.each(names)("%s", (name) => check("ranged", content, cases.get(name)!));
  test.each(emptyObjectCases())("$name", (request) => check("empty", new Uint8Array(), request));
});

test("the probes of a media element get their bytes of one version", async () => {
  for (const [start, end] of mediaProbes(BYTES)) {
    const response = await fetch(`${world.url}/o/ranged`, { headers: { range: `bytes=${start}-${end - 1}` } });
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBe(`bytes ${start}-${end - 1}/${BYTES}`);
    expect(response.headers.get("content-length")).toBe(String(end - start));
    expect(response.headers.get("etag")).toBe(etag);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(content.subarray(start, end));
  }
});

describe("several ranges at the edge", () => {
  const ask = (range: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${world.url}/o/ranged`, { headers: { range, ...headers } });

  test("arrive in one response, in their order, and those without a byte are left out", async () => {
    const response = await ask(`bytes=140000-,0-9,${BYTES}-, 70000-70099`);
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBeNull();
    expect(response.headers.get("etag")).toBe(etag);
    const body = Buffer.from(await response.arrayBuffer());
    expect(response.headers.get("content-length")).toBe(String(body.length));
    expect(partsOf(response.headers.get("content-type")!, body)).toEqual(
      [
        [140_000, BYTES],
        [0, 10],
        [70_000, 70_100],
      ].map(([start, end]) => ({
        type: "application/octet-stream",
        range: `bytes ${start}-${end! - 1}/${BYTES}`,
        bytes: Buffer.from(content.subarray(start, end)),
      })),
    );
  });

  test.each([
    ["overlap", "bytes=0-9,5-20", {}],
    ["are of another version", "bytes=0-9,20-29", { "if-range": '"other"' }],
    ["are more than sixteen", `bytes=${Array.from({ length: 17 }, (_, i) => `${10 * i}-${10 * i}`).join()}`, {}],
    ["have one that is none", "bytes=0-9,a-b", {}],
  ])("that %s get the whole object", async (_name, range, headers) => {
    const response = await ask(range, headers as Record<string, string>);
    expect(response.status).toBe(200);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(content);
  });

  test("of which one has bytes are that one, and of which none has are refused", async () => {
    const one = await ask(`bytes=10-19,${BYTES}-`);
    expect([one.status, one.headers.get("content-range")]).toEqual([206, `bytes 10-19/${BYTES}`]);
    expect(new Uint8Array(await one.arrayBuffer())).toEqual(content.subarray(10, 20));
    const none = await ask(`bytes=${BYTES}-,${BYTES + 5}-`);
    expect([none.status, none.headers.get("content-range")]).toEqual([416, `bytes */${BYTES}`]);
    await none.body?.cancel();
  });

  test("of a version that the client has are 304", async () => {
    expect((await ask("bytes=0-9,20-29", { "if-none-match": etag })).status).toBe(304);
  });

  test("that a client leaves in the middle give their memory back", async () => {
    const leaving = new AbortController();
    const headers = { range: "bytes=0-69999,75000-149999" };
    const response = await fetch(`${world.url}/o/ranged`, { headers, signal: leaving.signal });
    await response.body!.getReader().read();
    leaving.abort();
    await expect.poll(async () => (await world.status()).isolate.readsWithMemory).toBe(0);
  });
});

/** The parts of a `multipart/byteranges` body. */
function partsOf(contentType: string, body: Buffer): { type: string; range: string; bytes: Buffer }[] {
  const boundary = /^multipart\/byteranges; boundary=(.+)$/.exec(contentType)![1]!;
  const [preamble, ...rest] = body.toString("latin1").split(`\r\n--${boundary}`);
  expect([preamble, rest.pop()], "what is around the parts").toEqual(["", "--\r\n"]);
  return rest.map((part) => {
    const [head, ...lines] = part.split("\r\n\r\n");
    const [, type, range] = /^\r\ncontent-type: (.+)\r\ncontent-range: (.+)$/.exec(head!)!;
    return { type: type!, range: range!, bytes: Buffer.from(lines.join("\r\n\r\n"), "latin1") };
  });
}

describe("a small range at the edge", () => {
  const large = randomBytes(1_000_000, 5);
  const range = { headers: { range: "bytes=270000-270099" } };

  test("costs the leaf list and one block of one bucket, and nothing when it is repeated", async () => {
    await world.put("large", large, { stripeBytes: 800_000 });
    await fetch(`${world.url}/o/large`, { method: "HEAD" });
    for (const expected of [["bytes=0-767", "bytes=65536-131071"], []]) {
      world.buckets.requests.length = 0;
      const response = await fetch(`${world.url}/o/large`, range);
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(large.subarray(270_000, 270_100));
      expect(world.buckets.requests.flatMap((asked) => asked.range ?? []).toSorted()).toEqual(expected);
    }
  });
});
