/**
 * The bytes on the wire of `/o/`, which no client has decoded, are those that are stored, whatever headers the object
 * has. Both runtimes pass this suite, so that they are equal to each other, too.
 */
import { request } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomBytes, startWorld, type TestWorld } from "../../../test/world.ts";

const TEXT = Buffer.from(JSON.stringify(Array.from(randomBytes(60_000))));

const OBJECTS: readonly [name: string, bytes: Uint8Array, contentType: string, headers: Record<string, string>][] = [
  ["plain", TEXT, "application/json", {}],
  ["gzip", gzipSync(TEXT), "application/json", { "content-encoding": "gzip" }],
  ["upper case", gzipSync(TEXT), "text/css", { "content-encoding": "GZIP" }],
  ["x-gzip", gzipSync(TEXT), "text/plain", { "content-encoding": "x-gzip" }],
  ["br", brotliCompressSync(TEXT), "text/javascript", { "content-encoding": "br" }],
  ["deflate", deflateSync(TEXT), "image/svg+xml", { "content-encoding": "deflate" }],
  ["zstd", zstdCompressSync(TEXT), "application/wasm", { "content-encoding": "zstd" }],
  ["identity", TEXT, "text/html", { "content-encoding": "identity" }],
  ["chain", brotliCompressSync(gzipSync(TEXT)), "application/json", { "content-encoding": "gzip, br" }],
  ["unknown", TEXT, "application/json", { "content-encoding": "made-up" }],
  ["not what it says", randomBytes(100_000), "application/json", { "content-encoding": "gzip" }],
  ["empty", new Uint8Array(), "text/plain", { "content-encoding": "gzip" }],
  ["odd type", gzipSync(TEXT), "no type; at=all", { "content-encoding": "gzip" }],
  [
    "cached",
    gzipSync(TEXT),
    "text/plain",
    {
      "content-encoding": "gzip",
      "cache-control": "public, max-age=31536000, immutable",
      "content-disposition": 'attachment; filename="a.txt"',
      "content-language": "de",
      expires: "Thu, 01 Jan 2099 00:00:00 GMT",
    },
  ],
  [
    "isolated",
    TEXT,
    "text/javascript",
    {
      "content-security-policy": "default-src 'self'",
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-site",
    },
  ],
];

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
  for (const [name, bytes, contentType, headers] of OBJECTS) {
    await world.put(name, bytes, { edit: (manifest) => ({ ...manifest, contentType, headers }) });
  }
});
afterAll(() => world.close());

interface Wire {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

function ask(key: string, headers: Record<string, string> = {}, method = "GET"): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const url = `${world.url}/o/${encodeURIComponent(key)}`;
    request(url, { method, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) }),
      );
    })
      .on("error", reject)
      .end();
  });
}

describe.each(OBJECTS)("an object that is %s", (name, content, contentType, own) => {
  const stored = Buffer.from(content);
  const n = stored.length;

  test.each([{}, { "accept-encoding": "gzip, br" }, { "accept-encoding": "identity" }, { origin: "https://app.test" }])(
    "arrives as it is stored, with its headers, at a client that sends %j",
    async (sent) => {
      const { status, headers, body } = await ask(name, sent as Record<string, string>);
      expect(status).toBe(200);
      expect(body.equals(stored), `${body.length} bytes in place of ${n}`).toBe(true);
      expect(headers).toMatchObject({ ...own, "content-type": contentType, "content-length": String(n) });
      expect(headers["content-encoding"]).toBe(own["content-encoding"]);
      expect(headers["etag"]).toMatch(/^"/);
      const policy = own["cross-origin-resource-policy"] ?? "cross-origin";
      expect(headers["cross-origin-resource-policy"]).toBe(policy);
    },
  );

  test("has the same head for HEAD, with a range and without", async () => {
    for (const sent of [{}, { range: "bytes=0-9" }, { range: "bytes=5-" }]) {
      const [head, get] = [await ask(name, sent, "HEAD"), await ask(name, sent)];
      expect(head.status).toBe(get.status);
      expect(head.body).toHaveLength(0);
      for (const field of ["content-length", "content-range", "content-type", "content-encoding", "etag"]) {
        expect([field, head.headers[field]]).toEqual([field, get.headers[field]]);
      }
    }
  });

  test("has the same head for 304, and no body", async () => {
    const { headers } = await ask(name);
    const unchanged = await ask(name, { "if-none-match": headers["etag"] as string });
    expect([unchanged.status, unchanged.body.length]).toEqual([304, 0]);
    expect(unchanged.headers["etag"]).toBe(headers["etag"]);
  });

  test.skipIf(n === 0)("is sent by ranges of the stored bytes", async () => {
    for (const [start, end] of [
      [0, 10],
      [5, n],
      [n - 7, n],
    ] as const) {
      const { status, headers, body } = await ask(name, { range: `bytes=${start}-${end - 1}` });
      expect(status).toBe(206);
      expect(headers["content-range"]).toBe(`bytes ${start}-${end - 1}/${n}`);
      expect(headers["content-length"]).toBe(String(end - start));
      expect(body.equals(stored.subarray(start, end))).toBe(true);
    }
  });

  test.skipIf(n === 0)("is sent by several ranges, each of the stored bytes", async () => {
    const { status, headers, body } = await ask(name, { range: `bytes=0-9,20-29,${n - 5}-` });
    expect(status).toBe(206);
    expect(headers["content-length"]).toBe(String(body.length));
    const boundary = /boundary=(.+)$/.exec(headers["content-type"] as string)![1]!;
    const parts = body.toString("latin1").split(`\r\n--${boundary}`).slice(1, -1);
    expect(parts.map((part) => part.slice(part.indexOf("\r\n\r\n") + 4))).toEqual(
      [stored.subarray(0, 10), stored.subarray(20, 30), stored.subarray(n - 5)].map((bytes) =>
        bytes.toString("latin1"),
      ),
    );
  });
});
