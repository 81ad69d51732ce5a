/** Messages of a page before it reads: which objects it will need, and how urgently. */
import { read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";

test("the plans of preloaded objects are known at the first read, and requested again after a purge", async ({
  context,
  world,
  putRandom,
}) => {
  const contents = new Map<string, Uint8Array>();
  for (const name of ["a", "b", "c"]) contents.set(`ahead/${name}`, await putRandom(`ahead/${name}`, 50_000));
  const keys = [...contents.keys()];
  const page = await openInitialisedApp(context, world);
  await page.evaluate(async (wanted) => {
    const handle = await (globalThis as unknown as InPage).agarose.register({ scope: "/" });
    Object.assign(globalThis, { handle });
    await handle.preload(wanted);
  }, keys);
  const requests = async (path: string): Promise<number> =>
    (await world.log()).filter((record) => record.path.includes(path) && record.outcome !== "pending").length;
  // The world notes later than the page that a response has ended on its line.
  await expect.poll(() => requests("/v1/plans?")).toBe(1);
  expect(await requests("/v1/read/ahead/")).toBe(0);
  for (const key of keys) {
    const answer = await read(page, key);
    expect(answer.sha256).toBe(sha256(contents.get(key)!));
    expect(answer.headers["server-timing"]).toContain('plan;desc="known plan"');
  }
  await page.evaluate(() => (globalThis as unknown as InPage).handle.purge({ prefix: "ahead/" }));
  expect((await read(page, keys[0]!)).headers["server-timing"]).toContain('plan;desc="edge plan"');
});

test("an urgent object overtakes the many that were asked for before it, one like the others does not", async ({
  context,
  world,
  putRandom,
}) => {
  const others = 80;
  await putRandom("ahead/other", 300_000);
  const urgent = await putRandom("ahead/urgent", 300_000);
  const page = await openInitialisedApp(context, world);
  const rankWith = (urgency: RequestPriority): Promise<{ rank: number; bytes: number }> =>
    page.evaluate(
      async ([count, own]) => {
        const handle = await (globalThis as unknown as InPage).agarose.register({ scope: "/" });
        let ended = 0;
        const whole = async (key: string, priority: RequestPriority): Promise<{ rank: number; bytes: number }> => {
          const { byteLength } = await (await handle.fetch(key, { priority })).arrayBuffer();
          return { rank: ended++, bytes: byteLength };
        };
        for (const key of ["ahead/other", "ahead/urgent"]) await whole(key, "auto");
        ended = 0;
        const before = Array.from({ length: count }, () => whole("ahead/other", "auto"));
        const last = await whole("ahead/urgent", own);
        await Promise.all(before);
        return last;
      },
      [others, urgency] as const,
    );
  // Medians of three: a busy machine passes requests on to the worker late, and what is in its memory comes at once.
  const usual: number[] = [];
  const high: number[] = [];
  for (let round = 0; round < 3; round++) {
    for (const [priority, ranks] of [["auto", usual] as const, ["high", high] as const]) {
      const { rank, bytes } = await rankWith(priority);
      expect(bytes).toBe(urgent.length);
      ranks.push(rank);
    }
  }
  const median = (ranks: readonly number[]): number => ranks.toSorted((a, b) => a - b)[1]!;
  expect(median(high), `of ${others + 1}, against ${usual.join(", ")}`).toBeLessThan(median(usual) / 2);
});
