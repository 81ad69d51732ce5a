import { describe, expect, test } from "vitest";
import { rejectionOf } from "../test/errors.ts";
import { FakeNetwork, type Answer } from "../test/fake-fetch.ts";
import { sampleObject, type SampleObject } from "../test/sample-object.ts";
import { SimulatedClock } from "../test/simulated-clock.ts";
import { readExactly } from "./body.ts";
import { stripeShape } from "./manifest.ts";
import { RegionSource } from "./region-source.ts";

const striped = await sampleObject({ k: 2, m: 1, bytes: 250, stripeBytes: 100, key: "a b/ü.bin" });
const single = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100 });

describe("RegionSource", () => {
  test("has the chunks that are placed in it, of every stripe", () => {
    const { source } = setUp(striped, () => ({ status: 200 }));
    expect([0, 1, 2, 3].map((chunk) => source.has(9, chunk))).toEqual([false, true, false, false]);
  });

  test("asks for the byte range of its stripe, under the name of the chunk", async () => {
    const { source, network, fetch } = setUp(striped, () => ({ status: 206, body: striped.shard(1, 1) }));
    expect(source.id).toBe("r1");
    expect(await fetch(1)).toEqual(striped.shard(1, 1));
    expect(network.requests).toMatchObject([
      {
        url: `https://r1.example/bucket/chunks/a%2520b/%25C3%25BC.bin%40${striped.manifest.version}/1`,
        init: { headers: { range: "bytes=50-99" } },
      },
    ]);
  });

  test("asks for the whole chunk when the object has one stripe", async () => {
    const { network, fetch } = setUp(single, () => ({ status: 200, body: single.shard(0, 1) }));
    expect(await fetch(0)).toEqual(single.shard(0, 1));
    expect(network.requests[0]!.init.headers).toEqual({});
  });

  const shard = striped.shard(1, 1);
  const failures: Record<string, [Answer, string]> = {
    "200 where a range was asked for": [{ status: 200, body: shard }, "SOURCE_FAILED"],
    "404": [{ status: 404, body: shard }, "CHUNK_MISSING"],
    "403": [{ status: 403 }, "SOURCE_FAILED"],
    "416": [{ status: 416 }, "SOURCE_FAILED"],
    "503": [{ status: 503, body: shard }, "SOURCE_FAILED"],
    "one byte too few": [{ status: 206, body: shard.subarray(1) }, "CHUNK_WRONG_LENGTH"],
    "one byte too many": [{ status: 206, body: new Uint8Array([...shard, 0]) }, "CHUNK_WRONG_LENGTH"],
    nothing: [{ status: 206 }, "CHUNK_WRONG_LENGTH"],
    "no answer": ["refuse", "SOURCE_FAILED"],
    "a body that breaks off": [{ status: 206, body: shard.subarray(20), breaksOff: true }, "SOURCE_FAILED"],
  };
  for (const [what, [answer, code]] of Object.entries(failures)) {
    test(`reports ${what} as ${code}, and the failure as a latency of Infinity`, async () => {
      const { fetch, latencies } = setUp(striped, () => answer);
      expect((await rejectionOf(fetch(1))).code).toBe(code);
      expect(latencies).toEqual([Number.POSITIVE_INFINITY]);
    });
  }

  test("does not read the body of a refusal, nor what is longer than it may be", async () => {
    for (const answer of [
      { status: 503, body: new Uint8Array(1000) },
      { status: 206, body: new Uint8Array(1000) },
    ]) {
      const { fetch, network } = setUp(striped, () => answer);
      await rejectionOf(fetch(1));
      expect(network.requests[0]!.bodyCancelled).toBe(true);
    }
  });

  test("says how long a chunk took that arrived", async () => {
    const { fetch, latencies, clock } = setUp(striped, () => ({ status: 206, body: shard, ms: 70 }));
    await clock.run(fetch(1));
    expect(latencies).toEqual([70]);
  });

  test("says nothing of one that was aborted in its expected time, and how late it was after that", async () => {
    for (const [after, expected] of [
      [100, []],
      [200, [200]],
    ] as const) {
      const { fetch, latencies, clock } = setUp(striped, () => "hang");
      const abort = new AbortController();
      const outcome = fetch(1, abort.signal).catch((error: unknown) => error);
      await clock.advance(after);
      abort.abort("enough");
      expect(await outcome).toBe("enough");
      expect(latencies).toEqual(expected);
    }
  });
});

test("readExactly gives the bytes of a body in one array, and takes a body that is not there for an empty one", async () => {
  const none = { status: 200, headers: new Headers(), body: null };
  expect(await readExactly(none, 0, "nothing")).toEqual(new Uint8Array(0));
  expect(await rejectionOf(readExactly(none, 3, "chunk 7"))).toMatchObject({
    code: "CHUNK_WRONG_LENGTH",
    message: "chunk 7 sent 0 bytes, 3 are expected",
    details: { expected: 3, received: 0 },
  });
});

function setUp(object: SampleObject, answer: () => Answer) {
  const clock = new SimulatedClock();
  const network = new FakeNetwork(answer, (ms, signal) => (ms > 0 ? clock.sleep(ms, signal) : Promise.resolve()));
  const latencies: number[] = [];
  const source = new RegionSource({
    manifest: object.manifest,
    region: { name: "r1", url: "https://r1.example/bucket" },
    latency: () => ({ meanMs: 100, sdMs: 10 }),
    fetch: network.fetch,
    clock,
    onLatency: (ms) => latencies.push(ms),
  });
  const fetch = (stripe: number, signal = new AbortController().signal): Promise<Uint8Array> =>
    source.fetch({ stripe: stripeShape(object.manifest, stripe), chunk: 1, signal });
  return { source, network, clock, latencies, fetch };
}
