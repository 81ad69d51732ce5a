import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { hex, pseudoRandomBytes, sampleObject } from "../../test/objects/sample-object.ts";
import { streamOf } from "../../test/streams.ts";
import { AgaroseError } from "../errors.ts";
import { concat } from "../format/hash-tree.ts";
import {
  checkManifest,
  encodeManifest,
  parseManifest,
  sealManifest,
  type Gzip,
  type Manifest,
} from "../format/manifest/index.ts";
import { acceptUnsigned } from "../format/signature.ts";
import type { ByteRange } from "../http/range.ts";
import { systemSha256 } from "../ports.ts";
import { openContent, shownBytes, storedRangeOf } from "./index.ts";

const noSecret = (): Promise<Uint8Array> => Promise.reject(new Error("asked for a secret"));

/** Text that gzip makes shorter. */
function textOf(bytes: number): Uint8Array {
  return pseudoRandomBytes(bytes).map((byte) => 97 + (byte % 4));
}

/** As every platform compresses. */
async function compress(content: Uint8Array, format: CompressionFormat = "gzip"): Promise<Uint8Array> {
  const body = streamOf([content]) as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Uint8Array(await new Response(body.pipeThrough(new CompressionStream(format))).arrayBuffer());
}

/** An object of these segments of `content`: its stored bytes, and its manifest. */
async function objectOf(content: Uint8Array, stored: readonly Uint8Array[], segmentBytes: number) {
  const body = concat(stored);
  const base = await sampleObject({ k: 2, m: 1, bytes: body.length, stripeBytes: 4096, regions: ["a", "b", "c"] });
  const gzip: Gzip = {
    bytes: content.length,
    sha256: hex(await systemSha256(content)),
    segmentBytes,
    segments: stored.map(({ length }) => length),
  };
  const { version: _v, hashesSha256: _s, hashesRoot: _r, agarose: _a, signature: _g, ...draft } = base.manifest;
  const manifest = await sealManifest({ ...draft, gzip, requires: ["gzip"] }, systemSha256);
  return { manifest, body };
}

async function segmented(content: Uint8Array, segmentBytes: number) {
  const stored: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += segmentBytes)
    stored.push(await compress(content.subarray(at, at + segmentBytes)));
  return objectOf(content, stored, segmentBytes);
}

async function read(manifest: Manifest, body: Uint8Array, range: ByteRange, partBytes = 1000): Promise<Uint8Array> {
  const opened = (await openContent(manifest, noSecret))!;
  const { start, end } = opened.stored(range);
  const parts: Uint8Array[] = [];
  for (let at = start; at < end; at += partBytes) parts.push(body.subarray(at, Math.min(end, at + partBytes)));
  const content: Uint8Array[] = [];
  for await (const part of opened.content(range, streamOf(parts))) content.push(part);
  return concat(content);
}

const EXPECTED = { trust: acceptUnsigned, sha256: systemSha256 };

test("what is not compressed is read as it is", async () => {
  const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 64, regions: ["a"] });
  expect(await openContent(manifest, noSecret)).toBeUndefined();
  expect(shownBytes(manifest)).toBe(100);
  expect(storedRangeOf(manifest, { start: 5, end: 6 })).toEqual({ start: 5, end: 6 });
});

test("what is shown has the length and the hash of the content, and says nothing of gzip", async () => {
  const content = textOf(10_000);
  const { manifest, body } = await segmented(content, 10_000);
  const { shown } = (await openContent(manifest, noSecret))!;
  expect(shown).toMatchObject({ bytes: 10_000, sha256: hex(await systemSha256(content)), version: manifest.version });
  expect(shown).not.toHaveProperty("gzip");
  expect(shownBytes(manifest)).toBe(10_000);
  expect(body.length).toBeLessThan(4_000);
});

test("any range equals that range of the content, however the stored bytes arrive (property)", async () => {
  const content = textOf(20_000);
  const objects = await Promise.all([20_000, 5_000, 777].map((segmentBytes) => segmented(content, segmentBytes)));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...objects),
      fc.nat(content.length - 1),
      fc.nat(content.length),
      fc.integer({ min: 1, max: 9_000 }),
      async ({ manifest, body }, start, length, partBytes) => {
        const range = { start, end: Math.min(content.length, start + length) };
        expect(await read(manifest, body, range, partBytes)).toEqual(content.subarray(range.start, range.end));
      },
    ),
    { numRuns: 40 },
  );
});

test("a range takes the segments that it lies in, and no other", async () => {
  const { manifest } = await segmented(textOf(20_000), 5_000);
  const [first, second, third] = manifest.gzip!.segments as [number, number, number];
  expect(storedRangeOf(manifest, { start: 0, end: 5_000 })).toEqual({ start: 0, end: first });
  const wanted = { start: first, end: first + second + third };
  expect(storedRangeOf(manifest, { start: 9_999, end: 10_001 })).toEqual(wanted);
});

describe("a read ends with OBJECT_CORRUPT", () => {
  const content = textOf(8_000);
  const whole = { start: 0, end: content.length };
  const none = new Uint8Array();
  test.each<[string, (gzip: Uint8Array) => Uint8Array | Promise<Uint8Array>]>([
    ["that inflates to more than signed", () => compress(concat([content, content.subarray(0, 1)]))],
    ["that inflates to less", () => compress(content.subarray(1))],
    ["that is truncated", (gzip) => gzip.subarray(0, -1)],
    ["that is truncated to its content", (gzip) => gzip.subarray(0, -8)],
    ["with bytes behind it", (gzip) => concat([gzip, new Uint8Array(4)])],
    [
      "of two members",
      async () => concat([await compress(content.subarray(0, 9)), await compress(content.subarray(9))]),
    ],
    ["of two members, the first one empty", async (gzip) => concat([await compress(none), gzip])],
    ["of two members, the last one empty", async (gzip) => concat([gzip, await compress(none)])],
    ["with a wrong CRC-32", (gzip) => gzip.map((byte, i) => (i === gzip.length - 8 ? byte ^ 1 : byte))],
    ["that is deflate without a head", () => compress(content, "deflate-raw")],
    ["that is not compressed", () => content.slice()],
  ])("of a segment %s", async (_name, damaged) => {
    const { manifest, body } = await objectOf(content, [await damaged(await compress(content))], content.length);
    const error = await rejectionOf(read(manifest, body, whole));
    expect(error).toMatchObject({ code: "OBJECT_CORRUPT", details: { segment: 0, expected: content.length } });
  });

  test("as soon as a segment is longer than signed, without reading it to its end", async () => {
    const bomb = await compress(pseudoRandomBytes(4 * 1024 * 1024));
    const { manifest } = await objectOf(new Uint8Array(1_000), [bomb], 1_000);
    const opened = (await openContent(manifest, noSecret))!;
    let taken = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(bomb.subarray(taken, (taken += 1024)));
      },
    });
    const reader = opened.content({ start: 0, end: 1_000 }, body).getReader();
    const all = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    expect((await rejectionOf(all())).code).toBe("OBJECT_CORRUPT");
    expect(taken).toBeLessThan(bomb.length / 4);
  });
});

test("a read that fails below says why", async () => {
  const { manifest, body } = await segmented(textOf(8_000), 8_000);
  const opened = (await openContent(manifest, noSecret))!;
  const failing = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(body.subarray(0, 100)),
    pull: (controller) => controller.error(new AgaroseError("NOT_ENOUGH_CHUNKS", "2 of 3")),
  });
  const reader = opened.content({ start: 0, end: 8_000 }, failing).getReader();
  const all = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  expect((await rejectionOf(all())).code).toBe("NOT_ENOUGH_CHUNKS");
});

test("a consumer that leaves ends the read below", async () => {
  const { manifest, body } = await segmented(textOf(80_000), 80_000);
  const opened = (await openContent(manifest, noSecret))!;
  let reason: unknown;
  const endless = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(body.subarray(0, 20_000)),
    cancel: (given) => void (reason = given),
  });
  const reader = opened.content({ start: 0, end: 80_000 }, endless).getReader();
  await reader.read();
  await reader.cancel("left");
  expect(reason).toBe("left");
});

describe("a manifest of a compressed object", () => {
  test("is read back as it was written", async () => {
    const { manifest } = await segmented(textOf(20_000), 5_000);
    const parsed = await parseManifest(encodeManifest(manifest), { ...EXPECTED, key: manifest.key });
    expect(parsed).toEqual(manifest);
  });

  test("has another version than the same bytes stored as they are", async () => {
    const { manifest } = await segmented(textOf(20_000), 5_000);
    const { gzip: _, requires: _r, ...plain } = manifest;
    const sealed = await sealManifest(plain, systemSha256);
    expect(sealed.version).not.toBe(manifest.version);
    expect(sealed.hashesSha256).toBe(manifest.hashesSha256);
  });

  test.each<[string, object]>([
    ["without `gzip` in `requires`", { requires: [] }],
    ["that requires gzip and has none", { gzip: undefined }],
    ["whose gzip is no object", { gzip: "yes" }],
    ["of no content", { gzip: { bytes: 0, segments: [] } }],
    ["of fewer segments than its content has", { gzip: { bytes: 20_001 } }],
    ["of more", { gzip: { bytes: 15_000 } }],
    ["whose segments are not what is stored", { gzip: { segments: [100, 100, 100, 100] } }],
    ["with a segment of a negative length", { gzip: { segments: [-20, 40, 100, 100] } }],
    ["with a segment that is no number", { gzip: { segments: ["20", 40, 100, 100] } }],
    ["with an absurd length", { gzip: { bytes: 2 ** 50, segmentBytes: 2 ** 48 } }],
    ["with more content than its segments can hold", { gzip: { bytes: 16 * 2 ** 20, segmentBytes: 4 * 2 ** 20 } }],
    ["with segments of nothing", { gzip: { segmentBytes: 0 } }],
    ["without the hash of its content", { gzip: { sha256: undefined } }],
  ])("is refused %s", async (_name, change: { gzip?: object; requires?: string[] }) => {
    const { manifest } = await segmented(textOf(20_000), 5_000);
    const { gzip } = manifest;
    const changed = typeof change.gzip === "object" ? { ...gzip, ...change.gzip } : change.gzip;
    const json = { ...manifest, ...change, ...("gzip" in change && { gzip: changed }) };
    const error = await rejectionOf(checkManifest(json, { ...EXPECTED, key: manifest.key }));
    expect(error.code).toBe("MANIFEST_INVALID");
  });
});
