import { expect, test } from "vitest";

import { alternatingTimes, benchCodec, Unavailable } from "./index.ts";
import { oursInNode } from "./node-contestants.ts";
import type { Contestant, Subject, Work } from "./subject.ts";

const WORK: Work = { op: "reconstruct", k: 4, m: 2, bytes: 4000, lost: 2 };

test("subjects take turns, round after round, and the fastest burst of a round counts", async () => {
  const log: string[] = [];
  const logged = (name: string, times: number[]): Subject => {
    const subject = varying(name, [1, 1, 1, 1, ...times]);
    return { ...subject, measure: (iterations) => (log.push(name), subject.measure(iterations)) };
  };
  const times = await alternatingTimes([logged("a", [4, 1, 900, 3, 3, 2]), logged("b", [7, 8, 9, 5, 6, 5])], 2);
  expect(times).toEqual([
    [1, 2],
    [7, 5],
  ]);
  // Four calls each to warm up and to count, then three bursts at a time.
  expect(log.join("")).toBe("aaaabbbbaaabbbaaabbb");
});

test("ratios say how many times as fast as each yardstick; who is missing is listed with the reason", async () => {
  const missing: Contestant = {
    name: "absent",
    prepare: async () => {
      throw new Unavailable("needs a compiler");
    },
    close: async () => {},
  };
  const ours = {
    ...fixed("ours", 10),
    prepare: async () => [varying("ours", [10, 10, 10, 10, 30, 10, 20, 30, 30, 30, 8, 9, 10])],
  };
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
