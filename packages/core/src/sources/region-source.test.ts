import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { sampleObject, type SampleObject } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { stripeShape } from "../format/manifest/index.ts";
import type { FetchInit } from "../ports.ts";
import { RegionSource } from "./region-source.ts";

const striped = await sampleObject({ k: 2, m: 1, bytes: 250, stripeBytes: 100, key: "a b/ü.bin" });
const single = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100 });

describe("RegionSource", () => {
  test("has the chunks that are placed in it, of every stripe", () => {
    const { source } = setUp(striped, () => ({ status: 200 }));
    expect([0, 1, 2, 3].map((chunk) => source.has(9, chunk))).toEqual([false, true, false, false]);
  });

  test("requests the byte range of its stripe, under the name of the chunk", async () => {
    const { source, network, fetch } = setUp(striped, () => ({ status: 206, body: striped.shard(1, 1) }));
    expect(source.id).toBe("r1");
    expect(await fetch(1)).toEqual(striped.shard(1, 1));
    expect(network.requests).toMatchObject([
      {
        url: `https://r1.example/bucket/chunks/a%2520b/~8w-.bin%21${striped.manifest.upload}/1`,
        init: { headers: { range: "bytes=50-99" } },
      },
    ]);
  });

  test("requests the whole chunk if the object has one stripe", async () => {
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
    test(`reports ${what} as ${code}`, async () => {
      const { fetch } = setUp(striped, () => answer);
      expect((await rejectionOf(fetch(1))).code).toBe(code);
    });
  }

  test("reads neither the body of a refusal nor the rest of one that is too long", async () => {
    for (const answer of [
      { status: 503, body: new Uint8Array(1000) },
      { status: 206, body: new Uint8Array(1000) },
    ]) {
      const { fetch, network } = setUp(striped, () => answer);
      await rejectionOf(fetch(1));
      expect(network.requests[0]!.bodyCancelled).toBe(true);
    }
  });
});

describe("one GET for several stripes", () => {
  const whole = [0, 1, 2].flatMap((stripe) => [...striped.shard(stripe, 1)]);
  const shards = [0, 1, 2].map((stripe) => striped.shard(stripe, 1));
  /** Answers any range of chunk 1, and the whole of it. */
  const serve: (init: FetchInit) => Extract<Answer, object> = ({ headers }) => {
    const [from, to] = (headers!["range"] ?? "").slice("bytes=".length).split("-").map(Number);
    return to === undefined
      ? { status: 200, body: new Uint8Array(whole) }
      : { status: 206, body: new Uint8Array(whole.slice(from, to + 1)) };
  };
  const ranges = ({ requests }: FakeNetwork): (string | undefined)[] =>
    requests.map(({ init }) => init.headers!["range"]);

  test("serves all of them, and requests the whole chunk for a whole read", async () => {
    const { take, network } = setUp(striped, serve);
    expect(await take([0, 1, 2], 2)).toEqual(shards);
    expect(ranges(network)).toEqual([undefined]);
  });

  test("serves later requests without another GET", async () => {
    const { take, network, source } = setUp(striped, serve);
    expect(await take([1], 2)).toEqual([shards[1]]);
    source.release(1);
    expect(await take([2], 2)).toEqual([shards[2]]);
    expect(ranges(network)).toEqual(["bytes=50-124"]);
  });

  test("is not read while no request waits, and ends with the read", async () => {
    const { take, network, source } = setUp(striped, serve);
    await take([0], 2);
    expect(network.requests[0]!.partsRead).toBeLessThan(network.requests[0]!.parts);
    expect(network.requests[0]!.init.signal!.aborted).toBe(false);
    source.close();
    expect(network.requests[0]!.init.signal!.aborted).toBe(true);
  });

  test("continues after the end of the read for requests that wait", async () => {
    const { clock, source, fetch } = setUp(striped, serve);
    const shared = fetch(0, { lastStripe: 2 });
    source.close();
    expect(await clock.run(shared)).toEqual(shards[0]);
  });

  test("ends when its next stripe is done without it", async () => {
    const { take, network, source } = setUp(striped, serve);
    await take([0], 2);
    source.release(0);
    expect(network.requests[0]!.init.signal!.aborted).toBe(false);
    source.release(1);
    expect(network.requests[0]!.init.signal!.aborted).toBe(true);
    expect(await take([2], 2)).toEqual([shards[2]]);
    expect(ranges(network)).toEqual([undefined, "bytes=100-124"]);
  });

  test("that lags behind others reads past unwanted shards", async () => {
    const { clock, fetch, network } = setUp(striped, serve);
    const abort = new AbortController();
    const overtaken = fetch(0, { lastStripe: 2, signal: abort.signal }).catch((error: unknown) => error);
    const waiting = fetch(1, { lastStripe: 2 });
    abort.abort("enough");
    const next = fetch(2, { lastStripe: 2 });
    expect(await overtaken).toBe("enough");
    expect(await clock.run(Promise.all([waiting, next]))).toEqual(shards.slice(1));
    expect(ranges(network)).toEqual([undefined]);
  });

  test("that was overtaken waits for the next stripe", async () => {
    const { take, fetch, network } = setUp(striped, serve);
    const abort = new AbortController();
    const overtaken = fetch(1, { lastStripe: 2, signal: abort.signal }).catch((error: unknown) => error);
    abort.abort("enough");
    expect(await overtaken).toBe("enough");
    expect(network.requests[0]!.init.signal!.aborted).toBe(false);
    expect(await take([2], 2)).toEqual([shards[2]]);
    expect(ranges(network)).toEqual(["bytes=50-124"]);
  });

  test("that lags far behind is replaced by a new one", async () => {
    const long = await sampleObject({ k: 2, m: 1, bytes: 1000, stripeBytes: 100 });
    const { fetch, network, clock } = setUp(long, () => "hang");
    const abort = new AbortController();
    for (let stripe = 0; stripe < 6; stripe++) {
      void fetch(stripe, { lastStripe: 9, ...(stripe < 5 && { signal: abort.signal }) }).catch(() => {});
    }
    await clock.advance(1);
    abort.abort();
    expect(network.requests).toHaveLength(1);
    void fetch(6, { lastStripe: 9 });
    expect(ranges(network)).toEqual([undefined, "bytes=300-499"]);
    // Stripe 5 is waited for still.
    expect(network.requests[0]!.init.signal!.aborted).toBe(false);
  });

  test("ends at once when all requests are aborted and it has no further stripe", async () => {
    const { fetch, network, clock } = setUp(striped, () => "hang");
    const abort = new AbortController();
    const both = [0, 1].map((stripe) => fetch(stripe, { lastStripe: 1, signal: abort.signal }).catch(() => {}));
    await clock.advance(1);
    abort.abort();
    await Promise.all(both);
    expect(network.requests.map(({ init }) => init.signal!.aborted)).toEqual([true]);
  });

  test("continues when an earlier stripe wants the chunk after all, which gets a GET of its own", async () => {
    const { take, network } = setUp(striped, serve);
    expect(await take([1], 2)).toEqual([shards[1]]);
    expect(await take([0], 2)).toEqual([shards[0]]);
    expect(await take([2], 2)).toEqual([shards[2]]);
    expect(ranges(network)).toEqual(["bytes=50-124", "bytes=0-49"]);
  });

  test("that has ended leaves a repeated request to a GET of its own", async () => {
    const { take, network } = setUp(striped, serve);
    expect(await take([0, 1, 2], 2)).toEqual(shards);
    expect(await take([1], 2)).toEqual([shards[1]]);
    expect(ranges(network)).toEqual([undefined, "bytes=50-99"]);
  });

  test("that is cut off in the middle is repeated from there, which is no failure", async () => {
    const cut: Answer = { status: 200, body: new Uint8Array(whole.slice(0, 60)), breaksOff: true };
    const { take, network } = setUp(striped, (init) => (init.headers!["range"] ? serve(init) : cut));
    expect(await take([0, 1, 2], 2)).toEqual(shards);
    expect(ranges(network)).toEqual([undefined, "bytes=50-124"]);
  });

  test("that ends early again and again is a failure", async () => {
    const { take, network } = setUp(striped, (init) => {
      const { status, body } = serve(init);
      return { status, body: body!.subarray(0, -1) };
    });
    expect((await rejectionOf(take([0, 1, 2], 2))).code).toBe("CHUNK_WRONG_LENGTH");
    expect(ranges(network)).toEqual([undefined, "bytes=100-124"]);
  });

  test("fails all its requests together if no byte has come", async () => {
    const { fetch, network } = setUp(striped, () => ({ status: 503 }));
    const errors = await Promise.all([0, 1, 2].map((stripe) => rejectionOf(fetch(stripe, { lastStripe: 2 }))));
    expect(errors.map(({ code }) => code)).toEqual(["SOURCE_FAILED", "SOURCE_FAILED", "SOURCE_FAILED"]);
    expect(network.requests).toHaveLength(1);
  });

  test("covers at most 64 MiB of the object", () => {
    const manifest = { ...striped.manifest, bytes: 1e9, stripeBytes: 16 * 1024 * 1024 };
    const { fetch, network } = setUp({ ...striped, manifest }, () => "hang");
    void fetch(2, { lastStripe: 50 });
    const shardBytes = 8 * 1024 * 1024;
    expect(ranges(network)).toEqual([`bytes=${2 * shardBytes}-${6 * shardBytes - 1}`]);
  });
});

function setUp(object: SampleObject, answer: (init: FetchInit) => Answer) {
  const clock = new SimulatedClock();
  const network = new FakeNetwork(
    (_, init) => answer(init),
    (ms, signal) => (ms > 0 ? clock.sleep(ms, signal) : Promise.resolve()),
  );
  const source = new RegionSource({
    manifest: object.manifest,
    region: { name: "r1", url: "https://r1.example/bucket" },
    latency: () => ({ meanMs: 100, sdMs: 10 }),
    fetch: network.fetch,
  });
  const fetch = (stripe: number, options: { signal?: AbortSignal; lastStripe?: number } = {}): Promise<Uint8Array> => {
    const { signal = new AbortController().signal, lastStripe = stripe } = options;
    const last = stripeShape(object.manifest, lastStripe);
    const until = last.chunkOffset + last.shardBytes;
    return source.fetch({ stripe: stripeShape(object.manifest, stripe), chunk: 1, until, signal });
  };
  /** Asks for `stripes` at once, as a read up to `lastStripe` does. */
  const take = (stripes: readonly number[], lastStripe: number): Promise<Uint8Array[]> =>
    clock.run(Promise.all(stripes.map((stripe) => fetch(stripe, { lastStripe }))));
  return { source, network, clock, fetch, take };
}
