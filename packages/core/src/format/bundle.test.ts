import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attempt, codeOf, errorOf, rejectionOf } from "../../test/errors.ts";
import { hex, pseudoRandomBytes, sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import {
  encodeFrame,
  encodeFrameHeader,
  encodePlan,
  FRAME_HEADER_BYTES,
  parseFrames,
  parsePlan,
  type Frame,
  type Plan,
} from "./bundle.ts";
import { AgaroseError } from "../errors.ts";
import { INLINE_BYTES_MAX, sealManifest, STRIPE_BYTES_MAX, type Manifest } from "./manifest/index.ts";
import { acceptUnsigned } from "./signature.ts";

const LINE_BREAK = 10;
const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100, regions: ["a", "b", "c"] });
const plan: Plan = {
  pop: "fra",
  epoch: 7,
  version: manifest.version,
  manifest,
  cached: [0, 2],
  regions: ["a", "b", "c"].map((name, i) => ({ name, url: `https://${name}.example/b`, meanMs: 10 * i, sdMs: i })),
  delta: 1,
};
const FRAMES: Frame[] = [
  { type: "chunk", stripe: 0, chunk: 0, payload: pseudoRandomBytes(50) },
  { type: "miss", stripe: 0, chunk: 2, payload: new Uint8Array(0) },
  { type: "chunk", stripe: 4_000_000_000, chunk: 255, payload: pseudoRandomBytes(1) },
  { type: "end", stripe: 0, chunk: 0, payload: new Uint8Array(0) },
];
const BYTES = concat(FRAMES.map((frame) => encodeFrame(frame.type, frame.stripe, frame.chunk, frame.payload)));

describe("frames", () => {
  test("have the header of docs/reference/format.md, little-endian", () => {
    expect([...encodeFrameHeader("chunk", 0x01020304, 0x0506, 0x0708)]).toEqual([
      2, 1, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0, 0,
    ]);
  });

  test("come back from a KV value as they were written", () => {
    expect(parseFrames(BYTES)).toEqual(FRAMES);
    expect(parseFrames(new Uint8Array(0))).toEqual([]);
  });

  test("of a KV value that is cut off anywhere but between two frames are refused", () => {
    const ends = new Set([0]);
    for (const { payload } of FRAMES) ends.add(Math.max(...ends) + FRAME_HEADER_BYTES + payload.length);
    for (let length = 0; length <= BYTES.length; length++) {
      const cut = BYTES.subarray(0, length);
      if (ends.has(length)) expect(() => parseFrames(cut)).not.toThrow();
      else expect(codeOf(() => parseFrames(cut))).toBe("BUNDLE_INVALID");
    }
  });

  test("of another type, format or of an absurd length are refused", () => {
    const frame = encodeFrame("chunk", 0, 0, new Uint8Array(1));
    for (const [at, value] of [
      [0, 0],
      [0, 5],
      [0, 255],
      [1, 0],
      [1, 2],
      [11, 255],
    ] as const) {
      const wrong = frame.slice();
      wrong[at] = value;
      expect(codeOf(() => parseFrames(wrong))).toBe("BUNDLE_INVALID");
    }
    expect(errorOf(() => parseFrames(encodeFrameHeader("chunk", 0, 0, STRIPE_BYTES_MAX + 1))).message).toMatch(
      /16777217 bytes, at most 16777216/,
    );
  });

  test("of any bytes are parsed to frames or an error of ours", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const frames = attempt(() => parseFrames(bytes));
        if (frames instanceof Error) expect(frames).toMatchObject({ code: "BUNDLE_INVALID" });
      }),
      { numRuns: 500 },
    );
  });
});

describe("parsePlan", () => {
  const trusting = { key: manifest.key, trust: acceptUnsigned, sha256: toyHash };
  const parse = (value: unknown): Promise<Plan> =>
    parsePlan(new TextEncoder().encode(`${JSON.stringify(value)}\n`), trusting);

  test("gives back the plan, with a manifest and without", async () => {
    expect(await parsePlan(parseFrames(encodePlan(plan))[0]!.payload, trusting)).toEqual(plan);
    const { manifest: _, ...known } = plan;
    expect(await parse(known)).toEqual(known);
    const down = { ...plan, regions: plan.regions.map((region) => ({ ...region, down: true })) };
    expect(await parse(down)).toEqual(down);
  });

  test.each([0, 1, 2, 3, 10, INLINE_BYTES_MAX])(
    "gives back an inline object of %i bytes, which travels as it is",
    async (bytes) => {
      const content = pseudoRandomBytes(bytes, 7).fill(LINE_BREAK, 0, 2);
      const sealed = await inlineManifest(content);
      const { payload } = parseFrames(encodePlan({ ...plan, version: sealed.version, manifest: sealed }))[0]!;
      expect(payload.subarray(payload.length - bytes)).toEqual(content);
      expect(payload.length).toBeLessThan(bytes + 1_000);
      expect((await parsePlan(payload, trusting)).manifest).toEqual(sealed);
      const longer = parsePlan(concat([payload, new Uint8Array(1)]), trusting);
      expect((await rejectionOf(longer)).code).toBe("MANIFEST_INVALID");
    },
  );

  test("takes a plan without regions for an inline object, of which nothing is read from them", async () => {
    const sealed = await inlineManifest(pseudoRandomBytes(10, 7));
    const named = { ...plan, version: sealed.version, manifest: sealed, regions: [] };
    const { payload } = parseFrames(encodePlan(named))[0]!;
    expect((await parsePlan(payload, trusting)).regions).toEqual([]);
  });

  test("refuses a plan without its line break, and one whose inline object is too long to be one", async () => {
    const { payload } = parseFrames(encodePlan(plan))[0]!;
    expect((await rejectionOf(parsePlan(payload.subarray(0, -1), trusting))).code).toBe("BUNDLE_INVALID");
    const line = new TextEncoder().encode('{"manifest":{"inline":""}}\n');
    const long = concat([line, new Uint8Array(4_000_000)]);
    expect((await rejectionOf(parsePlan(long, trusting))).code).toBe("BUNDLE_INVALID");
  });

  const wrong: Record<string, unknown[]> = {
    pop: [undefined, 1],
    epoch: [undefined, 1.5, "7", -1],
    version: [undefined, 5, "f".repeat(32)],
    cached: [undefined, {}, "0", [-1], [256], [0.5], ["0"], [null]],
    delta: [undefined, -1, 257, 0.5, "1", null],
    regions: [
      undefined,
      [],
      {},
      [null],
      ["a"],
      ...Object.entries({
        name: [undefined, 1],
        url: [undefined, "a.example", "javascript:alert(1)", "file:///etc/passwd"],
        meanMs: [undefined, null, -1, "10"],
        sdMs: [undefined, null, -1],
        down: [null, "yes"],
      }).flatMap(([field, values]) => values.map((value) => [{ ...plan.regions[0], [field]: value }])),
    ],
    manifest: [null, false, {}, { ...manifest, k: 0 }, { ...manifest, key: "other" }],
  };
  for (const [field, values] of Object.entries(wrong)) {
    for (const value of values) {
      test(`refuses ${field} = ${JSON.stringify(value)?.slice(0, 120)}`, async () => {
        expect((await rejectionOf(parse({ ...plan, [field]: value }))).code).toMatch(
          /^(BUNDLE|MANIFEST|CODE)_INVALID$/,
        );
      });
    }
  }

  test("takes a manifest with chunks in regions that the plan does not name: the reader may know them", async () => {
    const regions = plan.regions.slice(0, 1);
    expect(await parse({ ...plan, regions })).toEqual({ ...plan, regions });
  });

  test("refuses what is not JSON, or not UTF-8", async () => {
    for (const bytes of [[], [123], [0xff, 0xfe], [34, 0xc3, 34]]) {
      expect((await rejectionOf(parsePlan(new Uint8Array(bytes), trusting))).code).toBe("BUNDLE_INVALID");
    }
  });

  test("never throws anything but an error of ours", async () => {
    const failure = (value: unknown): Promise<unknown> =>
      parse(value).then(
        () => undefined,
        (error: unknown) => error,
      );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(plan)), fc.jsonValue(), async (field, value) => {
        const error = await failure({ ...plan, [field]: value });
        if (error !== undefined) expect(error).toBeInstanceOf(AgaroseError);
      }),
      { numRuns: 500 },
    );
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        expect(await failure(value)).toBeInstanceOf(AgaroseError);
      }),
    );
  });
});

async function inlineManifest(content: Uint8Array): Promise<Manifest> {
  const sha256 = hex(await toyHash(content));
  const { hashesSha256: _, hashesRoot: __, version: ___, ...fields } = manifest;
  const code = { k: 1, m: 0, bytes: content.length, stripeBytes: INLINE_BYTES_MAX, placement: [], hashes: [], sha256 };
  return sealManifest({ ...fields, ...code, inline: content, requires: ["inline"] }, toyHash);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}
