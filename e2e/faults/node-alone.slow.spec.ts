/**
 * * The cases of every browser, with all Workers dead and one PoP on Node. The cases of a page's policies are not here:
 * they ask nothing of a PoP.
 */
import { importedCases } from "../cases/imported.ts";
import { faultCases } from "../cases/faults.ts";
import { mediaCases } from "../cases/media.ts";
import { rangeCasesOverServiceWorker } from "../cases/ranges.ts";
import { readCases } from "../cases/reads.ts";
import { registerCases } from "../cases/register.ts";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { runInChromium } from "../fixtures/chromium.ts";
import { expect, test } from "../fixtures/test.ts";

const WORKERS = ["fra", "lhr"];

test.use({
  worldOptions: { world: "agar", scale: 0.02, cacheBytes: 20_000_000, pops: ["workerd", "workerd", "node"] },
});

test.beforeEach(async ({ world }) => {
  for (const name of WORKERS) await world.pop(name).down();
});

test.afterEach(async ({ world }) => {
  const answered = (await world.log()).filter(({ to, outcome }) => WORKERS.includes(to) && outcome === "ok");
  expect(answered, "no Worker has answered").toEqual([]);
});

/** Before it has a service worker, a page asks its host, which passes reads on to the first Worker alone. */
const needsWorker = /^before a service worker controls the page/;

runInChromium([
  ...readCases.filter(({ name }) => !needsWorker.test(name)),
  ...rangeCasesOverServiceWorker,
  ...mediaCases,
  ...faultCases,
  ...importedCases,
  ...registerCases,
]);

test("the PoP on Node has answered, and Workers were asked", async ({ context, world, putRandom }) => {
  const content = await putRandom("alone/page", 1_000_000);
  const page = await openControlledApp(context, world);
  expect(await read(page, "alone/page")).toMatchObject({ status: 200, sha256: sha256(content) });
  const log = (await world.log()).filter(({ path, outcome }) => path.startsWith("/v1/read/") && outcome === "ok");
  expect(new Set(log.map(({ to }) => to))).toEqual(new Set(["iad"]));
  for (const name of WORKERS) expect(await world.pop(name).fired(), name).toBeGreaterThan(0);
});
