import { describe, expect, test } from "vitest";
import { seededRandom } from "../random.ts";
import { codesBySize, type CodeLayout, type CodesRequest, type SizedCode } from "./codes-by-size.ts";
import { WEB_SIZES } from "./web-sizes.ts";

const INLINE = 16_384;
const SIX = [9, 28, 12, 11, 13, 17];

/** k + m chunks over the nearest regions, as many as there are, that survive the loss of one region. */
function layouts(regions: number): CodeLayout[] {
  return Array.from({ length: 10 }, (_, i) => {
    const k = i + 1;
    let m = 1;
    while (m < Math.ceil((k + m) / regions)) m++;
    return { k, m, regions: Array.from({ length: k + m }, (_unused, chunk) => chunk % regions) };
  });
}

const request = (more: Partial<CodesRequest> = {}): CodesRequest => ({
  latenciesMs: SIX,
  layouts: layouts(6),
  inlineBytesMax: INLINE,
  ...more,
});
const kOf = (codes: readonly SizedCode[], bytes: number): number =>
  codes.find(({ bytesMax = Infinity }) => bytes <= bytesMax)!.k;

describe("the codes by size", () => {
  test("begin with inline objects and whole copies, and k grows with size", () => {
    const { codes } = codesBySize(request());
    expect(codes[0]).toEqual({ bytesMax: INLINE, k: 1, m: 0, inline: true });
    expect(codes[1]).toMatchObject({ k: 1, m: 1 });
    expect(codes.at(-1)!.k).toBeGreaterThan(4);
    expect(codes.at(-1)).not.toHaveProperty("bytesMax");
    expect(codes.filter(({ inline }) => inline)).toHaveLength(1);
  });

  test("keep their order and the budget for random regions (seed 7)", () => {
    const random = seededRandom(7);
    for (let round = 0; round < 25; round++) {
      const regions = 2 + random.integer(7);
      const storageMax = 1.2 + random.next();
      const { codes, storage } = codesBySize(
        request({
          latenciesMs: Array.from({ length: regions }, () => 5 + 500 * random.next()),
          layouts: layouts(regions),
          connections: 1 + random.integer(30),
          storageMax,
        }),
      );
      const least = codesBySize(request({ layouts: layouts(regions).slice(-1), latenciesMs: Array(regions).fill(1) }));
      const what = `seed 7, round ${round}: ${JSON.stringify(codes)}`;
      for (const [i, code] of codes.entries()) {
        if (i > 0) expect(code.k, what).toBeGreaterThanOrEqual(codes[i - 1]!.k);
        if (i > 0) expect(code.bytesMax ?? Infinity, what).toBeGreaterThan(codes[i - 1]!.bytesMax!);
      }
      expect(storage, what).toBeLessThanOrEqual(Math.max(storageMax, least.storage) + 1e-9);
    }
  });

  test("keep larger objects whole where storage costs nothing", () => {
    const rich = codesBySize(request({ storageMax: 100 }));
    const poor = codesBySize(request());
    expect(rich.storage).toBeGreaterThan(poor.storage);
    const wholeBytesMax = ({ codes }: typeof rich): number => codes.findLast(({ k }) => k === 1)!.bytesMax!;
    expect(wholeBytesMax(rich)).toBeGreaterThan(wholeBytesMax(poor));
  });

  test("take least where less is asked for than the promise costs, and a tenth more where nothing is asked for", () => {
    const three = { layouts: layouts(3), latenciesMs: [10, 20, 30] };
    const least = codesBySize(request({ ...three, storageMax: 1 })).storage;
    expect(codesBySize(request({ ...three, storageMax: least + 0.01 })).storage).toBeLessThanOrEqual(least + 0.01);
    expect(least).toBeGreaterThan(1.45);
    const byDefault = codesBySize(request(three)).storage;
    expect(byDefault).toBeGreaterThan(least);
    expect(byDefault).toBeLessThanOrEqual(1.1 * least);
  });

  test("have fewer chunks where a client has few connections", () => {
    const few = codesBySize(request({ connections: 1, storageMax: 100 })).codes;
    const many = codesBySize(request({ connections: 100, storageMax: 100 })).codes;
    for (const { bytes } of WEB_SIZES) expect(kOf(few, bytes)).toBeLessThanOrEqual(kOf(many, bytes));
    expect(few).not.toEqual(many);
  });

  test("have more chunks where a transfer is slow", () => {
    const slow = codesBySize(request({ bytesPerSecond: 1e6, storageMax: 100 })).codes;
    const fast = codesBySize(request({ bytesPerSecond: 1e9, storageMax: 100 })).codes;
    expect(kOf(slow, 200_000)).toBeGreaterThan(kOf(fast, 200_000));
  });

  test.each([
    ["no layout", { layouts: [] }],
    ["a budget below the data itself", { storageMax: 0.9 }],
    ["no connection", { connections: 0 }],
  ])("are refused for %s", (_name, change) => {
    expect(() => codesBySize(request(change))).toThrow(expect.objectContaining({ code: "SCENARIO_INVALID" }));
  });
});

test("the usual site has the image sizes of the HTTP Archive", () => {
  const images = WEB_SIZES.filter(({ count }) => count < 10_000).map((size) => ({ ...size }));
  const total = 10_000;
  const shareBelow = (bytes: number): number =>
    images.reduce((sum, size) => sum + (size.bytes <= bytes ? size.count : 0), 0) / total;
  expect(shareBelow(19.06 * 1024)).toBeGreaterThan(0.4);
  expect(shareBelow(23.2 * 1024)).toBeGreaterThan(0.5);
  expect(shareBelow(108.1 * 1024)).toBeCloseTo(0.9, 1);
});
