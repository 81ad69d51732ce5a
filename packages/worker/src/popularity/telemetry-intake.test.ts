import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import {
  OWN,
  READS_PER_CLIENT_MAX,
  READS_PER_KEY_MAX,
  SAMPLES_PER_CLIENT_MAX,
  TelemetryIntake,
} from "./telemetry-intake.ts";
import { TERM_MS } from "./telemetry-token.ts";

let nowMs = 0;
let intake: TelemetryIntake;
beforeEach(() => {
  nowMs = 0;
  intake = new TelemetryIntake(() => nowMs);
});

const reads = (client: string, key: string, count: number): number =>
  intake
    .take({ client, samples: [], reads: [{ key, reads: count }] })
    .reduce((sum, admitted) => sum + admitted.reads, 0);

test("reads of one client and key count up to the limit of a term, and again in the next one", () => {
  expect(reads("a", "cat", READS_PER_KEY_MAX - 1)).toBe(READS_PER_KEY_MAX - 1);
  expect(reads("a", "cat", 1_000_000)).toBe(1);
  expect(reads("a", "cat", 1)).toBe(0);
  expect(reads("b", "cat", 3)).toBe(3);
  nowMs += TERM_MS;
  expect(reads("a", "cat", 5)).toBe(5);
});

test("counts at most its share of what one client reports (property)", () => {
  const report = fc.record({ key: fc.constantFrom("a", "b", "c", "d"), reads: fc.integer({ min: 1, max: 1e9 }) });
  let limited = 0;
  fc.assert(
    fc.property(fc.array(fc.array(report, { maxLength: 100 }), { maxLength: 30 }), (reports) => {
      const fresh = new TelemetryIntake(() => 0);
      const byKey = new Map<string, number>();
      for (const { key, reads: counted } of reports.flatMap((one) =>
        fresh.take({ client: "x", samples: [], reads: one }),
      ))
        byKey.set(key, (byKey.get(key) ?? 0) + counted);
      expect(Math.max(0, ...byKey.values())).toBeLessThanOrEqual(READS_PER_KEY_MAX);
      if ([...byKey.values()].includes(READS_PER_KEY_MAX)) limited++;
    }),
  );
  expect(limited).toBeGreaterThan(0);
});

test("reads of one client count up to the limit of all keys", () => {
  const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`);
  expect(keys.reduce((sum, key) => sum + reads("a", key, READS_PER_KEY_MAX), 0)).toBe(READS_PER_CLIENT_MAX);
});

test("a client's latencies count a few times a period, this PoP's own more often", () => {
  for (let i = 0; i < 100; i++) {
    for (const client of ["a", OWN])
      intake.take({ client, samples: [{ region: "r", ms: i + 1, bytes: 0 }], reads: [] });
  }
  const counted = Map.groupBy(intake.drain().get("r") ?? [], ({ client }) => client);
  expect(counted.get("a")).toHaveLength(SAMPLES_PER_CLIENT_MAX);
  expect(counted.get(OWN)).toHaveLength(100);
  expect(intake.drain().size).toBe(0);
  intake.take({ client: "a", samples: [{ region: "r", ms: 1, bytes: 0 }], reads: [] });
  expect(intake.drain().get("r")).toHaveLength(1);
});
