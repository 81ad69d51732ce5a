/** The answers of two gateways to their clients are linearizable. */
import { expect, test } from "vitest";
import { recordHistories } from "./gateways.ts";

const SECONDS = 20;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

test(`reads, writes, conditions and removals seem to happen one after the other, seed ${SEED}`, async () => {
  const { outcomes, faults, kills, broken } = await recordHistories(SECONDS, SEED);
  expect(broken, `seed ${SEED}`).toEqual([]);
  expect(kills).toBeGreaterThan(0);
  expect(Object.values(faults).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
  expect(outcomes.done).toBeGreaterThan(20);
}, 120_000);
