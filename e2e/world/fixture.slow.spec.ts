/** The Playwright fixture itself: what a test of an app can do with a world. */
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { slowCpu, type Read } from "@agarose/dev-world/playwright";
import { openApp, openControlledApp, read } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";
import { childrenOf, isRunning } from "./processes.ts";

test("reads collects the reads of the page with durations and percentiles", async ({
  context,
  putRandom,
  reads,
  world,
}) => {
  await putRandom("fixture/a", 300_000);
  await putRandom("fixture/b", 1_000);
  const page = await openControlledApp(context, world);
  await expect(reads.p50()).rejects.toThrow(/there was no read/);
  for (const key of ["a", "b", "a"]) await read(page, `fixture/${key}`);
  const all = await reads.all();
  expect(all.map(({ key, bytes, status }) => [key, bytes, status])).toEqual([
    ["fixture/a", 300_000, 200],
    ["fixture/b", 1_000, 200],
    ["fixture/a", 300_000, 200],
  ]);
  const durations = all.map(({ ms }) => ms).toSorted((a, b) => a - b);
  expect(await reads.count()).toBe(3);
  expect(await reads.p50()).toBe(durations[1]);
  expect(await reads.p99()).toBe(durations[2]);
  reads.clear();
  expect(await reads.count()).toBe(0);
});

/** It begins before `reads` and ends after it, so that it sees what `reads` attaches at its end. */
const traced = test.extend<{ readonly attached: void }>({
  attached: [
    async ({ world: _world }, use, testInfo) => {
      await use();
      const page = testInfo.attachments.find(({ name }) => name === "reads");
      expect(page).toMatchObject({ contentType: "text/html" });
      expect(page!.body!.toString()).toMatch(/fixture\/traced[^]*stripe 0 chunk \d+ [^<]*frankfurt/);
    },
    { auto: true },
  ],
});

traced.describe("with readTrace on", () => {
  traced.use({ readTrace: "on" });

  traced("the report gets a page with the requests of each read", async ({ context, putRandom, reads, world }) => {
    await putRandom("fixture/traced", 300_000);
    const page = await openControlledApp(context, world);
    await world.region("frankfurt").down();
    await read(page, "fixture/traced");
    const [{ requests }] = (await reads.all()) as [Read];
    expect(requests.filter(({ outcome }) => outcome === "used")).toHaveLength(9);
    expect(requests.some(({ source, outcome }) => source.includes("frankfurt") && outcome === "failed")).toBe(true);
    expect(await world.region("frankfurt").fired()).toBeGreaterThan(0);
  });
});

test("slow and straggle delay requests, and fired counts them", async ({ context, putRandom, world }) => {
  // More than a worker keeps in memory, so that each read asks the regions.
  await putRandom("fixture/slow", 200_000);
  const page = await openControlledApp(context, world);
  await read(page, "fixture/slow");
  const frankfurt = world.region("frankfurt");
  expect(await frankfurt.fired()).toBe(0);
  await frankfurt.slow(5);
  await read(page, "fixture/slow");
  expect(await frankfurt.fired()).toBeGreaterThan(0);
  expect((await frankfurt.requests()).some(({ slowdown }) => slowdown === 5)).toBe(true);
  await world.reset();
  await frankfurt.straggle(1, 3);
  await read(page, "fixture/slow");
  expect((await frankfurt.requests()).some(({ slowdown }) => slowdown === 3)).toBe(true);
});

test("fail answers 503, and reads take the other regions", async ({ context, putRandom, world }) => {
  await putRandom("fixture/fail", 1_000_000);
  const page = await openControlledApp(context, world);
  await world.region("frankfurt").fail();
  expect(await read(page, "fixture/fail")).toMatchObject({ status: 200, bytes: 1_000_000 });
  expect(await world.region("frankfurt").fired()).toBeGreaterThan(0);
});

test("client.near changes the latencies of the client", async ({ world }) => {
  const nearest = async (): Promise<string> => {
    const { regions } = await world.state();
    return regions.toSorted((a, b) => a.latencyMs - b.latencyMs)[0]!.name;
  };
  expect(await nearest()).toBe("frankfurt");
  await world.client.near("iad");
  expect(await nearest()).toBe("n-virginia");
});

test("client.throttle lets all that the page reads share one line, until the world is reset", async ({
  context,
  world,
  putRandom,
}) => {
  const bytes = 500_000;
  for (const key of ["a", "b"]) await putRandom(`fixture/line/${key}`, bytes);
  const page = await openControlledApp(context, world);
  await world.client.throttle(8);
  expect((await world.state()).client).toMatchObject({ mbit: 8 });
  const startMs = performance.now();
  await Promise.all(["a", "b"].map((key) => read(page, `fixture/line/${key}`)));
  // A megabyte a second.
  expect(performance.now() - startMs).toBeGreaterThan(1000);
  await world.reset();
  expect((await world.state()).client).toMatchObject({ mbit: 0 });
});

test("slowCpu makes a page slower, and 1 ends that", async ({ context, world }) => {
  const page = await openApp(context, world);
  const loopMs = (): Promise<number> =>
    page.evaluate(() => {
      const startMs = performance.now();
      for (let n = 0, sum = 0; n < 50_000_000; n++) sum += Math.sqrt(n);
      return performance.now() - startMs;
    });
  await loopMs();
  const before = await loopMs();
  await slowCpu(page, 20);
  // The browser slows the page down by another thread, which waits for its turn on a busy machine.
  await expect.poll(loopMs).toBeGreaterThan(3 * before);
  await slowCpu(page, 1);
  await expect.poll(loopMs).toBeLessThan(3 * before);
});

test("an unknown region or PoP is refused with the known names", async ({ world }) => {
  expect(() => world.region("atlantis")).toThrow(/no region "atlantis": there are frankfurt, dublin/);
  expect(() => world.pop("atl")).toThrow(/no PoP "atl": there are fra, lhr, iad/);
  await expect(world.client.near("moon")).rejects.toThrow(/no PoP "moon"/);
});

test("agarose runs the command line on the world", async ({ putRandom, world }) => {
  await putRandom("fixture/listed", 1_000);
  expect(JSON.stringify(await world.agarose("ls", "fixture/listed"))).toContain("fixture/listed");
  await expect(world.agarose("get", "no/such/object")).rejects.toThrow(/OBJECT_NOT_FOUND/);
});

test("a world ends when its worker is killed, and leaves no process and no file behind", async () => {
  test.skip(process.platform !== "linux", "reads /proc");
  const holder = fork(fileURLToPath(new URL("world-holder.ts", import.meta.url)), { execArgv: [] });
  const message = new Promise((resolve) => holder.once("message", resolve));
  const { pid, config } = (await message) as { pid: number; config: string };
  const processes = [pid, ...childrenOf(pid)];
  expect(processes.length, "the world and workerd").toBeGreaterThan(1);
  expect(existsSync(config)).toBe(true);
  holder.kill("SIGKILL");
  await expect.poll(() => processes.filter(isRunning)).toEqual([]);
  expect(existsSync(dirname(config))).toBe(false);
});

test("the README of the package shows the example as it runs here", async () => {
  const readme = await readFile(
    join(dirname(fileURLToPath(import.meta.resolve("@agarose/dev-world"))), "../README.md"),
    "utf8",
  );
  const example = await readFile(new URL("../example/photo.spec.ts", import.meta.url), "utf8");
  expect(readme).toContain(example.replaceAll("example/app", "app"));
});
