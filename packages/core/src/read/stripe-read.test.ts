import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import type { Behaviour } from "../../test/fake-source.ts";
import { toyHash } from "../../test/objects/sample-object.ts";
import { object, StripeWorld as World } from "../../test/stripe-world.ts";
import { planStripe, type Candidate } from "./read-plan.ts";
import { UNWANTED, type ChunkSource, type SourceKind } from "../sources/source.ts";
import type { Hedge } from "./stripe-read.ts";
import type { Line } from "./line.ts";

describe("readStripe", () => {
  test("starts k + delta requests at once, uses the first k and aborts the rest", async () => {
    const world = new World({ ms: [50, 60, 70, 90, 80, 100] });
    const shards = await world.read({ delta: 2 });
    expect([...shards.keys()]).toEqual([0, 1, 2, 4]);
    expect(world.startsAt(0)).toEqual(["r0", "r1", "r2", "r4", "r3", "r5"]);
    expect(world.clock.now()).toBe(80);
    expect(world.outcomes()).toEqual({ used: ["r0", "r1", "r2", "r4"], cancelled: ["r3", "r5"] });
    // An error would keep the shards of those that were used in memory, for as long as its signal lives.
    const reasons = world.sources.flatMap(({ requests }) => requests.map(({ signal }) => signal.reason as unknown));
    expect(new Set(reasons)).toEqual(new Set([undefined, UNWANTED]));
    expect(world.signal("r3").aborted).toBe(true);
    expect(world.signal("r0").aborted).toBe(false);
    world.expectClean();
  });

  test("returns the bytes of the chunks", async () => {
    const world = new World({});
    for (const [chunk, bytes] of await world.read({})) expect(bytes).toEqual(object.shard(0, chunk));
  });

  test("makes no further request while all goes as expected", async () => {
    const world = new World({ ms: [50, 60, 70, 80, 90, 100] });
    await world.read({ delta: 0 });
    expect(world.startsAt(0)).toEqual(["r0", "r1", "r2", "r3"]);
    expect(world.requests()).toBe(4);
  });

  test("uses exactly k chunks when more arrive in the same moment", async () => {
    const world = new World({ ms: [50, 50, 50, 50, 50, 50] });
    const shards = await world.read({ delta: 2 });
    expect(shards.size).toBe(4);
    expect(world.outcomes()).toMatchObject({ used: expect.toSatisfy((used: string[]) => used.length === 4) });
    world.expectClean();
  });

  for (const behaviour of ["error", "missing", "corrupt", "truncate", "lengthen"] as const) {
    test(`replaces at once a chunk whose source answers with: ${behaviour}`, async () => {
      const world = new World({ ms: [50, 60, 70, 80, 90, 100], behaviours: { r1: behaviour } });
      const shards = await world.read({ delta: 0 });
      expect([...shards.keys()].toSorted()).toEqual([0, 2, 3, 4]);
      expect(world.sources[1]!.faults).toEqual([behaviour]);
      expect(world.startsAt(60)).toEqual(["r4"]);
      expect(world.failures()).toEqual([`r1 ${CODES[behaviour]}`]);
      world.expectClean();
    });
  }

  test("replaces one failure after another while k chunks are left", async () => {
    const world = new World({ behaviours: { r0: "error", r2: "corrupt" } });
    const shards = await world.read({ delta: 0 });
    expect([...shards.keys()].toSorted()).toEqual([1, 3, 4, 5]);
  });

  test("reports both numbers as soon as fewer than k chunks are available", async () => {
    const world = new World({
      ms: [50, 60, 70, 5000, 5000, 5000],
      behaviours: { r0: "error", r1: "missing", r2: "corrupt" },
    });
    const error = await rejectionOf(world.read({ hedge: false }));
    expect(error.code).toBe("NOT_ENOUGH_CHUNKS");
    expect(error.details).toMatchObject({ stripe: 0, needed: 4, available: 3, received: 0 });
    expect(error.message).toMatch(
      /needs 4 chunks and can get 3 .*r0 SOURCE_FAILED x2, r1 CHUNK_MISSING, r2 CHUNK_CORRUPT x2/,
    );
    // With r2 the third of six fails at 70; then r0 is asked once more, for 50, and r2, for 70.
    expect(world.clock.now()).toBe(190);
    world.expectClean();
  });

  test("retries failed sources once, only when the read would otherwise fail", async () => {
    const needed = new World({ failsOnce: ["r0", "r1", "r2"] });
    expect((await needed.read({ delta: 0 })).size).toBe(4);
    expect(needed.failures()).toEqual(["r0 SOURCE_FAILED", "r1 SOURCE_FAILED", "r2 SOURCE_FAILED"]);
    expect(needed.requestsOf("r0")).toBe(2);
    needed.expectClean();
    const spared = new World({ failsOnce: ["r0", "r1"] });
    expect((await spared.read({ delta: 0 })).size).toBe(4);
    expect([spared.requestsOf("r0"), spared.requestsOf("r1")]).toEqual([1, 1]);
    spared.expectClean();
  });

  test("fails at once when no k chunks are offered", async () => {
    const world = new World({});
    const error = await rejectionOf(world.read({ sources: world.sources.slice(0, 3) }));
    expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { needed: 4, available: 3 } });
    expect(world.clock.now()).toBe(0);
    world.expectClean();
  });

  describe("hedging", () => {
    test("asks one more source each time the expected time has passed", async () => {
      // All are believed to take 100 ms without spread; r3 and r4 do not answer.
      const world = new World({ behaviours: { r3: "hang", r4: "hang" } });
      await world.read({ delta: 0 });
      expect(world.startsAt(0)).toEqual(["r0", "r1", "r2", "r3"]);
      expect(world.startsAt(100)).toEqual(["r4"]);
      expect(world.startsAt(200)).toEqual(["r5"]);
      expect(world.clock.now()).toBe(300);
      expect(world.outcomes()).toEqual({ used: ["r0", "r1", "r2", "r5"], cancelled: ["r3", "r4"] });
      world.expectClean();
    });

    test("includes the spread: mean + 3 standard deviations", async () => {
      const world = new World({ behaviours: { r3: "hang" }, latency: { meanMs: 100, sdMs: 20 } });
      await world.read({ delta: 0 });
      expect(world.startsAt(160)).toEqual(["r4"]);
    });

    test("waits for k of the requests, not for an extra one that is known to be slow", async () => {
      const world = new World({ ms: [100, 100, 100, 100, 5000, 6000], behaviours: { r3: "hang" } });
      const read = world.start({ delta: 1 });
      await world.clock.advance(100);
      expect(world.startsAt(0)).toEqual(["r0", "r1", "r2", "r3", "r4"]);
      expect(world.startsAt(100)).toEqual(["r5"]);
      await world.clock.run(read);
      world.expectClean();
    });

    test("asks a second source of a chunk that is in flight when no other chunk is left", async () => {
      const world = new World({ behaviours: { r3: "hang", r4: "missing", r5: "missing" } });
      const peer = world.add({ id: "peer", kind: "peer", chunks: [3], ms: 500 });
      const shards = await world.read({ sources: [...world.sources.slice(0, 6), peer], delta: 0 });
      expect([...shards.keys()].toSorted()).toEqual([0, 1, 2, 3]);
      expect(world.outcomes()["cancelled"]).toEqual(["r3"]);
      world.expectClean();
    });

    test("asks regions before further chunks of a PoP that is late with others", async () => {
      const world = new World({});
      const latency = { meanMs: 10, sdMs: 0 };
      const pop = world.add({ id: "pop", kind: "edge", chunks: [0, 1, 2, 3, 4, 5], latency, behaviour: () => "hang" });
      await world.read({ sources: [pop, ...world.sources.slice(0, 6)], delta: 0 });
      expect(world.startsAt(0)).toEqual(["pop", "pop", "pop", "pop"]);
      expect(world.startsAt(20)).toEqual(["r4"]);
      expect([world.requestsOf("pop"), world.outcomes().used?.length]).toEqual([4, 4]);
      world.expectClean();
    });

    test("counts a chunk once when two sources deliver it", async () => {
      const world = new World({ ms: [100, 100, 100, 250, 900, 900], latency: { meanMs: 100, sdMs: 0 } });
      // The peer is asked first and takes 130 ms; the other one is asked after 100 ms and takes 20.
      const peer = world.add({ id: "peer", kind: "peer", chunks: [0], ms: 130, latency: { meanMs: 5, sdMs: 0 } });
      const other = world.add({ id: "other", chunks: [0], ms: 20, latency: { meanMs: 101, sdMs: 0 } });
      const shards = await world.read({ sources: [peer, ...world.sources.slice(1, 4), other], delta: 0 });
      expect([...shards.keys()].toSorted()).toEqual([0, 1, 2, 3]);
      expect(world.clock.now()).toBe(250);
      expect(world.outcomes()).toEqual({ used: ["r1", "r2", "r3", "other"], unused: ["peer"] });
    });

    test("waits the same time again while it may not hedge", async () => {
      const world = new World({ behaviours: { r3: "hang", r4: "hang" } });
      const asked: number[][] = [];
      await world.read({ delta: 0, hedge: (bytes, times) => asked.push([bytes, times]) > 0 && times > 1 });
      expect(asked).toEqual([1, 2, 1, 2].map((times) => [100, times]));
      expect([world.startsAt(100), world.startsAt(200), world.startsAt(400)]).toEqual([[], ["r4"], ["r5"]]);
      expect(world.clock.now()).toBe(500);
      world.expectClean();
    });

    test("does not happen if it is switched off", async () => {
      const world = new World({ behaviours: { r3: "hang" } });
      const error = await rejectionOf(world.read({ delta: 0, hedge: false, timeoutMs: 5000 }));
      expect(error.code).toBe("READ_TIMEOUT");
      expect(world.requests()).toBe(4);
    });
  });

  describe("chunks of an updated source", () => {
    const late = { ms: [50, 60, 5_000, 6_000, 7_000, 8_000] };

    /** A PoP that is believed to hold nothing, until it says at `atMs` that it holds `chunks`. */
    function growing(
      world: World,
      atMs: number,
      chunks: readonly number[],
      { behaviour = "serve" as Behaviour, kind = "edge" as SourceKind, ms = 5 } = {},
    ) {
      const held: number[] = [];
      const updated = world.clock.sleep(atMs).then(() => void held.push(...chunks));
      const pop = world.add({ id: "pop", kind, chunks: held, ms, updated, behaviour: () => behaviour });
      const plan = (): Candidate[] => planStripe(object.manifest, 0, [pop], { random: () => 0 });
      return { further: [updated.then(plan)], delta: 0, hedge: false };
    }

    test("are used as soon as they come, in place of requested ones", async () => {
      const world = new World(late);
      const shards = await world.read(growing(world, 20, [4, 5]));
      expect([...shards.keys()].toSorted()).toEqual([0, 1, 4, 5]);
      expect(world.clock.now()).toBe(60);
      expect(world.outcomes()).toEqual({ used: ["r0", "r1", "pop", "pop"], cancelled: ["r2", "r3"] });
      world.expectClean();
    });

    test("are not replaced when they fail: the read did not plan with them", async () => {
      const world = new World(late);
      await world.read(growing(world, 20, [4, 5], { behaviour: "corrupt" }));
      expect(world.sources.at(-1)!.faults).toEqual(["corrupt", "corrupt"]);
      expect(world.requests()).toBe(4 + 2);
      world.expectClean();
    });

    describe("in the cache of a peer, which take a request", () => {
      const peer = { kind: "peer" as const, ms: 100 };

      test("are requested, as many as hedging allows, if they arrive sooner than what is under way", async () => {
        const world = new World(late);
        let left = 1;
        const hedge: Hedge = () => left-- > 0;
        await world.read({ ...growing(world, 20, [4, 5], peer), hedge, delta: 1 });
        expect(world.requestsOf("pop"), "the second one was not allowed").toBe(1);
        expect(world.clock.now()).toBe(5_000);
        expect(world.outcomes().used).toEqual(["r0", "r1", "r2", "pop"]);
        world.expectClean();
      });

      test("are not requested if what is under way is sooner, until something fails", async () => {
        const near = { ms: [50, 60, 70, 80] };
        const world = new World(near);
        await world.read({ ...growing(world, 20, [4, 5], peer), hedge: true });
        expect(world.requestsOf("pop")).toBe(0);
        const failing = new World({ ...near, behaviours: { r0: "error", r4: "error", r5: "error" } });
        await failing.read({ ...growing(failing, 20, [4, 5], peer), hedge: true });
        expect(failing.startsAt(20)).toEqual([]);
        expect(failing.requestsOf("pop")).toBeGreaterThan(0);
        failing.expectClean();
      });

      test("are not requested if hedging is not allowed", async () => {
        const world = new World(late);
        await world.read({ ...growing(world, 20, [4, 5], peer), hedge: false });
        expect(world.requestsOf("pop")).toBe(0);
        expect(world.clock.now()).toBe(6_000);
      });
    });

    test("are ignored after the read", async () => {
      const world = new World({});
      await world.read(growing(world, 200, [4, 5]));
      await world.clock.advance(1_000);
      expect(world.requestsOf("pop")).toBe(0);
    });
  });

  test("looks now and then whether a wanted chunk waits for its line, where too few others could replace it", async () => {
    const world = new World({ ms: [1_000], latency: { meanMs: 100, sdMs: 0 } });
    let looks = 0;
    const isOverdue = (): boolean => {
      if (++looks > 1_000) throw new Error("a busy loop");
      return looks === 1;
    };
    const line = { begin: () => ({ received() {}, isOverdue, end() {} }) } as unknown as Line;
    const sources = world.sources.slice(0, 3);
    const shards = await world.read({ wanted: 0, sources, line });
    expect([...shards]).toEqual([[0, object.shard(0, 0)]]);
    expect(looks).toBeGreaterThan(5);
    world.expectClean();
  });

  test("fails after its time-out, reports what had arrived and aborts what is in flight", async () => {
    const world = new World({ behaviours: { r1: "hang", r2: "hang", r3: "hang", r4: "error", r5: "hang" } });
    const error = await rejectionOf(world.read({ delta: 2, timeoutMs: 1234 }));
    expect(error).toMatchObject({ code: "READ_TIMEOUT", details: { needed: 4, received: 1, timeoutMs: 1234 } });
    expect(error.message).toMatch(/got 1 of 4 chunks in 1234 ms \(r4 SOURCE_FAILED\)/);
    expect(world.clock.now()).toBe(1234);
    for (const id of ["r1", "r2", "r3", "r5"]) expect(world.signal(id).aborted).toBe(true);
    world.expectClean();
  });

  test("is aborted by its signal, with all its requests", async () => {
    const world = new World({});
    const abort = new AbortController();
    const read = rejectionOf(world.start({ signal: abort.signal }));
    await world.clock.advance(50);
    abort.abort();
    expect((await read).code).toBe("ABORTED");
    expect(world.outcomes()).toEqual({ cancelled: ["r0", "r1", "r2", "r3", "r4"] });
    world.expectClean();
  });

  test("makes no request if its signal is aborted already", async () => {
    const world = new World({});
    expect((await rejectionOf(world.read({ signal: AbortSignal.abort() }))).code).toBe("ABORTED");
    expect(world.requests()).toBe(0);
    world.expectClean();
  });

  test("reports the time-out of a signal as such", async () => {
    const world = new World({});
    const signal = AbortSignal.abort(new DOMException("too late", "TimeoutError"));
    expect((await rejectionOf(world.read({ signal }))).code).toBe("READ_TIMEOUT");
  });

  test("ignores what a source delivers after its abort", async () => {
    const world = new World({ ms: [50, 60, 70, 80, 90, 100] });
    let hashed = 0;
    const deaf: ChunkSource = {
      id: "deaf",
      kind: "region",
      latency: { meanMs: 1, sdMs: 0 },
      has: (_stripe, chunk) => chunk === 4,
      fetch: async () => {
        await world.clock.sleep(500);
        return object.shard(0, 4);
      },
    };
    const sha256 = (bytes: Uint8Array): Promise<Uint8Array> => {
      hashed++;
      return toyHash(bytes);
    };
    await world.read({ sources: [deaf, ...world.sources.slice(0, 4)], sha256 });
    await world.clock.advance(1000);
    expect(hashed).toBe(4);
    expect(world.outcomes()["cancelled"]).toEqual(["deaf"]);
  });

  test("treats a source that throws instead of rejecting like any other failure", async () => {
    const world = new World({});
    const broken: ChunkSource = {
      id: "broken",
      kind: "edge",
      latency: { meanMs: 1, sdMs: 0 },
      has: () => true,
      fetch: () => {
        throw new TypeError("a defect");
      },
    };
    const shards = await world.read({ sources: [broken, ...world.sources] });
    expect(shards.size).toBe(4);
    expect(world.failures()).toContain("broken SOURCE_FAILED");
  });
});

const CODES: Partial<Record<Behaviour, string>> = {
  error: "SOURCE_FAILED",
  missing: "CHUNK_MISSING",
  corrupt: "CHUNK_CORRUPT",
  truncate: "CHUNK_WRONG_LENGTH",
  lengthen: "CHUNK_WRONG_LENGTH",
};
