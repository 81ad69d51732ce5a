import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { register as registerSimulate } from "./simulate.ts";
import { register as registerSolve } from "./solve.ts";

let folder: string;
let printed: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "agarose-simulate-"));
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
});

afterEach(() => vi.restoreAllMocks());

async function agarose(...args: string[]): Promise<unknown> {
  const program = new Command("agarose").exitOverride().option("--json");
  registerSimulate(program);
  registerSolve(program);
  await program.parseAsync(["--json", ...args], { from: "user" });
  return JSON.parse(printed);
}

async function file(name: string, content: unknown): Promise<string> {
  const target = path.join(folder, name);
  await writeFile(target, typeof content === "string" ? content : JSON.stringify(content));
  return target;
}

const SCENARIO = {
  code: { k: 2, m: 1 },
  objects: { count: 30, bytes: 1000 },
  regions: ["near", "middle", "far"],
  pops: [{ name: "one", regionLatencyMs: { near: 50, middle: 100, far: 300 }, cacheLatencyMs: 5, capacityChunks: 8 }],
  popularity: { type: "zipf", exponent: 1 },
  requests: { perSecond: 10, count: 400 },
  policies: [{ name: "backend" }, { name: "lru", chunks: 2 }, { name: "adaptive" }],
};

test("solve prints the fields of its contract", async () => {
  const instance = await file("k.json", {
    capacity: 3,
    objects: [
      { weights: [2, 3], values: [5, 6] },
      { weights: [1], values: [2] },
    ],
  });
  expect(await agarose("solve", instance)).toMatchObject({
    value: 7,
    weight: 3,
    choice: [0, 0],
    upperBound: 7,
    optimal: true,
    ms: expect.any(Number) as number,
  });
});

test.each<[string, unknown]>([
  ["no JSON", "{"],
  ["no objects", { capacity: 1 }],
  ["lists of different length", { capacity: 1, objects: [{ weights: [1, 2], values: [1] }] }],
  ["null for a number", { capacity: 1, objects: [{ weights: [1], values: [null] }] }],
  ["a weight of zero", { capacity: 1, objects: [{ weights: [0], values: [1] }] }],
  ["an object without options", { capacity: 1, objects: [{ weights: [], values: [] }] }],
])("solve refuses %s", async (_name, content) => {
  await expect(agarose("solve", await file("bad.json", content))).rejects.toMatchObject({ code: "KNAPSACK_INVALID" });
});

test("simulate prints one row per policy and PoP with the fields of its contract", async () => {
  const { results } = (await agarose("simulate", await file("s.json", SCENARIO))) as {
    results: Record<string, unknown>[];
  };
  expect(results.map(({ name, pop }) => `${String(name)} ${String(pop)}`)).toEqual(
    ["backend", "lru-2", "adaptive"].flatMap((name) => [`${name} one`, `${name} all`]),
  );
  const fields = "meanMs p50Ms p95Ms p99Ms hitRatio fullHitRatio chunkHitRatio requestsPerRead writes solveMs".split(
    " ",
  );
  for (const row of results) for (const field of fields) expect(row[field], field).toEqual(expect.any(Number));
});

test("simulate replays a log, tries cache sizes, recommends one and writes a page", async () => {
  const scenario = await file("s.json", SCENARIO);
  const reads = Array.from({ length: 500 }, (_, i) => `${i},k${i % 11},2000`);
  const log = await file("log.csv", ["seconds,key,bytes", ...reads, "oops,"].join("\n"));
  const page = path.join(folder, "out.html");
  const result = await agarose(
    "simulate",
    scenario,
    "--trace",
    log,
    "--format",
    "csv",
    "--cache-sizes",
    "1,8",
    "--html",
    page,
  );
  expect(result).toMatchObject({
    trace: { reads: 500, malformedLines: 1 },
    // Eleven objects in a circle: a cache of four helps LRU nothing, one of 32 holds them all.
    bySize: { recommended: { factor: 8 } },
  });
  const html = await readFile(page, "utf8");
  expect(html).toContain("Latency against cache size");
  expect(html).not.toMatch(/(src|href)=/);
});

test("simulate refuses a malformed scenario, a strict log and a missing format", async () => {
  const scenario = await file("s.json", SCENARIO);
  const log = await file("log.csv", "seconds,key\n1,a\nx,");
  await expect(agarose("simulate", await file("bad.json", { ...SCENARIO, runs: 0 }))).rejects.toMatchObject({
    code: "SCENARIO_INVALID",
  });
  await expect(agarose("simulate", scenario, "--trace", log)).rejects.toMatchObject({ code: "USAGE" });
  await expect(agarose("simulate", scenario, "--trace", log, "--format", "csv", "--strict")).rejects.toMatchObject({
    code: "SCENARIO_INVALID",
    details: { line: 3 },
  });
  await expect(agarose("simulate", path.join(folder, "none.json"))).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
});
