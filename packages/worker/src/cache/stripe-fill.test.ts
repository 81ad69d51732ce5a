import { AgaroseError, systemClock, systemSha256 } from "@agarose/core";
import { encodeFrame, parseFrames, type Frame, type Manifest } from "@agarose/core/format";
import type { ChunkSource } from "@agarose/core/sources";
import { javascriptCodec } from "@agarose/ec-wasm";
import type { RegionEstimate } from "@agarose/solver/planner";
import { beforeEach, expect, test } from "vitest";
import { memoryBuckets, putObject, randomBytes, REGIONS } from "../../test/objects.ts";
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

interface FillWorld {
  readonly estimates?: readonly RegionEstimate[];
  /** US dollars for a GB out of a region; 0 unless given. */
  readonly prices?: Readonly<Record<string, number>>;
  readonly peers?: readonly ChunkSource[];
  readonly onPeer?: (name: string, isGood: boolean) => void;
  /** Stripes that reads have fetched. */
  readonly fetched?: Frame[];
}

const fill = (
  wanted: number[],
  stored: Frame[],
  { estimates = [], prices = {}, peers, onPeer, fetched }: FillWorld = {},
): Promise<StripeFill> =>
  fillStripe({
    manifest,
    stripe: 0,
    wanted,
    stored,
    regions: REGIONS.map((name) => ({
      name,
      url: `http://b/${name}`,
      popUrl: `http://b/${name}`,
      egressUsdPerGb: prices[name] ?? 0,
    })),
    peers,
    onPeer,
    fetched: fetched && (async () => fetched),
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
  const { chunks, reconstructed } = await fill([6, 200], [], { estimates: near });
  expect(chunks).toEqual(new Map([6, 200].map((chunk) => [chunk, rowOf(chunk)])));
  expect(reconstructed).toBe(0);
  expect(asked.toSorted()).toEqual(["r2", "r3", "r4", "r5"]);
});

test("a fill counts what it fetches and what of it is new: k chunks for a functional one, one for a copy", async () => {
  const bytes = rowOf(0).length;
  expect(await fill([6], [])).toMatchObject({ fetchedBytes: 4 * bytes, filledBytes: bytes });
  const one = framesOf(new Map([[1, rowOf(1)]]));
  expect(await fill([1, 5], one)).toMatchObject({ fetchedBytes: bytes, filledBytes: bytes });
  expect(await fill([1], one)).toMatchObject({ fetchedBytes: 0, filledBytes: 0 });
});

test("functional chunks are computed from what is cached, without a request where that is enough", async () => {
  const cached = new Map([0, 1, 2, 5].map((chunk) => [chunk, rowOf(chunk)]));
  const { chunks } = await fill([6, 7], framesOf(cached));
  expect(chunks).toEqual(new Map([6, 7].map((chunk) => [chunk, rowOf(chunk)])));
  expect(asked).toEqual([]);
});

test("what a read has just fetched fills the cache without a request: data, parity and functional chunks", async () => {
  const fetched = framesOf(new Map(data.entries()));
  const filled = await fill([0, 5, 6], [], { fetched });
  expect(filled.chunks).toEqual(new Map([0, 5, 6].map((chunk) => [chunk, rowOf(chunk)])));
  expect(filled).toMatchObject({ fetchedBytes: 0, filledBytes: 3_000, reconstructed: 0 });
  expect(asked).toEqual([]);
});

test("wrong bytes of a read are not taken, and the right ones of it save their requests", async () => {
  const fetched = framesOf(
    new Map([0, 1, 2, 3].map((chunk) => [chunk, chunk === 2 ? randomBytes(1_000, 9) : data[chunk]!])),
  );
  expect((await fill([1, 2], [], { fetched })).chunks).toEqual(new Map([1, 2].map((chunk) => [chunk, rowOf(chunk)])));
  expect(asked).toEqual(["r2"]);
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
  const { chunks, reconstructed } = await fill([0], [], { estimates: down });
  expect(chunks).toEqual(new Map([[0, rowOf(0)]]));
  expect(reconstructed).toBe(1);
  expect(asked).not.toContain("r0");
});

/** A peer that holds `chunks` and sends what `bytesOf` makes of them. */
const peer = (
  id: string,
  meanMs: number,
  chunks: number[],
  bytesOf: (chunk: number) => Uint8Array = rowOf,
): ChunkSource => ({
  id,
  kind: "peer",
  latency: { meanMs, sdMs: 0 },
  has: (_stripe, chunk) => chunks.includes(chunk),
  fetch: async ({ chunk }) => {
    asked.push(id);
    return bytesOf(chunk);
  },
});
const rightChunk = (chunk: number) => new Map([[chunk, rowOf(chunk)]]);

test("of regions, those that charge less are asked first, and the nearest of those that charge the same", async () => {
  const estimates = REGIONS.map((name, i) => ({ name, meanMs: 10 + 10 * i, sdMs: 0, down: false }));
  await fill([6], [], { estimates, prices: { r0: 0.09, r1: 0.02, r3: 0.09 } });
  expect(asked.toSorted(), "r0 and r3 are the dearest").toEqual(["r1", "r2", "r4", "r5"]);
});

test("a peer's chunk is taken where its region charges, however far the peer is", async () => {
  const estimates = REGIONS.map((name) => ({ name, meanMs: 10, sdMs: 0, down: false }));
  const notes: [string, boolean][] = [];
  const peers = [peer("far", 300, [1]), peer("near", 200, [1])];
  const onPeer = (name: string, isGood: boolean): void => void notes.push([name, isGood]);
  const { chunks } = await fill([1], [], { estimates, prices: { r1: 0.09 }, peers, onPeer });
  expect({ chunks, asked, notes }).toEqual({ chunks: rightChunk(1), asked: ["near"], notes: [["near", true]] });
});

test("where the region charges nothing either, the nearer source is asked", async () => {
  const estimates = REGIONS.map((name) => ({ name, meanMs: 100, sdMs: 0, down: false }));
  await fill([1], [], { estimates, peers: [peer("far", 300, [1])] });
  await fill([1], [], { estimates, peers: [peer("near", 20, [1])] });
  expect(asked).toEqual(["r1", "near"]);
});

test.each([
  ["sends garbage", () => randomBytes(1_000, 99), [["lhr", false]]],
  ["sends half", (chunk: number) => rowOf(chunk).subarray(500), [["lhr", false]]],
  [
    "fails",
    () => {
      throw new AgaroseError("SOURCE_FAILED", "down");
    },
    [["lhr", false]],
  ],
  [
    "holds the chunk no more",
    () => {
      throw new AgaroseError("CHUNK_MISSING", "evicted");
    },
    [],
  ],
] as const)("the region delivers when a peer %s, and only a failure is noted", async (_name, bytesOf, noted) => {
  const notes: [string, boolean][] = [];
  const { chunks, reconstructed } = await fill([1], [], {
    prices: { r1: 0.09 },
    peers: [peer("lhr", 20, [1], bytesOf)],
    onPeer: (name, isGood) => void notes.push([name, isGood]),
  });
  expect({ chunks, reconstructed, asked, notes }).toEqual({
    chunks: rightChunk(1),
    reconstructed: 0,
    asked: ["lhr", "r1"],
    notes: noted,
  });
});

test("a chunk is computed from what peers hold where that is cheaper, but never from their functional chunks", async () => {
  const prices = Object.fromEntries(REGIONS.map((name) => [name, 0.09]));
  const { chunks } = await fill([6], [], { prices, peers: [peer("lhr", 50, [0, 1, 2, 7])] });
  expect(chunks).toEqual(rightChunk(6));
  expect(asked.filter((name) => name === "lhr")).toHaveLength(3);
  expect(asked).toHaveLength(4);
});
