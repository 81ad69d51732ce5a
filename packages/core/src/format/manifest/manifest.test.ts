import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sampleObject, toyHash } from "../../../test/objects/sample-object.ts";
import { codeOf, rejectionOf } from "../../../test/errors.ts";
import { AgaroseError } from "../../errors.ts";
import * as manifests from "./index.ts";
import {
  checkCode,
  chunkBytes,
  encodeManifest,
  MANIFEST_BYTES_MAX,
  STRIPE_BYTES_MAX,
  stripeCount,
  stripeShape,
  type Manifest,
} from "./index.ts";
import { checksum } from "./encode.ts";
import { acceptUnsigned } from "../signature.ts";
import { fromBase64 } from "../text.ts";

const sample = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 300, regions: ["a", "b", "c"] });
const { manifest } = sample;

const EXTRA = { upload: "e".repeat(32), placement: ["a"], sha256: ["0".repeat(64)] };

type Expected = Partial<manifests.ExpectedManifest>;

const TRUSTING = { key: manifest.key, trust: acceptUnsigned, sha256: toyHash };

/** Asked for the sample's key, unless said otherwise. */
async function parseManifest(input: Uint8Array | string, expected: Expected = {}): Promise<Manifest> {
  return (await manifests.parseManifest(input, { ...TRUSTING, ...expected })) as Manifest;
}

function checkManifest(json: unknown, expected: Expected = {}): Promise<Manifest> {
  return manifests.checkManifest(json, { ...TRUSTING, ...expected });
}

/** A manifest with the right CRC-32, whatever it says. */
function withTrailer(body: Uint8Array): Uint8Array {
  const trailer = new TextEncoder().encode(`,"crc32":"${checksum(body)}"}`);
  const bytes = new Uint8Array(body.length + trailer.length);
  bytes.set(body);
  bytes.set(trailer, body.length);
  return bytes;
}

describe("parseManifest", () => {
  test("returns what encodeManifest received", async () => {
    expect(await parseManifest(encodeManifest(manifest))).toEqual(manifest);
    expect(await parseManifest(new TextDecoder().decode(encodeManifest(manifest)))).toEqual(manifest);
  });

  test("accepts the key and the regions that were asked for", async () => {
    const regions = new Set(["a", "b", "c", "d"]);
    expect(await parseManifest(encodeManifest(manifest), { key: manifest.key, regions })).toEqual(manifest);
  });

  test("refuses the manifest of another key", async () => {
    expect((await rejectionOf(parseManifest(encodeManifest(manifest), { key: "photos/dog.jpg" }))).code).toBe(
      "MANIFEST_INVALID",
    );
  });

  test("accepts one with k chunks in configured regions, wherever the others are", async () => {
    const regions = new Set(["a", "b"]);
    expect(await parseManifest(encodeManifest(manifest), { regions })).toEqual(manifest);
  });

  test("refuses one with fewer than k chunks in configured regions, naming the region of every other chunk", async () => {
    const error = await rejectionOf(parseManifest(encodeManifest(manifest), { regions: new Set(["a"]) }));
    expect(error).toMatchObject({ code: "REGION_UNKNOWN", details: { regions: ["b", "c", "b", "c"] } });
    expect(error.message).toContain("places 2 chunks in configured regions, 4 are needed: configure b, c, b, c");
  });

  test("is refused for its regions exactly when they hold fewer than k chunks (property)", async () => {
    const seen = { accepted: 0, refused: 0 };
    const placement = fc.array(fc.constantFrom("a", "b", "c", "d"), { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(placement, fc.subarray(["a", "b", "c", "d"]), async (placed, configured) => {
        const regions = new Set(configured);
        const checked = await settled(checkManifest({ ...manifest, placement: placed }, { regions }));
        const isReadable = placed.filter((region) => regions.has(region)).length >= manifest.k;
        seen[isReadable ? "accepted" : "refused"]++;
        if (isReadable) expect(checked).toMatchObject({ placement: placed });
        else expect(checked).toMatchObject({ code: "REGION_UNKNOWN" });
      }),
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(10);
  });

  test("accepts a header exactly when it can be served and is no longer than its name allows (property)", async () => {
    const seen = { accepted: 0, refused: 0 };
    const names = fc.constantFrom(
      "cache-control",
      "x-amz-meta-a",
      "x-amz-tagging",
      "x-amz-checksum-md5",
      "x-amz-tagging-a",
    );
    const characters = fc.constantFrom("a", " ", "~", "é", "\r", "\n", "\0", "\t", "\x7f");
    const lengths = fc.constantFrom(0, 1, 1_024, 1_025, 2_744, 2_745, 4_096, 4_097);
    await fc.assert(
      fc.asyncProperty(names, characters, lengths, async (name, character, length) => {
        const value = character.repeat(length);
        const checked = await settled(checkManifest({ ...manifest, headers: { [name]: value } }));
        const max = new Map([
          ["cache-control", 1_024],
          ["x-amz-checksum-md5", 1_024],
          ["x-amz-meta-a", 2_744],
          ["x-amz-tagging", 4_096],
        ]);
        const isServable = length <= (max.get(name) ?? -1) && (length === 0 || ["a", " ", "~"].includes(character));
        seen[isServable ? "accepted" : "refused"]++;
        if (isServable) expect(checked).toMatchObject({ headers: { [name]: value } });
        else expect(checked).toMatchObject({ code: "MANIFEST_INVALID", details: { header: name } });
      }),
      { numRuns: 500 },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(30);
  });

  test("refuses a manifest that ends early, at every byte", async () => {
    const bytes = encodeManifest(manifest);
    for (let length = 0; length < bytes.length; length++) {
      expect((await rejectionOf(parseManifest(bytes.subarray(0, length)))).code).toBe("MANIFEST_INVALID");
    }
  });

  test("refuses a manifest with one bit flipped, at every byte", async () => {
    const bytes = encodeManifest(manifest);
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.map((byte, i) => (i === at ? byte ^ 2 : byte));
      expect((await rejectionOf(parseManifest(damaged))).code).toBe("MANIFEST_INVALID");
    }
  });

  test("refuses what has no checksum", async () => {
    expect((await rejectionOf(parseManifest(JSON.stringify(manifest)))).code).toBe("MANIFEST_INVALID");
  });

  test("refuses bytes that are not UTF-8", async () => {
    const body = new TextEncoder().encode(JSON.stringify(manifest).slice(0, -1));
    body[body.indexOf("c".charCodeAt(0))] = 0xff;
    expect((await rejectionOf(parseManifest(withTrailer(body)))).message).toMatch(/UTF-8/);
  });

  test("refuses what is nested so deeply that it cannot be checked", async () => {
    const depth = 32_000;
    const body = `{"agarose":3,"key":${JSON.stringify(manifest.key)},"x":${"[".repeat(depth)}${"]".repeat(depth)}`;
    expect((await rejectionOf(parseManifest(withTrailer(new TextEncoder().encode(body))))).code).toBe(
      "MANIFEST_INVALID",
    );
  });

  test("says of a newer format that the program is to be upgraded, whatever else is in it", async () => {
    const error = await rejectionOf(parseManifest('{"agarose":3,"surprise":true,"crc32":"f65c57b9"}'));
    expect(error).toMatchObject({ code: "MANIFEST_NEWER", details: { format: 3, supported: 2 } });
    expect(error.message).toMatch(/upgrade/);
  });

  test("refuses more than the largest manifest before parsing it", async () => {
    const error = await rejectionOf(parseManifest(new Uint8Array(MANIFEST_BYTES_MAX + 1)));
    expect(error).toMatchObject({
      code: "MANIFEST_TOO_LARGE",
      details: { bytes: MANIFEST_BYTES_MAX + 1, max: MANIFEST_BYTES_MAX },
    });
  });
});

describe("encodeManifest", () => {
  test("refuses to write what parseManifest would refuse to read", () => {
    const huge = { ...manifest, contentType: "x".repeat(MANIFEST_BYTES_MAX) };
    expect(codeOf(() => encodeManifest(huge))).toBe("MANIFEST_TOO_LARGE");
  });
});

describe("checkManifest", () => {
  const hashes = manifest.hashes;
  const wrong: Record<string, unknown[]> = {
    agarose: [undefined, null, "1", 0, 0.5, -1, {}, NaN],
    key: [undefined, 7, "", "/a", "a//b", "a/../b", ".", "a\0b", "\ud800", "x".repeat(2000)],
    version: [undefined, "", "0123", "0123456789ABCDEF0123456789ABCDEF", `${manifest.version}0`, 1, [manifest.version]],
    bytes: [undefined, -1, 0.5, "1000", 2 ** 53, null, Infinity, 0, 1501, { toString: 1, valueOf: 1 }],
    contentType: [undefined, 1, "a\r\nset-cookie: b", "é", "x".repeat(1025)],
    headers: [undefined, null, [], "x", { "set-cookie": "a" }, { "cache-control": 1 }, { "cache-control": "a\nb" }],
    modified: [undefined, "", "yesterday", "1", 0, "2026-01-02", "2026-01-02T03:04:05+01:00", "2026-13-02T03:04:05Z"],
    stripeBytes: [undefined, null, 0, -1, 200, 1.5, "300", STRIPE_BYTES_MAX + 1, NaN],
    sha256: [undefined, "", manifest.sha256.slice(1), manifest.sha256.toUpperCase(), `${manifest.sha256} `, 5],
    k: [undefined, 0, -1, 1.5, "4", 127, { toString: 1, valueOf: 1 }],
    m: [undefined, -1, 0.5, "2", 249, null],
    extra: [
      null,
      [],
      {},
      { ...EXTRA, upload: "E" },
      { ...EXTRA, placement: [] },
      { ...EXTRA, placement: ["a", "b"] },
      { ...EXTRA, placement: [1] },
      { ...EXTRA, sha256: "0".repeat(64) },
      { ...EXTRA, sha256: ["0"] },
    ],
    placement: [undefined, "abcabc", [], manifest.placement.slice(1), [...manifest.placement, "a"], [1, 2, 3, 4, 5, 6]],
    hashes: [
      undefined,
      {},
      [],
      hashes.slice(1),
      [...hashes, hashes[0]],
      [1, 2, 3, 4],
      replaceLast(hashes, ""),
      replaceLast(hashes, hashes[0]!.slice(4)),
      replaceLast(hashes, `${hashes[0]!.slice(0, -2)}==`),
      replaceLast(hashes, `${hashes[0]!.slice(0, -1)}=`),
      replaceLast(hashes, `${hashes[0]!.slice(0, -1)}-`),
      replaceLast(hashes, `${hashes[0]!}\n`),
    ],
  };

  for (const [field, values] of Object.entries(wrong)) {
    for (const value of values) {
      test(`refuses ${field} = ${show(value)}`, async () => {
        expect((await rejectionOf(checkManifest({ ...manifest, [field]: value }))).code).toMatch(
          /^(MANIFEST_INVALID|CODE_INVALID)$/,
        );
      });
    }
  }

  test("names the field when it is missing", async () => {
    for (const field of ["key", "version", "contentType", "modified", "sha256", "bytes", "stripeBytes"] as const) {
      const { [field]: _, ...rest } = manifest;
      expect((await rejectionOf(checkManifest(rest))).message).toContain(field);
    }
  });

  test("refuses what is not an object", async () => {
    for (const json of [undefined, null, 1, "x", [], [manifest], true]) {
      expect((await rejectionOf(checkManifest(json))).code).toBe("MANIFEST_INVALID");
    }
  });

  test("accepts hashes whose base64 is padded: n that is no multiple of 3", async () => {
    for (const [k, m] of [
      [1, 0],
      [1, 1],
      [2, 2],
      [9, 3],
    ] as const) {
      const { manifest: other } = await sampleObject({ k, m, bytes: 10, stripeBytes: 10 });
      expect(await checkManifest(structuredClone(other), { key: other.key })).toEqual(other);
    }
  });

  test("throws only AgaroseErrors, and accepts no manifest that contradicts itself", async () => {
    const fields = Object.keys(manifest);
    const surprise = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(...Object.values(manifest)),
      fc.constant({ toString: 1, valueOf: 1 }),
      fc.integer(),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom(...fields), surprise), { maxLength: 3 }), async (changes) => {
        const changed = { ...manifest, ...Object.fromEntries(changes) } as Manifest;
        for (const check of [() => checkManifest(changed), () => parseManifest(encodeManifest(changed))]) {
          const parsed = await settled(check());
          if (parsed instanceof Error) expect(parsed).toBeInstanceOf(AgaroseError);
          else assertConsistent(parsed);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("any text is parsed to an AgaroseError or a consistent manifest", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json(), fc.uint8Array()), async (input) => {
        const parsed = await settled(parseManifest(input));
        if (parsed instanceof Error) expect(parsed).toBeInstanceOf(AgaroseError);
        else assertConsistent(parsed);
      }),
      { numRuns: 500 },
    );
  });
});

describe("stripes", () => {
  test("an empty object has none, and its chunks no bytes", () => {
    expect(stripeCount({ bytes: 0, stripeBytes: 300 })).toBe(0);
    expect(chunkBytes({ bytes: 0, stripeBytes: 300, k: 4 })).toBe(0);
  });

  test("the last one is shorter, and its shards too", () => {
    // 1000 bytes are 300 + 300 + 300 + 100; shards of 75 and, last, 25 bytes.
    expect(stripeCount(manifest)).toBe(4);
    expect(stripeShape(manifest, 0)).toEqual({ index: 0, start: 0, dataBytes: 300, shardBytes: 75, chunkOffset: 0 });
    expect(stripeShape(manifest, 3)).toEqual({
      index: 3,
      start: 900,
      dataBytes: 100,
      shardBytes: 25,
      chunkOffset: 225,
    });
    expect(chunkBytes(manifest)).toBe(250);
  });

  test("tile the object and every chunk without gap or overlap", () => {
    const shapes = fc.record({
      bytes: fc.integer({ min: 0, max: 5000 }),
      stripeBytes: fc.integer({ min: 1, max: 700 }),
      k: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(shapes, (object) => {
        let start = 0;
        let offset = 0;
        for (let index = 0; index < stripeCount(object); index++) {
          const stripe = stripeShape(object, index);
          expect(stripe).toMatchObject({ index, start, chunkOffset: offset });
          expect(stripe.dataBytes).toBeGreaterThan(0);
          expect(stripe.shardBytes * object.k).toBeGreaterThanOrEqual(stripe.dataBytes);
          expect((stripe.shardBytes - 1) * object.k).toBeLessThan(stripe.dataBytes);
          start += stripe.dataBytes;
          offset += stripe.shardBytes;
        }
        expect(start).toBe(object.bytes);
        expect(offset).toBe(chunkBytes(object));
      }),
    );
  });
});

test("checkCode accepts what GF(2^8) can code and refuses the next larger", () => {
  for (const code of [
    { k: 1, m: 0 },
    { k: 128, m: 0 },
    { k: 1, m: 254 },
    { k: 9, m: 3, stripeBytes: STRIPE_BYTES_MAX },
  ]) {
    expect(() => checkCode(code)).not.toThrow();
  }
  for (const code of [
    { k: 129, m: 0 },
    { k: 1, m: 255 },
    { k: 9, m: 3, stripeBytes: STRIPE_BYTES_MAX + 1 },
  ]) {
    expect(codeOf(() => checkCode(code))).toBe("CODE_INVALID");
  }
});

/** The result of `promise`, or the error that it rejects with. */
function settled<T>(promise: Promise<T>): Promise<T | Error> {
  return promise.catch((error: unknown) => error as Error);
}

/** The invariants that every reader relies on without a check. */
function assertConsistent(parsed: Manifest): void {
  expect(Number.isSafeInteger(parsed.bytes) && parsed.bytes >= 0).toBe(true);
  expect(() => checkCode(parsed)).not.toThrow();
  expect(parsed.placement).toHaveLength(parsed.k + parsed.m);
  expect(parsed.hashes).toHaveLength(stripeCount(parsed));
  for (const hashes of parsed.hashes) expect(fromBase64(hashes)).toHaveLength((parsed.k + parsed.m) * 32);
  expect(new Date(parsed.modified).toUTCString()).not.toBe("Invalid Date");
  expect(() => new Headers({ ...parsed.headers, "content-type": parsed.contentType })).not.toThrow();
}

function replaceLast<T>(values: readonly T[], value: T): T[] {
  return [...values.slice(0, -1), value];
}

function show(value: unknown): string {
  const text = value === undefined || Number.isNaN(value) ? String(value) : (JSON.stringify(value) ?? "");
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length} characters, ends ${text.slice(-8)})` : text;
}
