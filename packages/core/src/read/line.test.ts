import { expect, test } from "vitest";
import { SimulatedClock } from "../../test/index.ts";
import { Line, type LineRequest } from "./line.ts";

const KIB = 1024;
/** The cost of k others in place of one piece, and their time on an idle line. */
const INSTEAD = [400 * KIB, 50] as const;

/** A line at 0 ms, and how to let time pass. */
async function lineWith(): Promise<{ line: Line; clock: SimulatedClock; pass: (ms: number) => Promise<void> }> {
  const clock = new SimulatedClock();
  return { line: new Line(clock), clock, pass: (ms) => clock.run(clock.sleep(ms)) };
}

/** Lets `requests` take turns at so many bytes per millisecond, for so long. */
async function flow(
  { pass }: Awaited<ReturnType<typeof lineWith>>,
  requests: readonly LineRequest[],
  rate: number,
  ms: number,
): Promise<void> {
  const turnMs = 5;
  for (let at = 0; at < ms; at += turnMs) {
    await pass(turnMs);
    requests[(at / turnMs) % requests.length]!.received(rate * turnMs, 0);
  }
}

test("the rate of a line is that of all that comes, whatever it waits for in between", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  expect([line.rate, line.mbit]).toEqual([undefined, undefined]);
  const requests = ["a", "b"].map((source) => line.begin(source, 1024 * KIB));
  await pass(80);
  await flow(world, requests, 2_500, 200);
  expect(line.rate).toBeCloseTo(2_500, -2);
  expect(line.mbit).toBeCloseTo(20, 0);
  for (const request of requests) request.end();
  await pass(10_000);
  await flow(world, [line.begin("a", 1024 * KIB)], 2_500, 100);
  expect(line.rate).toBeCloseTo(2_500, -2);
});

test("the rate is known by requests that are shorter than a measurement, and waits between them lower it no more", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  const step = async (waitMs: number): Promise<void> => {
    const request = line.begin("a", 12_500 * 10);
    await pass(waitMs);
    await flow(world, [request], 12_500, 10);
    request.end();
  };
  await step(40);
  expect(line.rate).toBeUndefined();
  for (let count = 0; count < 10; count++) await step(40);
  expect(line.mbit).toBeCloseTo(100, 0);
});

test("until something flows, the rate is that of whole answers, with their waits", async () => {
  const { line, pass } = await lineWith();
  for (let count = 0; count < 3; count++) {
    const requests = ["a", "b"].map((source) => line.begin(source, 50_000));
    for (const request of requests) {
      await pass(40);
      request.received(50_000, 0);
      request.end();
    }
  }
  expect(line.rate).toBeCloseTo(50_000 / 40, 0);
});

test("the window is what the line carries in 100 ms or two round trips, shared among the reads", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  expect(line.windowBytes(["a"])).toBe(1024 * KIB);
  const request = line.begin("a", 10_000 * KIB);
  await pass(120);
  await flow(world, [request], 12_500, 400);
  expect(line.windowBytes(["a"]) / 12_500).toBeCloseTo(2 * 125, -1);
  expect(line.windowBytes(["unknown"]) / 12_500).toBeCloseTo(100, -1);
  line.reads = 5;
  expect(line.windowBytes(["unknown"]) / 12_500).toBeCloseTo(20, 0);
  expect([line.isWide(500_000, ["a"]), line.isWide(700_000, ["a"])]).toEqual([true, false]);
});

test("a silent request is late at once on an idle line", async () => {
  const { line, pass } = await lineWith();
  const request = line.begin("a", 64 * KIB);
  await pass(30);
  expect(request.isOverdue(...INSTEAD)).toBe(true);
});

test("a silent request waits beside those that flow until each has had two turns", async () => {
  const world = await lineWith();
  const { line } = world;
  const silent = line.begin("a", 64 * KIB);
  const others = ["b", "c"].map((source) => line.begin(source, 1024 * KIB));
  await flow(world, others, 2_500, 80);
  expect(silent.isOverdue(...INSTEAD)).toBe(false);
  await flow(world, others, 2_500, 50);
  expect(silent.isOverdue(...INSTEAD)).toBe(true);
});

test("a silent request waits while its source sends those before it, and is late when later ones overtake it", async () => {
  const world = await lineWith();
  const { line } = world;
  const before = line.begin("a", 200 * KIB);
  const silent = line.begin("a", 64 * KIB);
  const other = line.begin("b", 4096 * KIB);
  await flow(world, [before, other], 2_500, 160);
  expect(silent.isOverdue(...INSTEAD)).toBe(false);
  const later = line.begin("a", 400 * KIB);
  await flow(world, [later, other], 2_500, 320);
  expect(silent.isOverdue(...INSTEAD)).toBe(true);
});

test("a silent request is late when nothing comes at all, and after five seconds in any case", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  const silent = line.begin("a", 64 * KIB);
  const other = line.begin("b", 1024 * KIB);
  await flow(world, [other], 2_500, 40);
  expect(silent.isOverdue(...INSTEAD)).toBe(false);
  await pass(101);
  expect(silent.isOverdue(...INSTEAD)).toBe(true);
  await flow(world, [other], 1, 4_850);
  expect(silent.isOverdue(...INSTEAD)).toBe(false);
  await flow(world, [other], 1, 50);
  expect(silent.isOverdue(...INSTEAD)).toBe(true);
});

test("a request that flows is late where its source is far slower than the others, and not where all share the line", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  const fair = line.begin("a", 400 * KIB);
  const others = ["b", "c"].map((source) => line.begin(source, 4096 * KIB));
  await flow(world, [fair, ...others], 2_500, 120);
  expect(fair.isOverdue(64 * KIB, 50)).toBe(false);
  const slow = line.begin("d", 400 * KIB);
  await pass(5);
  slow.received(4 * KIB, 0);
  await flow(world, others, 2_500, 200);
  expect(slow.isOverdue(64 * KIB, 50)).toBe(true);
});

test("a request that flows alone is late where its rest takes twice as long as others would", async () => {
  const { line, pass } = await lineWith();
  const request = line.begin("a", 100 * KIB);
  await pass(10);
  request.received(10 * KIB, 0);
  await pass(40);
  // The rest takes 360 ms.
  expect([request.isOverdue(400 * KIB, 50), request.isOverdue(400 * KIB, 40)]).toEqual([false, true]);
});

test("a request whose source stops just before the end is late once the line is idle", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  const stopped = line.begin("a", 64 * KIB);
  const other = line.begin("b", 100 * KIB);
  await pass(5);
  stopped.received(63 * KIB, 0);
  await flow(world, [other], 2_500, 40);
  expect(stopped.isOverdue(64 * KIB, 50)).toBe(false);
  other.end();
  await pass(500);
  expect(stopped.isOverdue(64 * KIB, 50)).toBe(true);
});

test("a request whose source stops just before the end is late after five seconds, however busy the line is", async () => {
  const world = await lineWith();
  const { line, pass } = world;
  const stopped = line.begin("a", 64 * KIB);
  const other = line.begin("b", 100 * KIB * KIB);
  await pass(5);
  stopped.received(64 * KIB - 1, 0);
  await flow(world, [other], 2_500, 4_900);
  expect(stopped.isOverdue(64 * KIB, 50)).toBe(false);
  await flow(world, [other], 2_500, 150);
  expect(stopped.isOverdue(64 * KIB, 50)).toBe(true);
});

test("a request whose response brings other bytes for ever is late", async () => {
  const world = await lineWith();
  const request = world.line.begin({}, 64 * KIB);
  await flow(world, [request], 2_500, 40);
  expect(request.isOverdue(64 * KIB, 50)).toBe(false);
  await flow(world, [request], 2_500, 5_000);
  expect(request.isOverdue(64 * KIB, 50)).toBe(true);
});

test("an answer without a byte does not count as one that flows", async () => {
  const world = await lineWith();
  const { line } = world;
  for (let count = 0; count < 3; count++) {
    const empty = line.begin("a", 64 * KIB);
    empty.received(0, 0);
    empty.end();
  }
  const silent = line.begin("a", 64 * KIB);
  await flow(world, [line.begin("b", 1024 * KIB)], 2_500, 60);
  expect(silent.isOverdue(...INSTEAD)).toBe(true);
});

test("what is given up counts no more", async () => {
  const { line, pass } = await lineWith();
  const given = line.begin("a", 1024 * KIB);
  given.end();
  expect(line.queueMs(0)).toBe(0);
  const request = line.begin("b", 64 * KIB);
  await pass(30);
  expect(request.isOverdue(...INSTEAD)).toBe(true);
});
