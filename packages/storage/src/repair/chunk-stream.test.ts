/** A chunk whose body ends before its end: from where it is asked for once more, and when it is given up. */
import { rejectionOf, sampleObject, streamOf } from "@agarose/core/testing";
import { stripeCount, stripeShape } from "@agarose/core/format";
import { describe, expect, test } from "vitest";
import type { GetOptions, Store } from "../buckets/store.ts";
import { ChunkStream } from "./chunk-stream.ts";

const { manifest, shard } = await sampleObject({ k: 2, m: 1, bytes: 1000, stripeBytes: 200 });
const CHUNK = 1;
const SHARDS = Array.from({ length: stripeCount(manifest) }, (_, stripe) => Buffer.from(shard(stripe, CHUNK)));
const BYTES = Buffer.concat(SHARDS);
const RESET = new Error("the connection was reset");

/** How one answer ends: after so many bytes, and with this error or as if all had come. */
interface Cut {
  readonly after: number;
  readonly error?: Error | undefined;
}

interface Given {
  readonly stored: readonly Buffer[];
  readonly firstStripe: number;
  /** Whether a range that is not there is answered with all of the chunk. */
  readonly ignoresRange: boolean;
}

/** A store whose answers are cut in turn. Those after the last cut are whole. */
function openStream(
  cuts: readonly Cut[],
  { stored = [BYTES], firstStripe = 0, ignoresRange = false }: Partial<Given> = {},
) {
  const ranges: (string | undefined)[] = [];
  const own = new AbortController();
  const get = async (_name: string, { range, signal }: GetOptions = {}) => {
    const nth = ranges.push(range) - 1;
    signal?.throwIfAborted();
    const start = Number(/^bytes=(\d+)-$/.exec(range ?? "bytes=0-")![1]);
    const rest = (stored[nth] ?? stored.at(-1)!).subarray(start);
    if (rest.length === 0 && range !== undefined && ignoresRange) {
      const headers = new Headers({ "content-length": String(stored.at(-1)!.length) });
      return { status: 200, headers, body: streamOf(stored) };
    }
    if (rest.length === 0 && range !== undefined) return { status: 416, headers: new Headers(), body: null };
    const { after = Number.POSITIVE_INFINITY, error } = cuts[nth] ?? {};
    const parts: Uint8Array[] = [];
    for (let at = 0; at < Math.min(after, rest.length); at += 40) {
      parts.push(rest.subarray(at, Math.min(at + 40, after)));
    }
    return { status: range === undefined ? 200 : 206, headers: new Headers(), body: streamOf(parts, { error }) };
  };
  const store = { region: { name: "dublin" }, get } as unknown as Store;
  const stream = new ChunkStream(manifest, CHUNK, store, firstStripe, own.signal);
  const rest = async (): Promise<Buffer[]> => {
    const shards: Buffer[] = [];
    for (let stripe = firstStripe; stripe < SHARDS.length; stripe++) {
      shards.push(Buffer.from(await stream.next(stripeShape(manifest, stripe).shardBytes)));
    }
    return shards;
  };
  return { stream, ranges, own, rest };
}

describe.each([
  ["is reset", { error: RESET }],
  ["ends early", { error: undefined }],
])("a body that %s", (_name, how) => {
  test.each([
    ["in the middle of a shard", 130],
    ["between two shards", 200],
    ["within the first part", 1],
  ])("%s goes on from there by a second request", async (_place, after) => {
    const { ranges, rest } = openStream([{ after, ...how }]);
    expect(await rest()).toEqual(SHARDS);
    expect(ranges).toEqual([undefined, `bytes=${after}-`]);
  });

  test("in two shards goes on twice", async () => {
    const { ranges, rest } = openStream([
      { after: 130, ...how },
      { after: 150, ...how },
    ]);
    expect(await rest()).toEqual(SHARDS);
    expect(ranges).toEqual([undefined, "bytes=130-", "bytes=280-"]);
  });

  test("goes on in a stream that begins at a later stripe", async () => {
    const { ranges, rest } = openStream([{ after: 130, ...how }], { firstStripe: 2 });
    expect(await rest()).toEqual(SHARDS.slice(2));
    expect(ranges).toEqual(["bytes=200-", "bytes=330-"]);
  });

  test("before its first byte fails by one request", async () => {
    const { ranges, rest } = openStream([{ after: 0, ...how }]);
    await expect(rest()).rejects.toThrow(how.error ? "reset" : "ends 100 bytes early");
    expect(ranges).toEqual([undefined]);
  });

  test("twice in one shard fails by the second request", async () => {
    const { ranges, rest } = openStream([
      { after: 130, ...how },
      { after: 20, ...how },
    ]);
    await expect(rest()).rejects.toThrow(how.error ? "reset" : "ends 50 bytes early");
    expect(ranges).toEqual([undefined, "bytes=130-"]);
  });

  test("again before the first byte that was missing fails by the second request", async () => {
    const { ranges, rest } = openStream([
      { after: 200, ...how },
      { after: 0, ...how },
    ]);
    await expect(rest()).rejects.toThrow(how.error ? "reset" : "ends 100 bytes early");
    expect(ranges).toEqual([undefined, "bytes=200-"]);
  });

  test("is not asked for once more when nobody waits for it", async () => {
    const { stream, ranges, own } = openStream([{ after: 130, ...how }]);
    await stream.next(100);
    const read = stream.next(100);
    own.abort(new Error("the caller left"));
    await expect(read).rejects.toThrow();
    expect(ranges).toEqual([undefined]);
  });
});

test.each([false, true])("a chunk that is shorter than its length is found so (all of it again: %s)", async (again) => {
  const { ranges, rest } = openStream([], { stored: [BYTES.subarray(0, 497)], ignoresRange: again });
  expect(await rejectionOf(rest())).toMatchObject({ code: "CHUNK_WRONG_LENGTH", details: { region: "dublin" } });
  expect(ranges).toEqual([undefined, "bytes=497-"]);
});

test("a second answer that is of another object changes no byte of the shards before it", async () => {
  const { ranges, rest } = openStream([{ after: 130, error: RESET }], { stored: [BYTES, Buffer.alloc(5_000)] });
  const shards = await rest();
  expect(shards[0]).toEqual(SHARDS[0]);
  expect(shards.slice(1).every((bytes, index) => !bytes.equals(SHARDS[index + 1]!))).toBe(true);
  expect(ranges).toEqual([undefined, "bytes=130-"]);
});
