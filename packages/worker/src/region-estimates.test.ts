import { expect, test } from "vitest";
import { mergeRegion, quartiles, type RegionState } from "./region-estimates.ts";

const ok = [100, 100, 100];
const failed = [Infinity, Infinity, Infinity];
const after = (...periods: number[][]): RegionState =>
  periods.reduce<RegionState | undefined>((state, ms) => mergeRegion(state, { region: "tokyo", ms }, []), undefined)!;

test("a region is down after three failed probes in a row, within a period or across two", () => {
  expect(after(ok).down).toBe(false);
  expect(after(ok, failed).down).toBe(true);
  expect(after(ok, [100, Infinity, Infinity]).down).toBe(false);
  expect(after(ok, [100, Infinity, Infinity], [Infinity, 100, 100]).down).toBe(true);
});

test("a region comes back after six good probes in a row, so one that flaps stays out", () => {
  expect(after(failed, ok).down).toBe(true);
  expect(after(failed, ok, ok).down).toBe(false);
  expect(after(failed, ok, [Infinity, 100, 100], ok).down).toBe(true);
});

test("the estimate follows probes and reports, and failed probes leave it as it is", () => {
  expect(after(ok).meanMs).toBeCloseTo(100);
  expect(after(ok, failed).meanMs).toBeCloseTo(100);
  const reported = mergeRegion(after(ok), { region: "tokyo", ms: [] }, [200, 200, 200, 200]);
  expect(reported.meanMs).toBeGreaterThan(130);
  expect(reported.meanMs).toBeLessThan(200);
});

test("a region that nobody has measured yet has the estimate of the unknown", () => {
  expect(after(failed)).toMatchObject({ meanMs: 250, sdMs: 125, down: true });
});

test("however many reports one client sends, extreme ones among many do not count", () => {
  const honest = Array.from({ length: 60 }, (_, i) => 90 + (i % 20));
  const forged = Array.from({ length: 12 }, () => 60_000);
  for (const ms of quartiles([...honest, ...forged])) expect(ms).toBeLessThan(110);
});
