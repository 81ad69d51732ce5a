import { encodeFrame, parseFrames, systemClock, systemSha256, type Frame, type Manifest } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { beforeEach, expect, test } from "vitest";
import { memoryBuckets, putObject, randomBytes, REGIONS } from "../test/objects.ts";
import type { RegionEstimate } from "./configuration.ts";
import { fillStripe, type StripeFill } from "./stripe-fill.ts";

/** A (4, 2) code, one stripe, chunk i in region i. */
const content = randomBytes(4_000);
const codec = javascriptCodec();
const data = Array.from({ length: 4 }, (_, i) => content.slice(i * 1_000, (i + 1) * 1_000));
const rowOf = (chunk: number): Uint8Array => (chunk < 4 ? data[chunk]! : codec.encode(data, [chunk])[0]!);
const framesOf = (chunks: ReadonlyMap<number, Uint8Array>): Frame[] =>
  [...chunks].flatMap(([chunk, bytes]) => parseFrames(encodeFrame("chunk", 0, chunk, bytes)));

let buckets: ReturnType<typeof memoryBuckets>;
let manifest: Manifest;
let asked: string[];
beforeEach(async () => {
  buckets = memoryBuckets();
  manifest = await putObject(buckets, "x", content);
  asked = [];
});

const fill = (wanted: number[], stored: Frame[], estimates: RegionEstimate[] = []): Promise<StripeFill> =>
  fillStripe({
    manifest,
    stripe: 0,
    wanted,
    stored,
    regions: REGIONS.map((name) => ({ name, url: `http://b/${name}`, popUrl: `http://b/${name}` })),
    estimates: new Map(estimates.map((estimate) => [estimate.name, estimate])),
    fetch: async (url, { headers }) => {
      asked.push(new URL(url).pathname.split("/")[1]!);
      return buckets.respond(url, headers);
    },
    clock: systemClock,
    sha256: systemSha256,
    codec: async () => codec,
  });

test("stored chunks come from their own regions, and only those that are lacking", async () => {
  const { chunks, unchanged, reconstructed } = await fill([1, 5], framesOf(new Map([[1, rowOf(1)]])));
  expect(chunks).toEqual(new Map([1, 5].map((chunk) => [chunk, rowOf(chunk)])));
  expect({ unchanged, reconstructed, asked }).toEqual({ unchanged: false, reconstructed: 0, asked: ["r5"] });
});

test("functional chunks are computed from the nearest k regions", async () => {
  const near = REGIONS.map((name, i) => ({ name, meanMs: i < 2 ? 500 : 20 + 10 * i, sdMs: 0, down: false }));
  const { chunks, reconstructed } = await fill([6, 200], [], near);
  expect(chunks).toEqual(new Map([6, 200].map((chunk) => [chunk, rowOf(chunk)])));
  expect(reconstructed).toBe(0);
  expect(asked.toSorted()).toEqual(["r2", "r3", "r4", "r5"]);
});

test("functional chunks are computed from what is cached, without a request where that is enough", async () => {
  const cached = new Map([0, 1, 2, 5].map((chunk) => [chunk, rowOf(chunk)]));
  const { chunks } = await fill([6, 7], framesOf(cached));
  expect(chunks).toEqual(new Map([6, 7].map((chunk) => [chunk, rowOf(chunk)])));
  expect(asked).toEqual([]);
});

test("a functional chunk that is stored is computed again: unchanged when it is the same, replaced when it is not", async () => {
  const right = framesOf(new Map([[6, rowOf(6)]]));
  expect((await fill([6], right)).unchanged).toBe(true);
  const wrong = framesOf(new Map([[6, rowOf(6).map((byte, i) => (i === 7 ? byte ^ 1 : byte))]]));
  const replaced = await fill([6], wrong);
  expect(replaced.unchanged).toBe(false);
  expect(replaced.chunks.get(6)).toEqual(rowOf(6));
});

test("stored chunks with wrong bytes are neither kept nor computed with", async () => {
  const spoilt = framesOf(new Map([0, 1, 2, 3].map((chunk) => [chunk, randomBytes(1_000, chunk + 9)])));
  const { chunks, unchanged } = await fill([0, 6], spoilt);
  expect(chunks).toEqual(new Map([0, 6].map((chunk) => [chunk, rowOf(chunk)])));
  expect(unchanged).toBe(false);
});

test("a chunk of a region that is down is rebuilt, and counted", async () => {
  const down = [{ name: "r0", meanMs: 10, sdMs: 0, down: true }];
  const { chunks, reconstructed } = await fill([0], [], down);
  expect(chunks).toEqual(new Map([[0, rowOf(0)]]));
  expect(reconstructed).toBe(1);
  expect(asked).not.toContain("r0");
});
