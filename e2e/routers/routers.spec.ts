/**
 * `AgaroseStrategy` under the routers it is made for, Serwist's and Workbox's own, bundled into an app's service
 * worker.
 */
import type { Page } from "@playwright/test";
import { read, sha256 } from "../fixtures/app.ts";
import { hookCalls, test } from "./bundled-worker.ts";
import type { InPage } from "../fixtures/initialised-app.ts";
import { expect } from "../fixtures/test.ts";

const READ = ["handlerWillStart", "requestWillFetch", "fetchDidSucceed", "handlerWillRespond", "handlerDidRespond"];
const FAILED = [
  "handlerWillStart",
  "requestWillFetch",
  "fetchDidFail",
  "handlerDidError",
  "handlerWillRespond",
  "handlerDidRespond",
];

/** Waits for the last hook and returns all of a path, which must have shared one state. */
async function hooksOf(page: Page, path: string): Promise<string[]> {
  await expect.poll(async () => (await hookCalls(page, path)).map(({ hook }) => hook)).toContain("handlerDidComplete");
  const calls = await hookCalls(page, path);
  expect(new Set(calls.map(({ state }) => state)).size).toBe(1);
  return calls.map(({ hook }) => hook);
}

for (const router of ["serwist", "workbox"]) {
  test.describe(`under the router of ${router}`, () => {
    test("an object is read whole, and every hook of its way is called once", async ({
      openUnderWorker,
      putRandom,
    }) => {
      const content = await putRandom(`${router}/cat.bin`, 5_000_000);
      const page = await openUnderWorker(router);
      const answer = await read(page, `${router}/cat.bin`);
      expect(answer).toMatchObject({ status: 200, bytes: 5_000_000, sha256: sha256(content) });
      expect(answer.headers).toMatchObject({ "x-recorded": "yes", "x-agarose-read": expect.any(String) });
      expect(await hooksOf(page, `/ec/${router}/cat.bin`)).toEqual([...READ, "handlerDidComplete"]);
      const kept = await page.evaluate(
        async (path) => (await caches.match(path)) !== undefined,
        `/ec/${router}/cat.bin`,
      );
      expect(kept, "nothing of it is put into the Cache API").toBe(false);
    });

    test("a range is read, and a plugin may make one of a request", async ({ openUnderWorker, putRandom }) => {
      const content = await putRandom(`${router}/range.bin`, 1_000_000);
      const page = await openUnderWorker(router);
      const asked = await read(page, `${router}/range.bin`, { range: "bytes=400000-600000" });
      expect(asked).toMatchObject({ status: 206, sha256: sha256(content.subarray(400_000, 600_001)) });
      const made = await read(page, `${router}/range.bin`, { "x-first-bytes": "10" });
      expect(made).toMatchObject({ status: 206, sha256: sha256(content.subarray(0, 10)) });
      expect(made.headers["content-range"]).toBe("bytes 0-9/1000000");
    });

    test("a read that fails calls the hooks and is answered with its code", async ({ openUnderWorker }) => {
      const page = await openUnderWorker(router);
      const answer = await read(page, "no such object");
      expect(answer.status).toBe(404);
      expect(answer.headers["x-agarose-error"]).toBe("OBJECT_NOT_FOUND");
      const path = "/ec/no%20such%20object";
      expect(await hooksOf(page, path)).toEqual([...FAILED, "handlerDidComplete"]);
      const errors = (await hookCalls(page, path)).flatMap(({ hook, error }) => (error ? [[hook, error]] : []));
      expect(errors).toEqual([
        ["fetchDidFail", "OBJECT_NOT_FOUND"],
        ["handlerDidError", "OBJECT_NOT_FOUND"],
      ]);
    });

    test("a plugin answers in the place of an error", async ({ openUnderWorker }) => {
      const page = await openUnderWorker(router);
      expect(await read(page, "placeheld")).toMatchObject({ status: 200, sha256: sha256(Buffer.from("placeholder")) });
      expect(await hooksOf(page, "/ec/placeheld")).toContain("handlerDidError");
    });

    test("the page registers it, preloads objects and purges them", async ({ openUnderWorker, putRandom, world }) => {
      const key = `${router}/preloaded.bin`;
      await putRandom(key, 10_000);
      const page = await openUnderWorker(router);
      const planFrom = async (): Promise<string | undefined> =>
        /plan;desc="(\w+) plan"/.exec((await read(page, key)).headers["server-timing"] ?? "")?.[1];
      await page.evaluate(async (wanted) => {
        const { register, preload } = (globalThis as unknown as InPage).agarose;
        await register("/worker.js", { scope: "/" });
        preload([wanted]);
      }, key);
      const asked = async (): Promise<boolean> =>
        (await world.log()).some(({ path, outcome }) => path.includes("/v1/plans?") && outcome !== "pending");
      await expect.poll(asked).toBe(true);
      expect(await planFrom()).toBe("known");
      await page.evaluate((prefix) => (globalThis as unknown as InPage).agarose.purge({ prefix }), `${router}/`);
      await expect.poll(planFrom, { intervals: [50] }).toBe("edge");
    });

    test("requests outside of its route are none of the strategy's", async ({ openUnderWorker }) => {
      const page = await openUnderWorker(router);
      const status = await page.evaluate(async () => (await fetch("/agarose.json")).status);
      expect(status).toBe(200);
      expect(await hookCalls(page, "/agarose.json")).toEqual([]);
    });
  });
}
