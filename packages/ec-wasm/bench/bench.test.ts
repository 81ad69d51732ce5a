import { expect, test } from "vitest";

import { alternatingTimes, benchCodec, Unavailable } from "./index.ts";
import { oursInNode } from "./node-contestants.ts";
import type { Contestant, Subject, Work } from "./subject.ts";

const WORK: Work = { op: "reconstruct", k: 4, m: 2, bytes: 4000, lost: 2 };

test("subjects take turns, round after round", async () => {
  const log: string[] = [];
  const subject = (implementation: string, rounds: number[]): Subject => ({
    implementation,
    runtime: "test",
    async measure() {
      log.push(implementation);
      // Two calls to warm up and to count, then one a round.
      return rounds[log.filter((name) => name === implementation).length - 3] ?? 20_000;
    },
  });
  const times = await alternatingTimes([subject("a", [1, 900, 3]), subject("b", [7, 5, 6])], 3);
  expect(times).toEqual([
    [1, 900, 3],
    [7, 5, 6],
  ]);
  expect(log.slice(4)).toEqual(["a", "b", "a", "b", "a", "b"]);
});

test("ratios say how many times as fast as each yardstick; who is missing is listed with the reason", async () => {
  const missing: Contestant = {
    name: "absent",
    prepare: async () => {
      throw new Unavailable("needs a compiler");
    },
    close: async () => {},
  };
  const ours = { ...fixed("ours", 10), prepare: async () => [varying("ours", [10, 10, 30, 8, 10])] };
  const contestants = [ours, fixed("klauspost avx2", 5), missing];
  const report = await benchCodec({ works: [WORK], rounds: 3, contestants });
  expect(report.skipped).toEqual([{ implementation: "absent", reason: "needs a compiler" }]);
  expect(report.results[0]).toEqual({
    implementation: "ours",
    runtime: "test",
    ...WORK,
    medianUs: 10,
    bestUs: 8,
    mbPerSecond: 400,
  });
  expect(report.ratios["reconstruct (4,2) 4000 B, 2 lost"]!["ours (test)"]).toEqual({ "klauspost avx2": 0.5 });
});

test.each([WORK, { ...WORK, op: "encode", lost: 0 } as const])("all our builds are measured at $op", async (work) => {
  const { results } = await benchCodec({ works: [work], rounds: 1, contestants: [oursInNode()] });
  expect(results.map((result) => result.implementation)).toEqual(
    expect.arrayContaining(["agarose javascript", "agarose relaxed", "agarose simd kernel", "agarose scalar"]),
  );
  for (const { medianUs, mbPerSecond } of results) {
    expect(medianUs).toBeGreaterThan(0);
    expect(mbPerSecond).toBeGreaterThan(0);
  }
});

/** Takes the same time whatever is asked of it. */
function fixed(name: string, us: number): Contestant {
  return {
    name,
    prepare: async () => [{ implementation: name, runtime: "test", measure: async () => us }],
    close: async () => {},
  };
}

/** Takes the next of `times` whenever it is asked. */
function varying(implementation: string, times: number[]): Subject {
  return { implementation, runtime: "test", measure: async () => times.shift()! };
}
