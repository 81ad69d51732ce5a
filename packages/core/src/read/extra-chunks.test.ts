/** Extra chunks: rows of the code that buckets store beside the n of a version. */
import { expect, test } from "vitest";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { collect } from "../../test/read-world.ts";
import { referenceCodec } from "../../test/objects/reference-codec.ts";
import { sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { concat } from "../format/hash-tree.ts";
import { LEAF_LIST, stripeCount, type Extra } from "../format/manifest/index.ts";
import type { ByteRange } from "../http/range.ts";
import { RegionSource } from "../sources/region-source.ts";
import { openRead } from "./object-stream.ts";
import type { RequestRecord } from "./read-report.ts";

const PLACE = { k: 3, m: 1, regions: ["near", "far", "far", "far"] };
const object = await sampleObject({ ...PLACE, bytes: 600, stripeBytes: 90 });
/** Its shards have four blocks. */
const long = await sampleObject({ ...PLACE, bytes: 600_000, stripeBytes: 600_000, leaves: true });
const UPLOAD = "e".repeat(32);
const LATENCY_MS: Readonly<Record<string, number>> = { near: 10, nearer: 5, far: 100 };

/** Two rows beside the 3 + 1 of the code, in the near regions. */
const extra: Extra = { upload: UPLOAD, placement: ["near", "nearer"], sha256: ["0".repeat(64), "0".repeat(64)] };

/** Reads the object with these extra chunks; `answerOf` may replace what a bucket answers. */
async function read(
  of: Extra | undefined,
  answerOf: (chunk: number, sound: Answer) => Answer = (_chunk, sound) => sound,
  { manifest: stored, bytes: content, shard, leafList } = object,
  range?: ByteRange,
) {
  const manifest = { ...stored, ...(of && { extra: of }) };
  const clock = new SimulatedClock();
  const network = new FakeNetwork(
    (url, init) => {
      const [, region, upload, index] = /^https:\/\/(\w+)\/.*%21(\w+)\/(\d+)$/.exec(url)!;
      const chunk = Number(index);
      expect(upload).toBe(chunk < 4 || chunk === LEAF_LIST ? manifest.upload : UPLOAD);
      const stripes = Array.from({ length: stripeCount(manifest) }, (_, stripe) => stripe);
      const whole = chunk === LEAF_LIST ? leafList : concat(stripes.map((stripe) => shard(stripe, chunk)));
      const [from, to] =
        /=(\d+)-(\d+)/
          .exec(init.headers?.["range"] ?? "")
          ?.slice(1)
          .map(Number) ?? [];
      const body = from === undefined ? whole : whole.slice(from, to! + 1);
      const answer = answerOf(chunk, { status: from === undefined ? 200 : 206, body });
      return typeof answer === "string" ? answer : { ...answer, ms: LATENCY_MS[region!]! };
    },
    (ms, signal) => clock.sleep(ms, signal),
  );
  const sources = Object.entries(LATENCY_MS).map(([name, meanMs]) => {
    const latency = { meanMs, sdMs: 0 };
    return new RegionSource({
      manifest,
      region: { name, url: `https://${name}` },
      latency: () => latency,
      fetch: network.fetch,
    });
  });
  const requests = new Set<RequestRecord>();
  const codec = async () => referenceCodec;
  const opened = openRead(
    { manifest, sources, ...(range && { range }) },
    { codec, clock, sha256: toyHash, random: () => 0 },
    { delta: 0 },
    { onRequest: (record) => requests.add(record) },
  );
  const bytes = await clock.run(opened.then(({ body }) => collect(body)));
  expect(bytes).toEqual(content.subarray(range?.start, range?.end));
  const used = [...requests].filter(({ outcome }) => outcome === "used").map(({ chunk }) => chunk);
  const failed = [...requests].filter(({ outcome }) => outcome === "failed").map(({ error }) => error);
  return { used: [...new Set(used)].toSorted((a, b) => a - b), failed: [...new Set(failed)], ms: clock.now() };
}

test("a read takes the extra chunks of near regions in place of chunks of far ones, proven by what they decode to", async () => {
  const without = await read(undefined);
  const withExtra = await read(extra);
  expect(without.used).toEqual([0, 1, 2]);
  expect(withExtra).toMatchObject({ used: expect.arrayContaining([0, 4, 5]) as unknown, failed: [] });
  expect(await read({ ...extra, placement: ["near", "near"] })).toMatchObject({ used: [0, 4, 5], failed: [] });
});

test.each<[string, Extra]>([
  ["in a region that nobody knows", { ...extra, placement: ["gone", "nowhere"] }],
  ["beyond the rows of the field", { ...extra, placement: Array.from({ length: 300 }, () => "near") }],
])("extra chunks %s change nothing about what is read", async (_what, of) => {
  expect((await read(of)).used.length).toBeGreaterThanOrEqual(3);
});

test.each<[string, Answer]>([
  ["gone", { status: 404 }],
  ["refused", { status: 403 }],
  ["of another length", { status: 206, body: new Uint8Array(7) }],
  ["out of reach", "refuse"],
])("a read does without extra chunks that are %s", async (_what, answer) => {
  const { used, failed } = await read(extra, (chunk, sound) => (chunk < 4 ? sound : answer));
  expect(used.every((chunk) => chunk < 4)).toBe(true);
  expect(failed).toHaveLength(1);
});

test.each([
  ["one of them lies", [4]],
  ["all of them lie", [4, 5]],
])("no wrong byte is delivered when %s", async (_what, liars) => {
  const { failed } = await read(extra, (chunk, sound) => {
    if (!liars.includes(chunk) || typeof sound === "string") return sound;
    return { ...sound, body: sound.body!.map((byte, i) => (i % 5 === 0 ? byte ^ 1 : byte)) };
  });
  expect(failed).toEqual(["CHUNK_CORRUPT"]);
});

/** Where the fourth of seven stripes begins in a chunk. */
const MIDDLE = 90;

test.each<[string, string, (asked: number, body: Uint8Array, other: Uint8Array) => Uint8Array | undefined]>([
  ["are removed", "CHUNK_MISSING", (asked, body) => (asked === 1 ? body.subarray(0, MIDDLE + 7) : undefined)],
  ["are stored late", "CHUNK_MISSING", (asked, body) => (asked === 1 ? undefined : body)],
  ["begin to lie", "CHUNK_CORRUPT", (_asked, body) => body.map((byte, at) => (at < MIDDLE ? byte : byte ^ 1))],
  ["become the same row twice", "CHUNK_CORRUPT", (_asked, body, other) => concat([body.subarray(0, MIDDLE), other])],
])("extra chunks that %s in the middle of a read leave its bytes right", async (_what, error, bodyOf) => {
  const asked: Record<number, number> = {};
  const { failed, ms } = await read(extra, (chunk, sound) => {
    if (chunk < 4 || typeof sound === "string") return sound;
    const other = concat([3, 4, 5, 6].map((stripe) => object.shard(stripe, 9 - chunk)));
    const body = bodyOf((asked[chunk] = (asked[chunk] ?? 0) + 1), sound.body!, other);
    return body ? { ...sound, body } : { status: 404 };
  });
  expect(failed).toContain(error);
  expect(ms).toBeLessThan(1_000);
});

test.each([
  ["sound", 0],
  ["lies", 1],
])(
  "a small range of a chunk that is gone is decoded with extra chunks, where one of them is %s",
  async (_what, flip) => {
    const range = { start: 70_000, end: 70_100 };
    const answerOf = (chunk: number, sound: Answer): Answer => {
      if (chunk === 0) return { status: 404 };
      if (chunk !== 5 || typeof sound === "string") return sound;
      return { ...sound, body: sound.body!.map((byte) => byte ^ flip) };
    };
    const { failed } = await read(extra, answerOf, long, range);
    expect(failed).toEqual(["CHUNK_MISSING", ...(flip ? ["CHUNK_CORRUPT"] : [])]);
  },
);
