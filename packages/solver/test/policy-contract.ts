/** The contract of all policies, as tests to run over each. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COMPARED } from "../src/policies/compared.ts";
import { createPolicy } from "../src/policies/registry.ts";
import type { Policy } from "../src/policy/policy.ts";
import { seededRandom, type Random } from "../src/random.ts";
import { RecordingCache } from "./recording-cache.ts";

type Settings = Readonly<Record<string, unknown>>;

function create(name: string, cache: RecordingCache, settings: Settings = {}, snapshot?: Uint8Array): Policy {
  return createPolicy(name, cache, settings, snapshot, COMPARED);
}

/** One event for a policy and its cache. */
type Step = (policy: Policy, cache: RecordingCache, seconds: number) => void;

const OBJECTS = 16;

/** Requests by a Zipf law whose ranks change at times, and calls of every other hook between them. */
function stepsOf(random: Random, count: number): Step[] {
  const ranks = Array.from({ length: OBJECTS }, (_, o) => o);
  return Array.from({ length: count }, (_step, i): Step => {
    const object = ranks[Math.floor(OBJECTS ** random.next() - 1)]!;
    const event = random.integer(200);
    if (event === 0) random.shuffle(ranks);
    if (event === 1 || i === 5) {
      const truth = random.shuffle(Array.from({ length: OBJECTS }, (_, rank) => 1 / (rank + 1)));
      return (policy, _cache, seconds) => policy.onTruth?.(Float64Array.from(truth), seconds);
    }
    if (event === 2) {
      return (policy, cache, seconds) => {
        cache.latencies++;
        policy.onLatency?.(seconds);
      };
    }
    if (event < 5) {
      return (policy, cache) => {
        cache.handOver(object);
        policy.forget?.(object);
      };
    }
    if (event < 12) return (policy, _cache, seconds) => policy.onPeriod?.(seconds);
    return (policy, _cache, seconds) => policy.onRequest(object, seconds);
  });
}

function play(policy: Policy, cache: RecordingCache, steps: readonly Step[], from: number): void {
  for (const [i, step] of steps.entries()) step(policy, cache, from + i);
}

/** Runs the contract over the policy of that name, with those settings. */
export function describePolicy(name: string, settings: Settings = {}): void {
  describe(`policy ${name} ${JSON.stringify(settings)}`, () => {
    test("decides exactly the same after its snapshot was restored in a new instance", () => {
      let decisions = 0;
      fc.assert(
        fc.property(fc.nat(), fc.integer({ min: 0, max: 900 }), fc.integer({ min: 1, max: 400 }), (seed, n, more) => {
          const steps = stepsOf(seededRandom(seed), n + more);
          const whole = new RecordingCache(OBJECTS, seed);
          const policy = create(name, whole, settings);
          play(policy, whole, steps.slice(0, n), 0);
          const resumed = whole.copy();
          const restored = create(name, resumed, settings, policy.snapshot?.());
          whole.decisions.length = 0;
          play(policy, whole, steps.slice(n), n);
          play(restored, resumed, steps.slice(n), n);
          expect(resumed.decisions).toEqual(whole.decisions);
          expect(restored.snapshot?.()).toEqual(policy.snapshot?.());
          decisions += whole.decisions.length;
        }),
        { numRuns: 25 },
      );
      if (name !== "backend") expect(decisions).toBeGreaterThan(0);
    });

    test("takes over a cache that another policy has filled, or that has lost some, and never overfills it", () => {
      fc.assert(
        fc.property(fc.nat(), (seed) => {
          const random = seededRandom(seed);
          const cache = new RecordingCache(OBJECTS, seed);
          let policy = create(name, cache, settings);
          for (let round = 0; round < 6; round++) {
            // RecordingCache throws when it is overfilled.
            play(policy, cache, stepsOf(random, 150), 1000 * round);
            for (let o = 0; o < OBJECTS; o++) if (random.integer(3) === 0) cache.keep(o, 0);
            if (round % 2 === 0) continue;
            const before = round === 3 ? policy.snapshot?.() : undefined;
            fillAtRandom(cache, random);
            policy = create(name, cache, settings, before);
          }
        }),
        { numRuns: 25 },
      );
    });

    test("keeps nothing of a forgotten object until the next request for it", () => {
      const random = seededRandom(5);
      const cache = new RecordingCache(OBJECTS, 5);
      const policy = create(name, cache, settings);
      play(policy, cache, stepsOf(random, 600), 0);
      policy.onTruth?.(new Float64Array(OBJECTS).fill(1), 600);
      const kept = Array.from({ length: OBJECTS }, (_, o) => o).filter((o) => cache.countOf(o) > 0);
      if (name !== "backend") expect(kept.length).toBeGreaterThan(0);
      if (policy.onTruth) return; // An oracle knows the truth of every slot anyway.
      for (const object of kept) {
        cache.handOver(object);
        policy.forget?.(object);
      }
      const others = Array.from({ length: OBJECTS }, (_, o) => o).filter((o) => !kept.includes(o));
      for (let i = 0; i < 300; i++) {
        policy.onRequest(others[i % others.length]!, 600 + i);
        if (i % 50 === 49) policy.onPeriod?.(600 + i);
        for (const object of kept) expect(cache.countOf(object), `object ${object} after ${i} requests`).toBe(0);
      }
    });

    test("refuses a snapshot that is malformed, another policy's or of another number of objects", () => {
      const cache = new RecordingCache(OBJECTS, 1);
      const policy = create(name, cache, settings);
      play(policy, cache, stepsOf(seededRandom(1), 50), 0);
      const other = create(name === "lru" ? "lfu" : "lru", cache).snapshot!();
      const own = policy.snapshot?.();
      const bad = [other, new Uint8Array(), new Uint8Array(100)];
      if (own) {
        const flipped = own.slice();
        flipped[own.length >> 1]! ^= 1;
        bad.push(flipped, own.subarray(0, -1), Uint8Array.of(...own, 0));
        const larger = new RecordingCache(OBJECTS + 1, 1);
        expect(() => create(name, larger, settings, own)).toThrow(SNAPSHOT_INVALID);
      }
      for (const snapshot of bad) {
        expect(() => create(name, cache, settings, snapshot)).toThrow(SNAPSHOT_INVALID);
      }
    });
  });
}

const SNAPSHOT_INVALID = expect.objectContaining({ name: "AgaroseError", code: "SNAPSHOT_INVALID" });

function fillAtRandom(cache: RecordingCache, random: Random): void {
  for (const object of random.shuffle(Array.from({ length: OBJECTS }, (_, o) => o))) {
    const d = random.integer(cache.kOf(object) + 1);
    const more = (d - cache.countOf(object)) * cache.chunkWeight[object]!;
    if (cache.used + more <= cache.capacity) cache.keep(object, d);
  }
}
