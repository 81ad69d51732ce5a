import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CountingSignal } from "../../test/counting-signal.ts";
import { rejectionOf } from "../../test/errors.ts";
import type { Behaviour } from "../../test/fake-source.ts";
import { FakeNetwork } from "../../test/fake-fetch.ts";
import { collect, ReadWorld } from "../../test/read-world.ts";
import { referenceCodec } from "../../test/objects/reference-codec.ts";
import { pseudoRandomBytes, sampleObject } from "../../test/objects/sample-object.ts";
import { settle } from "../../test/simulated-clock.ts";
import { streamOf } from "../../test/streams.ts";
import { bundleSource } from "../sources/bundle-source.ts";
import { encodeFrame } from "../format/bundle.ts";
import { FrameReader } from "../sources/frame-reader.ts";
import { AgaroseError } from "../errors.ts";
import { systemClock, systemSha256 } from "../ports.ts";
import { readKind, type ReadReport } from "./read-report.ts";
import { openRead, type ObjectRead } from "./object-stream.ts";
import { WINDOW_STRIPES_MAX, type StripeData, type StripeSharing } from "./read-options.ts";
import { RegionSource } from "../sources/region-source.ts";
import type { ChunkSource } from "../sources/source.ts";

/** Four stripes of 4 + 2 chunks: 300 + 300 + 300 + 100 bytes. */
const small = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 300 });
/** 40 stripes. */
const long = await sampleObject({ k: 2, m: 1, bytes: 4000, stripeBytes: 100 });

describe("a whole object", () => {
  for (const bytes of [0, 1, 2, 3, 4, 5, 299, 300, 301, 600, 1000]) {
    test(`of ${bytes} bytes arrives unchanged`, async () => {
      const world = new ReadWorld(await sampleObject({ k: 4, m: 2, bytes, stripeBytes: 300 }));
      expect(await world.read()).toEqual(pseudoRandomBytes(bytes));
    });

    test(`of ${bytes} bytes arrives unchanged without as many data chunks as it can lose`, async () => {
      const world = new ReadWorld(await sampleObject({ k: 4, m: 2, bytes, stripeBytes: 300 }), (_, i) => ({
        behaviour: () => (i < 2 ? "error" : "serve"),
      }));
      expect(await world.read()).toEqual(pseudoRandomBytes(bytes));
      expect(world.sources[0]!.faults.length + world.sources[1]!.faults.length > 0).toBe(bytes > 0);
    });
  }

  test("that is empty makes no request and reports its end once", async () => {
    const world = new ReadWorld(await sampleObject({ k: 4, m: 2, bytes: 0, stripeBytes: 300 }));
    const ends: unknown[] = [];
    expect(await world.read({ onEnd: (_, error) => ends.push(error) })).toHaveLength(0);
    expect(world.requests()).toBe(0);
    expect(ends).toEqual([undefined]);
  });

  test("does not load the codec while all data chunks arrive", async () => {
    const world = new ReadWorld(small, (_, i) => ({ ms: i < 4 ? 50 : 500 }));
    await world.read({ delta: 2 });
    expect(world.codecLoads).toBe(0);
  });

  test("decodes only the missing shards", async () => {
    const world = new ReadWorld(small, (id) => ({ behaviour: () => (id === "r1" ? "error" : "serve") }));
    const { body, report } = await world.clock.run(world.open());
    expect(await world.clock.run(collect(body))).toEqual(small.bytes);
    expect(world.sources[1]!.faults).toContain("error");
    expect(report.decoding.shards).toBe(4);
  });

  test("fails with the codec's own error if the codec cannot be loaded", async () => {
    const world = new ReadWorld(small, (id) => ({ behaviour: () => (id === "r1" ? "error" : "serve") }));
    const error = await rejectionOf(world.read({ codec: () => Promise.reject(new TypeError("no such module")) }));
    expect(error).toMatchObject({ code: "INTERNAL", message: "no such module" });
  });
});

test("an object comes from a PoP's bundle and from buckets together, on the runtime's own ports", async () => {
  const object = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 300, sha256: systemSha256 });
  const { manifest } = object;
  const frames = [0, 1, 2, 3].flatMap((stripe) => [
    encodeFrame("chunk", stripe, 4, object.shard(stripe, 4)),
    stripe === 2
      ? encodeFrame("miss", 2, 0, new Uint8Array(0))
      : encodeFrame("chunk", stripe, 0, object.shard(stripe, 0)),
  ]);
  const bundle = bundleSource({
    id: "fra",
    latency: () => ({ meanMs: 5, sdMs: 1 }),
    cached: () => [0, 4],
    frames: Promise.resolve(new FrameReader(streamOf([...frames, encodeFrame("end", 0, 0, new Uint8Array(0))]))),
  });
  const network = new FakeNetwork((url, { headers }) => {
    const chunk = Number(url.split("/").at(-1));
    const whole = [0, 1, 2, 3].flatMap((stripe) => [...object.shard(stripe, chunk)]);
    const [first, last] = (headers?.["range"] ?? "").slice("bytes=".length).split("-").map(Number);
    const isWhole = last === undefined;
    return { status: isWhole ? 200 : 206, body: new Uint8Array(isWhole ? whole : whole.slice(first, last + 1)) };
  });
  const regions = manifest.placement.map((name) => {
    const region = { name, url: `https://${name}.example` };
    return new RegionSource({
      manifest,
      region,
      latency: () => ({ meanMs: 50, sdMs: 5 }),
      fetch: network.fetch,
    });
  });
  const { body, report } = await openRead(
    { manifest, sources: [bundle, ...regions] },
    { codec: async () => referenceCodec, clock: systemClock, sha256: systemSha256, random: Math.random },
  );
  expect(await collect(body)).toEqual(object.bytes);
  expect(readKind(report)).toBe("mixed");
  const fromEdge = report.requests.filter(({ kind, outcome }) => kind === "edge" && outcome === "used");
  expect(fromEdge.length).toBeGreaterThan(0);
});

describe("functional chunks in a PoP's bundle", () => {
  test("save one request to a bucket each", async () => {
    const world = new ReadWorld(small);
    const sources = [bundleOf(small.shard), ...world.sources];
    const { body, report } = await world.clock.run(world.open({ sources, delta: 0 }));
    expect(await world.clock.run(collect(body))).toEqual(small.bytes);
    expect(world.requests()).toBe(4);
    expect(readKind(report)).toBe("mixed");
    expect(report.decoding.shards).toBe(12);
  });

  test("cost one more request if one is corrupt, and the read is degraded", async () => {
    const world = new ReadWorld(small);
    const corrupt = (stripe: number, chunk: number): Uint8Array =>
      small.shard(stripe, chunk).map((byte) => (stripe === 2 && chunk === 8 ? byte ^ 0x80 : byte));
    const sources = [bundleOf(corrupt), ...world.sources];
    const { body, report } = await world.clock.run(world.open({ sources, delta: 0, hedge: false }));
    expect(await world.clock.run(collect(body))).toEqual(small.bytes);
    expect(readKind(report)).toBe("degraded");
    const dropped = report.requests.filter(({ error }) => error === "CHUNK_CORRUPT");
    expect(dropped.map(({ stripe, chunk }) => [stripe, chunk])).toEqual([[2, 8]]);
    expect(world.requests()).toBe(5);
  });
});

describe("a range", () => {
  test("is cut out of the stripes it touches, and no other is read", async () => {
    const world = new ReadWorld(small);
    expect(await world.read({ range: { start: 350, end: 620 } })).toEqual(small.bytes.subarray(350, 620));
    expect(world.stripesAsked()).toEqual([1, 2]);
  });

  test("that ends where a stripe ends does not touch the next one", async () => {
    const world = new ReadWorld(small);
    expect(await world.read({ range: { start: 300, end: 600 } })).toEqual(small.bytes.subarray(300, 600));
    expect(world.stripesAsked()).toEqual([1]);
  });

  test("of no bytes makes no request", async () => {
    const world = new ReadWorld(small);
    expect(await world.read({ range: { start: 300, end: 300 } })).toHaveLength(0);
    expect(world.requests()).toBe(0);
  });

  test("of any kind returns exactly its bytes, decoded or not", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(1000), fc.nat(1000), fc.boolean(), async (a, b, lossy) => {
        const range = { start: Math.min(a, b), end: Math.max(a, b) };
        const world = new ReadWorld(small, (_, i) => ({ behaviour: () => (lossy && i < 2 ? "error" : "serve") }));
        expect(await world.read({ range })).toEqual(small.bytes.subarray(range.start, range.end));
      }),
      { numRuns: 60 },
    );
  });
});

describe("order and memory", () => {
  test("stripes are delivered in order though they arrive in another", async () => {
    const world = new ReadWorld(small, () => ({ ms: ({ stripe }) => 1000 - 200 * stripe.index }));
    const { body, report } = await world.clock.run(world.open({ windowBytes: 1200, hedge: false }));
    expect(await world.clock.run(collect(body))).toEqual(small.bytes);
    const ends = [0, 1, 2, 3].map((index) => Math.max(...used(report, index).map(({ endMs }) => endMs!)));
    expect(ends).toEqual([1000, 800, 600, 400]);
  });

  test("reads no further ahead than the window while the consumer waits", async () => {
    const world = new ReadWorld(long);
    await world.clock.run(world.open({ windowBytes: 499 }));
    await world.clock.advance(60_000);
    expect(world.stripesAsked()).toEqual([0, 1, 2, 3]);
  });

  test("never holds more stripes than the window, including the one being delivered", async () => {
    const world = new ReadWorld(long);
    const { body } = await world.clock.run(world.open({ windowBytes: 400 }));
    const reader = body.getReader();
    let received = 0;
    for (let reads = 0; ; reads++) {
      await world.clock.advance(1000);
      // 100 bytes a stripe, in shards of 50: whatever is not received yet of the stripes that were asked for is held.
      const asked = world.stripesAsked().length * 100;
      expect(asked - received).toBeLessThanOrEqual(400);
      const { done, value } = await world.clock.run(reader.read());
      if (done) break;
      received += value.length;
    }
    expect(received).toBe(4000);
  });

  test("keeps the window full for a consumer that reads on", async () => {
    const world = new ReadWorld(long);
    await world.read({ windowBytes: 1000 });
    // 40 stripes, ten at a time, 100 ms each: the window moves on as each one leaves.
    expect(world.clock.now()).toBe(400);
  });

  test("reads at least one stripe at a time, however small the window", async () => {
    const world = new ReadWorld(long);
    expect(await world.read({ windowBytes: 1 })).toEqual(long.bytes);
    expect(world.clock.now()).toBe(4000);
  });

  test("does not start hundreds of small stripes at a time", async () => {
    const world = new ReadWorld(long);
    await world.clock.run(world.open());
    expect(world.stripesAsked()).toHaveLength(WINDOW_STRIPES_MAX);
  });

  test("releases every stripe at its sources, once", async () => {
    const world = new ReadWorld(small);
    await world.read();
    for (const { released } of world.sources) expect(released.toSorted()).toEqual([0, 1, 2, 3]);
  });
});

/** Hands every stripe to the first read that asks for it. */
const sharing = (): StripeSharing => {
  const stripes = new Map<number, Promise<StripeData>>();
  return (stripe, read, signal) => {
    const shared = stripes.get(stripe) ?? read(signal);
    stripes.set(stripe, shared);
    return shared;
  };
};

const ofStripe = (index: number, { report }: ObjectRead) => report.requests.filter(({ stripe }) => stripe === index);

describe("a read that shares", () => {
  test("makes no request for stripes of another read, and reports that one's requests as its own", async () => {
    const share = sharing();
    const world = new ReadWorld(small, (id) => ({ behaviour: () => (id === "r1" ? "error" : "serve") }));
    const reads = [world.open({ share }), world.open({ share, range: { start: 350, end: 620 } })];
    const [whole, part] = await world.clock.run(Promise.all(reads));
    expect(await world.clock.run(collect(whole!.body))).toEqual(small.bytes);
    const requests = world.requests();
    expect(await world.clock.run(collect(part!.body))).toEqual(small.bytes.subarray(350, 620));
    expect(world.requests()).toBe(requests);
    for (const stripe of [1, 2]) expect(ofStripe(stripe, part!)).toEqual(ofStripe(stripe, whole!));
    expect(ofStripe(0, part!)).toEqual([]);
    expect(part!.report.decoding.shards).toBe(2);
    expect(world.sources[0]!.released.toSorted()).toEqual([0, 1, 2, 3]);
  });
});

describe("sources that fail", () => {
  test("are asked last in later stripes", async () => {
    const world = new ReadWorld(long, (id) => ({ behaviour: () => (id === "r0" ? "error" : "serve") }));
    await world.read({ windowBytes: 100, delta: 0 });
    expect(world.sources[0]!.faults).toEqual(["error"]);
  });

  test("are tried again after five seconds, then after twice as long each time, because they may recover", async () => {
    const world = new ReadWorld(long, (id) => ({
      behaviour: () => (id === "r0" && world.clock.now() < 20_000 ? "error" : "serve"),
      ms: 600,
    }));
    await world.read({ windowBytes: 100, delta: 0, hedge: false });
    const { requests, faults } = world.sources[0]!;
    const seconds = requests.map(({ at }) => at / 1_000);
    expect(faults).toHaveLength(3);
    expect(seconds).toEqual([0, 6, 16.8]);
  });

  test("make a read fail before the first byte if fewer than k chunks are left, with both numbers", async () => {
    const world = new ReadWorld(small, (_, i) => ({ behaviour: () => (i < 3 ? "error" : "serve") }));
    const ends: unknown[] = [];
    const error = await rejectionOf(world.read({ onEnd: (_, reason) => ends.push(reason) }));
    expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { needed: 4, available: 3 } });
    expect(ends).toEqual([error]);
    expect(world.clock.pendingTimers).toBe(0);
  });

  test("in the middle of a body error it and never end it short", async () => {
    const world = new ReadWorld(small, (_, i) => ({
      behaviour: ({ stripe }) => (stripe.index === 2 && i < 3 ? "corrupt" : "serve"),
    }));
    const ends: unknown[] = [];
    const read = await world.clock.run(world.open({ windowBytes: 300, onEnd: (_, reason) => ends.push(reason) }));
    const reader = read.body.getReader();
    let received = 0;
    const error = await rejectionOf(
      world.clock.run(
        (async () => {
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            received += value.length;
          }
        })(),
      ),
    );
    expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { stripe: 2 } });
    expect(received).toBe(600);
    expect(ends).toEqual([error]);
    expect(read.report.endMs).toBe(world.clock.now());
  });

  test("of any kind, anywhere, result in the exact bytes or an error", async () => {
    const faulty: Behaviour[] = ["error", "missing", "corrupt", "truncate", "lengthen", "hang"];
    const percent = fc.constantFrom(0, 5, 15, 40);
    const outcomes = { read: 0, failed: 0, faults: 0 };
    await fc.assert(
      fc.asyncProperty(percent, fc.infiniteStream(fc.nat(99)), fc.infiniteStream(fc.nat(400)), async (p, dice, ms) => {
        const world = new ReadWorld(small, () => ({
          behaviour: () => (next(dice) < p ? faulty[next(dice) % faulty.length]! : "serve"),
          ms: () => next(ms),
        }));
        const result = await world.read({ timeoutMs: 5000, windowBytes: 600 }).catch((error: unknown) => error);
        outcomes.faults += world.sources.flatMap((source) => source.faults).length;
        if (result instanceof Uint8Array) {
          expect(result).toEqual(small.bytes);
          outcomes.read++;
        } else {
          expect(result).toBeInstanceOf(AgaroseError);
          expect((result as AgaroseError).code).toMatch(/^(NOT_ENOUGH_CHUNKS|READ_TIMEOUT)$/);
          outcomes.failed++;
        }
        expect(world.clock.pendingTimers).toBe(0);
      }),
      { numRuns: 200 },
    );
    // The faults did fire, and neither outcome was omitted.
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(10);
  });
});

describe("the end of a read", () => {
  test("leaves no timer and no listener, and is reported once", async () => {
    const world = new ReadWorld(small);
    const counting = new CountingSignal(new AbortController().signal);
    const ends: [number | undefined, unknown][] = [];
    await world.read({ signal: counting.signal, onEnd: ({ endMs }, error) => ends.push([endMs, error]) });
    expect(counting.listeners).toBe(0);
    expect(world.clock.pendingTimers).toBe(0);
    expect(ends).toEqual([[world.clock.now(), undefined]]);
  });

  test("comes with the last byte, without a further read", async () => {
    const world = new ReadWorld(await sampleObject({ k: 1, m: 1, bytes: 10, stripeBytes: 10 }));
    const ends: unknown[] = [];
    const { body } = await world.clock.run(world.open({ onEnd: (_, error) => ends.push(error) }));
    expect(ends).toEqual([]);
    await world.clock.run(body.getReader().read());
    expect(ends).toEqual([undefined]);
  });

  test("by a consumer that cancels aborts all requests", async () => {
    const world = new ReadWorld(long);
    const counting = new CountingSignal(new AbortController().signal);
    const ends: unknown[] = [];
    const { body } = await world.clock.run(
      world.open({ windowBytes: 400, signal: counting.signal, onEnd: (_, error) => ends.push(error) }),
    );
    const reader = body.getReader();
    await world.clock.run(reader.read());
    await world.clock.run(reader.read());
    void reader.read();
    await settle();
    const before = world.requests();
    await reader.cancel();
    await world.clock.advance(60_000);
    expect(world.requests()).toBe(before);
    expect(counting.listeners).toBe(0);
    expect(world.clock.pendingTimers).toBe(0);
    expect(ends).toEqual([expect.objectContaining({ code: "ABORTED" })]);
  });

  test("by a consumer that cancels at any moment of an arrival is ABORTED, unless it has the last byte", async () => {
    const seen = new Set<string>();
    const settled = Promise.resolve();
    for (const stripe of [1, 3]) {
      for (let turns = 0; turns < 60; turns++) {
        const world = new ReadWorld(small);
        const ends: unknown[] = [];
        let cancel = (): void => {};
        let arrived = 0;
        const opening = world.open({
          windowBytes: 1,
          onRequest: ({ stripe: of, outcome }) => {
            if (of === stripe && outcome === "used" && ++arrived === 4) cancel();
          },
          onEnd: (_, error) => ends.push(error && (error as AgaroseError).code),
        });
        const reader = (await world.clock.run(opening)).body.getReader();
        // Each stripe before is four parts, and the stream asks for the next one when they are taken.
        for (let part = 0; part < 4 * stripe; part++) await world.clock.run(reader.read());
        const cancelled = Promise.withResolvers<void>();
        const cancelLater = async (): Promise<void> => {
          for (let turn = 0; turn < turns; turn++) await settled;
          await reader.cancel();
        };
        cancel = () => void cancelLater().then(cancelled.resolve);
        const read = reader.read();
        await world.clock.run(cancelled.promise);
        await world.clock.advance(60_000);
        const hasPart = !(await read).done;
        seen.add(`${stripe} ${hasPart}`);
        expect(ends, `stripe ${stripe}, ${turns} turns`).toEqual([hasPart && stripe === 3 ? undefined : "ABORTED"]);
        expect(world.clock.pendingTimers).toBe(0);
      }
    }
    expect(seen, "before and after the arrival").toEqual(new Set(["1 false", "1 true", "3 false", "3 true"]));
  });

  test.each([
    ["enough", "ABORTED"],
    [new TypeError("the page has gone"), "ABORTED"],
    [new AgaroseError("DECRYPTION_FAILED", "not its key"), "DECRYPTION_FAILED"],
  ])("by a consumer that cancels because of %s is %s", async (reason, code) => {
    const world = new ReadWorld(small);
    const ends: unknown[] = [];
    const { body } = await world.clock.run(world.open({ onEnd: (_, error) => ends.push(error) }));
    await body.cancel(reason);
    await settle();
    expect(ends).toEqual([expect.objectContaining({ code })]);
  });

  test("by a signal rejects a read that has not begun to deliver", async () => {
    const world = new ReadWorld(small);
    const abort = new AbortController();
    const counting = new CountingSignal(abort.signal);
    const ends: AgaroseError[] = [];
    const read = rejectionOf(
      world.open({ signal: abort.signal, onEnd: (_, error) => ends.push(error as AgaroseError) }),
    );
    await world.clock.advance(50);
    abort.abort();
    expect((await read).code).toBe("ABORTED");
    expect(world.sources.flatMap(({ requests }) => requests).every(({ signal }) => signal.aborted)).toBe(true);
    expect(ends.map(({ code }) => code)).toEqual(["ABORTED"]);
    expect(counting.listeners).toBe(0);
    expect(world.clock.pendingTimers).toBe(0);
  });

  test("by a signal errors the body at once, even with stripes waiting in it", async () => {
    const world = new ReadWorld(long);
    const abort = new AbortController();
    const { body } = await world.clock.run(world.open({ windowBytes: 400, signal: abort.signal }));
    await world.clock.advance(1000);
    const reader = body.getReader();
    await world.clock.run(reader.read());
    abort.abort();
    expect((await rejectionOf(reader.read())).code).toBe("ABORTED");
    expect(world.clock.pendingTimers).toBe(0);
  });

  test("by a signal that is aborted already rejects without a request, also for an empty object", async () => {
    for (const bytes of [0, 100]) {
      const world = new ReadWorld(await sampleObject({ k: 2, m: 1, bytes, stripeBytes: 100 }));
      const ends: unknown[] = [];
      const error = await rejectionOf(
        world.read({ signal: AbortSignal.abort(), onEnd: (_, reason) => ends.push(reason) }),
      );
      expect(error.code).toBe("ABORTED");
      expect(world.requests()).toBe(0);
      expect(ends).toEqual([error]);
    }
  });

  test("by the time-out of one stripe fails the read", async () => {
    const world = new ReadWorld(small, () => ({
      behaviour: ({ stripe }) => (stripe.index === 1 ? "hang" : "serve"),
    }));
    const error = await rejectionOf(world.read({ timeoutMs: 700 }));
    expect(error).toMatchObject({ code: "READ_TIMEOUT", details: { stripe: 1, needed: 4, received: 0 } });
  });
});

function used({ requests }: ReadReport, stripe: number): ReadReport["requests"] {
  return requests.filter((request) => request.stripe === stripe && request.outcome === "used");
}

function next<T>(stream: fc.Stream<T>): T {
  return stream.next().value as T;
}

/** A PoP's bundle with the chunks 6, 8 and 9 of `small`. */
function bundleOf(shardOf: (stripe: number, chunk: number) => Uint8Array): ChunkSource {
  const frames = [0, 1, 2, 3].flatMap((stripe) =>
    [6, 8, 9].map((chunk) => encodeFrame("chunk", stripe, chunk, shardOf(stripe, chunk))),
  );
  const body = streamOf([...frames, encodeFrame("end", 0, 0, new Uint8Array(0))]);
  const latency = { meanMs: 5, sdMs: 1 };
  const reader = Promise.resolve(new FrameReader(body));
  return bundleSource({ id: "fra", latency: () => latency, cached: () => [6, 8, 9], frames: reader });
}
