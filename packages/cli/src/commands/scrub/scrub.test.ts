/** The rounds of `agarose scrub` over buckets that have lost chunks, manifests or all. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { chunkName } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { chunkPlace, DOWN, manifestName, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

/** The least that a PoP answers. */
const STATUS = {
  epoch: 1,
  policy: "exact",
  cache: { capacityBytes: 1, cachedBytes: 0, objects: [] },
  regions: [],
  lastPeriod: null,
  isolate: { chunkCache: { hits: 0, misses: 0 } },
};
const K = 4;
const M = 2;

let world: World;

beforeEach(async () => {
  world = await startTestWorld({ k: K, m: M });
});

afterEach(() => world.close());

interface Line {
  readonly key: string;
  readonly outcome?: string;
  readonly summary?: Record<string, unknown>;
}

async function scrub(...args: string[]): Promise<{ code: number; lines: Line[]; summary: Record<string, unknown> }> {
  const { code, stdout } = await world.run(["scrub", "--json-lines", ...args]);
  const lines = stdout
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  return { code, lines: lines.slice(0, -1), summary: lines.at(-1)!.summary! };
}

/** Puts an object and removes its first `lost` chunks. */
async function putWithout(key: string, lost: number, bytes = 700): Promise<Buffer> {
  const body = randomBytes(bytes);
  const put = await world.put(key, body);
  for (let chunk = 0; chunk < lost; chunk++) await world.tamper(...chunkPlace(put, chunk), () => undefined);
  return body;
}

/** Notes the chunks that are read, by key, one entry for each request. */
function countReads(): Map<string, number> {
  const reads = new Map<string, number>();
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      const key = /^chunks\/(.*)!/.exec(name)?.[1];
      if (request.method === "GET" && key !== undefined) reads.set(key, (reads.get(key) ?? 0) + 1);
      return false;
    });
  }
  return reads;
}

test("looks at every region for what a PoP has found one to lack, which listings may not show", async () => {
  await putWithout("a", 0);
  await putWithout("b", 0);
  const asked: string[] = [];
  const pop = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ...STATUS, behind: ["b", "gone"].map((key) => ({ key, regions: ["tokyo"] })) }));
  });
  const url = await listenLocally(pop);
  try {
    const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
    const pops = [{ name: "fra", url }];
    await writeFile(world.configPath, JSON.stringify({ ...config, pops }));
    const env = { AGAROSE_ADMIN_TOKEN: "admin-token-of-16+" };
    const { code, stdout } = await world.run(["scrub", "--json-lines"], env);
    const [line, summary, ...more] = stdout.toString().trim().split("\n");
    expect([code, more]).toEqual([0, []]);
    expect(JSON.parse(line!)).toMatchObject({ key: "b", outcome: "sound" });
    expect(JSON.parse(summary!)).toMatchObject({ summary: { checked: 2 } });
    // Once for what regions lack, and once for what is popular.
    expect(asked).toEqual(Array.from({ length: 2 }, () => "/v1/status Bearer admin-token-of-16+"));
  } finally {
    pop.close();
  }
});

test("repairs what has the fewest chunks beyond k first, and what is lost last", async () => {
  await putWithout("a-lost", M + 1);
  await putWithout("b-one-gone", 1);
  await putWithout("c-sound", 0);
  const body = await putWithout("d-two-gone", 2);
  const { code, lines, summary } = await scrub();
  expect(code).toBe(1);
  expect(lines).toMatchObject([
    { key: "d-two-gone", outcome: "repaired", chunksWritten: 2 },
    { key: "b-one-gone", outcome: "repaired", chunksWritten: 1 },
    { key: "a-lost", outcome: "failed", error: { code: "NOT_ENOUGH_CHUNKS" } },
  ]);
  expect(summary).toMatchObject({
    checked: 4,
    repaired: 2,
    damaged: 0,
    failed: 1,
    found: { unreadable: 1, 0: 1, 1: 1, 2: 1 },
    left: { unreadable: 1, 0: 0, 1: 0, 2: 3 },
  });
  expect(await world.verify("d-two-gone")).toMatchObject({ sound: true, beyondK: M });
  expect((await world.get("d-two-gone")).equals(body)).toBe(true);
});

test("--json has the repaired objects beside their totals, and each property once", async () => {
  await putWithout("one-gone", 1);
  const { stdout } = await world.run(["scrub", "--json"]);
  const text = stdout.toString();
  expect(JSON.parse(text)).toMatchObject({
    objects: [{ key: "one-gone", outcome: "repaired" }],
    checked: 1,
    repaired: 1,
  });
  expect(text.match(/"objects":/g)).toHaveLength(1);
});

test("an object with one manifest left is in more danger than one that lacks a chunk", async () => {
  await putWithout("a", 1);
  await putWithout("b", 0);
  for (const region of REGIONS.slice(1)) await world.tamper(region, manifestName("b"), () => undefined);
  const { code, lines } = await scrub();
  expect(lines).toMatchObject([
    { key: "b", outcome: "repaired" },
    { key: "a", outcome: "repaired" },
  ]);
  expect(code).toBe(0);
});

test("a lost region is rebuilt with at most k + 2 chunks read per object, and sound ones cost no read", async () => {
  const sizes = [700, 700, 3_500, 12_345];
  const bodies = new Map<string, Buffer>();
  for (const [index, bytes] of sizes.entries()) bodies.set(`o${index}`, await putWithout(`o${index}`, 0, bytes));
  const lost = world.store("dublin");
  for (const name of await world.names()) {
    if (name.startsWith("dublin/")) await lost.remove([name.slice("dublin/".length)]);
  }
  const reads = countReads();
  const { code, summary } = await scrub();
  expect(code).toBe(0);
  expect(summary).toMatchObject({ checked: 4, repaired: 4, found: { [M - 1]: 4 }, left: { [M - 1]: 0, [M]: 4 } });
  expect([...reads.keys()].toSorted()).toEqual([...bodies.keys()]);
  for (const [key, count] of reads) expect(count, key).toBeLessThanOrEqual(K + 2);
  reads.clear();
  expect(await scrub()).toMatchObject({ code: 0, summary: { checked: 4, repaired: 0, found: { [M]: 4 } } });
  expect(reads.size).toBe(0);
  for (const [key, body] of bodies) expect((await world.get(key)).equals(body)).toBe(true);
});

test("the cursor passes a damaged object only once it is repaired", async () => {
  await putWithout("a", 0);
  await putWithout("b", 1);
  await putWithout("c", 0);
  const cursor = join(world.dir, "upload-cursor");
  const writing = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/")) return false;
      writing.resolve();
      // Until the kill.
      await new Promise((resolve) => request.socket.once("close", resolve));
      return true;
    });
  }
  const args = ["scrub", "--cursor", cursor, "--json-lines"];
  expect(await world.spawn(args, { killWhen: writing.promise, killSignal: "SIGKILL" })).toMatchObject({ code: -1 });
  expect(JSON.parse(await readFile(cursor, "utf8"))).toMatchObject({
    walk: "scrub",
    after: "a",
    totals: { objects: 1 },
  });
  world.faults.clear();
  const { code, lines, summary } = await scrub("--cursor", cursor);
  expect([code, lines.map(({ key }) => key)]).toEqual([0, ["b"]]);
  expect(summary).toMatchObject({ checked: 3, repaired: 1, found: { [M - 1]: 1, [M]: 2 }, left: { [M]: 3 } });
  expect((await world.files()).filter((name) => name.includes("cursor"))).toEqual([]);
  expect(await world.verify("b")).toMatchObject({ sound: true });
});

test("--dry-run names what is damaged in the order of danger, and writes nothing", async () => {
  await putWithout("one", 1);
  await putWithout("two", 2);
  const before = await world.names();
  const { code, lines, summary } = await scrub("--dry-run");
  expect(code).toBe(1);
  expect(lines).toMatchObject([
    { key: "two", state: "damaged", beyondK: 0 },
    { key: "one", state: "damaged", beyondK: 1 },
  ]);
  expect(summary).toMatchObject({ checked: 2, damaged: 2, repaired: 0, found: { 0: 1, 1: 1 }, left: { 0: 1, 1: 1 } });
  expect(await world.names()).toEqual(before);
});

test("says for people how many objects have how many chunks beyond k", async () => {
  await putWithout("one", 1);
  await putWithout("sound", 0);
  const { code, stdout } = await world.run(["scrub"]);
  expect(code).toBe(0);
  expect(stdout.toString().split("\n")).toEqual([
    "repaired    one  1 chunk and 0 manifests written",
    "chunks beyond k  objects found  after repairs",
    "1                            1              0",
    "2                            1              2",
    "2 objects, 1 repaired, 0 still damaged, 0 failed",
    "",
  ]);
});

test("a region that is down is reported with exit 1, and counts as lost chunks", async () => {
  await putWithout("whole", 0);
  world.faults.set("tokyo", DOWN);
  const { code, summary } = await scrub();
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(code).toBe(1);
  expect(summary).toMatchObject({
    checked: 1,
    repaired: 0,
    unchecked: 1,
    found: { [M - 1]: 1 },
    regionsUnreachable: [{ region: "tokyo" }],
  });
});

/** Flips a bit of a chunk, which no listing shows. */
async function flip(key: string, chunk: number): Promise<void> {
  const { upload } = JSON.parse((await world.read("tokyo", manifestName(key))).toString()) as { upload: string };
  await world.tamper(REGIONS[chunk % REGIONS.length]!, chunkName(key, upload, chunk), (stored) =>
    Buffer.from(stored).fill(stored[9]! ^ 1, 9, 10),
  );
}

test("--sample reads objects in full, and what it finds is repaired", async () => {
  await putWithout("a", 0);
  await putWithout("b", 0);
  await flip("b", 3);
  expect(await scrub("--sample", "0")).toMatchObject({
    code: 0,
    lines: [],
    summary: { readBytes: 0, found: { [M]: 2 } },
  });
  const { code, lines, summary } = await scrub("--sample", "100%");
  expect([code, lines]).toMatchObject([0, [{ key: "b", outcome: "repaired", chunksWritten: 1 }]]);
  expect(summary).toMatchObject({ repaired: 1, found: { [M - 1]: 1, [M]: 1 }, left: { [M]: 2 }, unread: 0 });
  // 700 bytes over 4 of 6 chunks, of each object.
  expect(summary["readBytes"]).toBe(2 * 6 * 175);
  expect(await world.verify("b")).toMatchObject({ sound: true });
});

test("--budget buys reads as long as it lasts, says what it left, and needs a price of every region", async () => {
  for (const key of ["a", "b", "c"]) await putWithout(key, 0);
  const unpriced = await world.run(["scrub", "--sample", "1", "--budget", "1"]);
  expect(unpriced).toMatchObject({ code: 2, stderr: expect.stringContaining('add "egressUsdPerGb"') });
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as { regions: object[] };
  const regions = config.regions.map((region) => ({ ...region, egressUsdPerGb: 1_000 }));
  await writeFile(world.configPath, JSON.stringify({ ...config, regions }));
  // 1,050 bytes of chunks cost 0.00105 dollars, so the budget is enough for two.
  const { code, summary } = await scrub("--sample", "1", "--budget", "0.0025");
  expect(code).toBe(0);
  expect(summary).toMatchObject({ readBytes: 2_100, unread: 1, found: { [M]: 3 } });
  expect(summary["readUsd"]).toBeCloseTo(0.0021, 8);
});

test.each([
  [["--sample", "2"], "is not a share from 0 to 1"],
  [["--age", "30"], "30 must be 1s or more"],
  [["--bandwidth", "10MB"], "is not a rate above 0"],
  [["--budget", "free"], "is not an amount in US dollars"],
  [["--every", "30d"], "must be 1s to 24d"],
  [["--metrics", "no-such-folder/agarose.prom"], "no-such-folder/agarose.prom cannot be written"],
])("%j is refused", async (args, message) => {
  expect(await world.run(["scrub", ...args])).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});

test("--metrics writes what Prometheus reads", async () => {
  await putWithout("one", 1);
  await putWithout("lost", M + 1);
  const path = join(world.dir, "agarose.prom");
  expect((await world.run(["scrub", "--metrics", path])).code).toBe(1);
  const lines = (await readFile(path, "utf8")).split("\n");
  expect(lines).toEqual(expect.arrayContaining(['agarose_scrub_objects{beyond_k="0"} 0']));
  expect(lines).toEqual(expect.arrayContaining([`agarose_scrub_objects{beyond_k="${M}"} 1`]));
  expect(lines).toEqual(expect.arrayContaining(['agarose_scrub_objects{beyond_k="unreadable"} 1']));
  expect(lines).toEqual(expect.arrayContaining(["agarose_scrub_repaired_objects 1", "agarose_scrub_failed_objects 1"]));
  const names = lines.flatMap((line) => /^# TYPE (\w+) gauge$/.exec(line)?.[1] ?? []);
  const guide = await readFile(new URL("../../../../../docs/reference/events-and-metrics.md", import.meta.url), "utf8");
  // A walk that is open is for the scrubber Worker to show: a file is written at the end of one.
  const listed = [...guide.matchAll(/^\| `(agarose_scrub_(?!open_)\w+)`/gm)].map(([, name]) => name);
  expect(listed).toEqual(names);
  const endS = Number(/^agarose_scrub_end_timestamp_seconds (.*)$/m.exec(lines.join("\n"))![1]);
  expect(Math.abs(endS - Date.now() / 1000)).toBeLessThan(600);
  // Each line is a comment, or a name, labels and a number.
  for (const line of lines.slice(0, -1)) expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="\w+"\})? [\d.e+-]+)$/);
});

test("--every walks again, also after a walk that failed, until it is asked to end", async () => {
  await putWithout("one", 1);
  for (const region of REGIONS) world.faults.set(region, DOWN);
  const enough = Promise.withResolvers<void>();
  let printed = "";
  const { code, stdout, stderr } = await world.spawn(["scrub", "--every", "1s", "--json-lines"], {
    killWhen: enough.promise,
    onStderr: () => world.faults.clear(),
    onStdout(part) {
      printed += part.toString();
      if (printed.split('"summary"').length > 2) enough.resolve();
    },
  });
  expect(code).toBe(0);
  expect(stderr).not.toBe("");
  const summaries = stdout
    .toString()
    .split("\n")
    .filter((line) => line.startsWith('{"summary"'))
    .map((line) => (JSON.parse(line) as { summary: object }).summary);
  expect(summaries.slice(0, 2)).toMatchObject([
    { repaired: 1, left: { [M]: 1 } },
    { repaired: 0, found: { [M]: 1 } },
  ]);
});

test("finishes what a put has left in the repair queue", async () => {
  world.faults.set("paulo", DOWN);
  await world.put("queued", randomBytes(700));
  world.faults.clear();
  expect((await world.names()).some((name) => name.includes("/repairs/"))).toBe(true);
  expect(await scrub()).toMatchObject({ code: 0, lines: [{ key: "queued", outcome: "repaired" }] });
  expect((await world.names()).filter((name) => name.includes("/repairs/"))).toEqual([]);
});

test("two at once do each other no harm", async () => {
  const bodies = new Map<string, Buffer>();
  for (const key of ["a", "b", "c"]) bodies.set(key, await putWithout(key, 2, 3_500));
  await world.tamper("sydney", manifestName("b"), () => undefined);
  // Each waits until both have begun to write.
  let writers = 0;
  const both = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("chunks/a!")) return false;
      // Two chunks of each.
      if (++writers >= 4) both.resolve();
      await both.promise;
      return false;
    });
  }
  const runs = await Promise.all([world.spawn(["scrub"]), world.spawn(["scrub"])]);
  expect(writers).toBeGreaterThanOrEqual(4);
  for (const { code, stderr } of runs) expect([code, stderr]).toEqual([0, ""]);
  for (const [key, body] of bodies) {
    expect(await world.verify(key)).toMatchObject({ sound: true, beyondK: M });
    expect((await world.get(key)).equals(body)).toBe(true);
  }
});

test("without an object there is nothing to do", async () => {
  expect(await scrub()).toMatchObject({ code: 0, lines: [], summary: { checked: 0, found: {} } });
});
