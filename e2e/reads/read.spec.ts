import { readCases } from "../cases/reads.ts";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { runInChromium } from "../fixtures/chromium.ts";
import { expect, test } from "../fixtures/test.ts";

runInChromium(readCases);

test("a hard reload, which bypasses the service worker, still reads", async ({ context, world, putRandom }) => {
  const content = await putRandom("hard/reload", 300_000);
  const page = await openControlledApp(context, world);
  const session = await context.newCDPSession(page);
  const loaded = page.waitForEvent("load");
  await session.send("Page.reload", { ignoreCache: true });
  await loaded;
  expect(await page.evaluate(() => navigator.serviceWorker.controller)).toBeNull();
  expect(await read(page, "hard/reload")).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("a range outside the object is 416 with the object's length", async ({ context, world, putRandom }) => {
  await putRandom("short", 1000);
  const page = await openControlledApp(context, world);
  const answer = await read(page, "short", { range: "bytes=1000-" });
  expect(answer.status).toBe(416);
  expect(answer.headers["content-range"]).toBe("bytes */1000");
  expect(answer.text).toContain("RANGE_UNSATISFIABLE");
});
