// Written by `agarose simulate packages/cli/samples/scenario.json --write-test`. Change it as you like.
import { randomBytes } from "node:crypto";
import { expect, test } from "@agarose/dev-world/playwright";

test.use({
  worldOptions: { app: "example/app", geography: "../packages/cli/samples/scenario.json", cacheBytes: 1_200_000 },
});

/** Of 200 in the scenario. The caches are smaller by as much. */
const OBJECTS = 12;
const BYTES = 1_000_000;
/** By the popularity of the scenario. */
const READS = [0, 1, 2, 3, 0, 4, 5, 0, 1, 6, 0, 7, 8, 0, 2, 1, 9, 0, 10, 3, 0, 11, 1, 0, 2, 4, 0, 1, 5, 0, 3, 6];
/** With what PoPs and service workers do by default. */
const SIMULATED_MEAN_MS = 137;
/** What the browser and a busy machine may add. */
const TOLERANCE = 2;

test("reads of sample take about as long as simulated", async ({ page, world, reads }) => {
  for (let object = 0; object < OBJECTS; object++) await world.put(`simulated/${object}`, randomBytes(BYTES));
  await page.goto("/");
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
  const readAll = async (): Promise<void> => {
    for (const object of READS) {
      const status = await page.evaluate(async (url) => {
        const response = await fetch(url, { cache: "no-store" });
        await response.arrayBuffer();
        return response.status;
      }, `/ec/simulated/${object}`);
      expect(status).toBe(200);
    }
  };
  await readAll();
  await world.cron();
  await world.cron();
  reads.clear();
  await readAll();
  const all = await reads.all();
  const meanMs = all.reduce((sum, { ms }) => sum + ms, 0) / all.length;
  const description = `mean ${meanMs.toFixed(0)} ms, simulated ${SIMULATED_MEAN_MS} ms`;
  test.info().annotations.push({ type: "latency", description });
  expect(meanMs).toBeLessThan(TOLERANCE * SIMULATED_MEAN_MS);
});
