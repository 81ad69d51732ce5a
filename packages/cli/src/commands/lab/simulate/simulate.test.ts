import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { Command } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { seededRandom } from "@agarose/solver/random";
import { addCommand } from "../../../command.ts";
import { readTrace } from "../../../lib/own-log.ts";
import { command } from "../index.ts";

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

afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

async function agarose(...args: string[]): Promise<unknown> {
  printed = "";
  await agaroseText("--json", ...args);
  return JSON.parse(printed);
}

async function agaroseText(...args: string[]): Promise<string> {
  const program = new Command("agarose").exitOverride().option("--json");
  addCommand(program, command);
  await program.parseAsync(["lab", ...args], { from: "user" });
  return printed;
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

test("simulate replays a log, tries cache sizes, and recommends one", async () => {
  const scenario = await file("s.json", SCENARIO);
  const reads = Array.from({ length: 500 }, (_, i) => `${i},k${i % 11},2000`);
  const log = await file("log.csv", ["seconds,key,bytes", ...reads, "oops,"].join("\n"));
  const result = await agarose("simulate", scenario, "--trace", log, "--format", "csv", "--cache-sizes", "1,8");
  expect(result).toMatchObject({
    trace: { reads: 500, malformedLines: 1 },
    // Eleven objects in a circle: a cache of four helps LRU nothing, one of 32 holds them all.
    bySize: { recommended: { factor: 8 } },
  });
});

test("simulate reads Wikimedia's caching trace as it is published, and recognises it by its header", async () => {
  const head = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte";
  const lines = ["0\t833946053\tjpeg\t8400\t1.24E-4", "0\t-91\tpng\t230300\t0.1", "2\t833946053\tjpeg\t8400\t1.1E-4"];
  const log = path.join(folder, "cache-u-00.gz");
  await writeFile(log, gzipSync([head, ...lines].join("\n")));
  const { keys, bytes, seconds } = await readTrace(
    [log],
    { format: undefined, isStrict: true, perSecond: 1 },
    () => {},
  );
  expect(keys).toEqual(["833946053", "-91"]);
  expect([...bytes]).toEqual([8400, 230_300]);
  expect([...seconds]).toEqual([0, 0, 2]);
});

/** 40 objects of 400 kB, a few of which are asked for most of the time. */
function commonLog(reads: number): string {
  const random = seededRandom(7);
  const lines = Array.from({ length: reads }, (_, i) => {
    const time = new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString();
    const key = Math.floor(40 ** random.next());
    return `192.0.2.1 - - [01/Jan/2026:${time.slice(11, 19)} +0000] "GET /photos/${key}.jpg HTTP/1.1" 200 400000`;
  });
  return `${lines.join("\n")}\n`;
}

test("simulate recommends a policy and a cache size from an access log alone", async () => {
  const log = await file("access.log", commonLog(3000));
  const { results, bySize, trace } = (await agarose("simulate", log)) as {
    results: { name: string; meanMs: number }[];
    bySize: { sizes: { name: string; factor: number; cacheBytes: number; meanMs: number }[]; recommended: object };
    trace: object;
  };
  expect(trace).toMatchObject({ reads: 3000, malformedLines: 0 });
  expect(results.map(({ name }) => name)).toEqual(expect.arrayContaining(["backend", "lru", "adaptive"]));
  const { recommended } = bySize;
  expect(recommended).toMatchObject({ costPerMonth: expect.any(Number) as number });
  const { name, factor } = recommended as { name: string; factor: number };
  const chosen = bySize.sizes.find((size) => size.name === name && size.factor === factor)!;
  expect(recommended).toMatchObject({ cacheBytes: chosen.cacheBytes, meanMs: chosen.meanMs });
  // The best of its size, and much better than none.
  for (const size of bySize.sizes)
    if (size.factor === factor) expect(size.meanMs).toBeGreaterThanOrEqual(chosen.meanMs);
  expect(chosen.meanMs).toBeLessThan(0.7 * bySize.sizes.find((size) => size.name === "backend")!.meanMs);
  printed = "";
  const last = (await agaroseText("simulate", log)).trim().split("\n").at(-1);
  expect(last).toMatch(
    new RegExp(
      `^Recommended: policy ${name} with [\\d.]+ MiB of cache \\(x${factor}\\): reads take [\\d.]+ ms on average, `,
    ),
  );
});

/** The answer with caches of several sizes. */
interface Sized {
  readonly bySize: { readonly sizes: readonly { readonly cacheBytes: number }[] };
}

test("simulate merges several logs, gzipped ones of several members too, and samples the objects of a long one", async () => {
  const lines = commonLog(3000).trim().split("\n");
  const part = (from: number, to: number): string => `${lines.slice(from, to).join("\n")}\n`;
  const plain = await file("one.log", part(1000, 2000));
  const coded = path.join(folder, "two.log.gz");
  await writeFile(coded, Buffer.concat([gzipSync(part(0, 1000)), gzipSync(part(2000, 3000))]));
  const whole = await agarose("simulate", await file("whole.log", lines.join("\n")));
  const merged = await agarose("simulate", plain, coded);
  expect(merged).toMatchObject({ trace: { reads: 3000, share: 1, malformedLines: 0 } });
  const untimed = (rows: unknown): unknown =>
    JSON.parse(JSON.stringify(rows, (name, value) => (name === "solveMs" ? 0 : value)));
  expect(untimed((merged as Sized).bySize)).toEqual(untimed((whole as Sized).bySize));
  // Each object is read once, so a sample of the objects has its share of the reads.
  const once = lines.map((line, i) => line.replace(/photos\/\d+/, `photos/${i}`));
  const long = await file("long.log", once.join("\n"));
  const sampled = await agarose("simulate", long, "--reads-max", "2000", "--cache-sizes", "1");
  expect(sampled).toMatchObject({ trace: { reads: 3000, share: 0.5 } });
  const { bySize } = sampled as Sized;
  // A twentieth of 3,000 objects of 400 kB, estimated from about half of them.
  expect(Math.abs(bySize.sizes[0]!.cacheBytes / (0.05 * 3000 * 400_000) - 1)).toBeLessThan(0.1);
  await writeFile(coded, gzipSync(part(0, 1000)).subarray(0, 900));
  await expect(agarose("simulate", coded)).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
  await expect(agarose("simulate", await file("s.json", SCENARIO), plain)).rejects.toMatchObject({ code: "USAGE" });
});

test("simulate refuses a log of an unknown format, and takes the format that is given", async () => {
  const log = await file("odd.log", "READ usertable user1 [ x ]\nnoise\nnoise\nnoise\n");
  const scenario = await file("s.json", SCENARIO);
  await expect(agarose("simulate", scenario, "--trace", log)).rejects.toMatchObject({ code: "USAGE" });
  expect(await agarose("simulate", scenario, "--trace", log, "--format", "ycsb")).toMatchObject({
    trace: { reads: 1 },
  });
});

test("simulate refuses a malformed scenario, a strict log and a missing file", async () => {
  const scenario = await file("s.json", SCENARIO);
  const log = await file("log.csv", "seconds,key\n1,a\nx,");
  await expect(agarose("simulate", await file("bad.json", { ...SCENARIO, runs: 0 }))).rejects.toMatchObject({
    code: "SCENARIO_INVALID",
  });
  await expect(agarose("simulate", scenario, "--trace", log, "--format", "csv", "--strict")).rejects.toMatchObject({
    code: "SCENARIO_INVALID",
    details: { line: 3 },
  });
  await expect(agarose("simulate", path.join(folder, "none.json"))).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
});
