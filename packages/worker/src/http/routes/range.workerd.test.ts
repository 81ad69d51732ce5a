/** The table of ranges over HTTP, answered by the edge in workerd. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyObjectCases, mediaProbes, rangeCases, type RangeCase } from "@agarose/core/testing";
import { randomBytes, startWorld, type TestWorld } from "../../../test/world.ts";

const BYTES = 150_001;
/** Represents the object's own tag and date, which are known only once it has been put. */
const PLACEHOLDER = { bytes: BYTES, etag: '"this"', lastModified: "Sun, 06 Nov 1994 08:49:37 GMT" };

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
  test.each(rangeCases(PLACEHOLDER).map(({ name }) => name))("%s", (name) =>
    check("ranged", content, cases.get(name)!),
  );
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
