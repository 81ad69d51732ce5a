/**
 * Functional chunks at the codes that `code: auto` chooses, where buckets are busy and decoding takes time: without
 * them reads are never faster.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseScenario } from "./scenario/scenario.ts";
import { simulate } from "./simulate.ts";

/**
 * The codes are those of 100 kB to 40 MB. In `continental`, a read asks a peer for several chunks, and they are late
 * together. The estimates count them as independent, which costs up to 1%.
 */
const WORLDS = [
  { world: "five-together", codes: ["2+1", "3+1", "4+1", "5+1", "10+2"], most: 1 },
  { world: "continental", codes: ["3+1", "5+1", "10+2"], most: 1.012 },
];

function meansOf(world: string, code: string, seed: number): { rows: number; copies: number } {
  const json = JSON.parse(readFileSync(new URL(`../../scenarios/${world}.json`, import.meta.url), "utf8"));
  const [k, m] = code.split("+").map(Number);
  const objects = { count: 150, bytes: 1_000_000 };
  const capacity = { capacityChunks: undefined, capacityBytes: 8_000_000 };
  const pops = json.pops.map((pop: object) => ({ ...pop, ...capacity }));
  const system = { policy: "adaptive", joint: true };
  const systems = ["functional", "exact"].map((cachedChunks) => {
    return { ...system, name: cachedChunks, read: { delta: 1, cachedChunks, decodeMs: 1 } };
  });
  const changes = {
    code: { k, m },
    objects,
    pops,
    seed,
    runs: 1,
    requests: { perSecond: 10, seconds: k! < 10 ? 480 : 240 },
  };
  const rows = simulate(parseScenario({ ...json, ...changes, periodSeconds: 60, policies: [], systems }));
  const [functional, exact] = rows.filter(({ pop }) => pop === "all").map(({ meanMs }) => meanMs);
  return { rows: functional!, copies: exact! };
}

const CASES = WORLDS.flatMap(({ codes, ...world }) => codes.map((code, seed) => ({ ...world, code, seed })));

test.each(CASES)("$world, $code, seed $seed: rows or copies are no slower than copies alone", (given) => {
  const { rows, copies } = meansOf(given.world, given.code, given.seed);
  expect(rows / copies).toBeLessThan(given.most);
});
