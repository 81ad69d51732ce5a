/** A browser that an app takes Agarose out of again. */
import { read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";

test("unregister removes the worker and all that it kept, and the next page reads at the edge", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("removed", 300_000);
  const page = await openInitialisedApp(context, world, { offline: { bytes: 10_000_000 } });
  await page.evaluate(async () => {
    const { agarose } = globalThis as unknown as InPage;
    await agarose.register({ worker: "/agarose-sw.offline.js", scope: "/" });
  });
  expect(await read(page, "removed")).toMatchObject({ status: 200, sha256: sha256(content) });
  const kept = (): Promise<string[]> => page.evaluate(() => caches.keys());
  await expect.poll(kept).toEqual(expect.arrayContaining(["agarose", "agarose-offline"]));

  const removed = await page.evaluate(() => (globalThis as unknown as InPage).agarose.unregister());
  expect(removed).toBe(true);
  expect(await kept()).toEqual([]);
  await page.reload();
  expect(await page.evaluate(() => navigator.serviceWorker.getRegistrations().then(({ length }) => length))).toBe(0);
  const answer = await read(page, "removed");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(answer.headers["x-agarose-pop"]).toBe("fra");
});
