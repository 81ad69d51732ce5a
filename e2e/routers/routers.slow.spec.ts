/**
 * `createHandle` under the routers of Serwist and Workbox and without one, bundled into an app's service worker.
 */
import { read, sha256 } from "../fixtures/app.ts";
import { test } from "./bundled-worker.ts";
import type { InPage } from "../fixtures/initialised-app.ts";
import { expect } from "../fixtures/test.ts";

for (const router of ["serwist", "workbox", "plain"]) {
  test.describe(`in a worker by ${router}`, () => {
    test("an object is read whole and by range, and nothing of it is put into the Cache API", async ({
      openUnderWorker,
      putRandom,
    }) => {
      const content = await putRandom(`${router}/cat.bin`, 5_000_000);
      const page = await openUnderWorker(router);
      const answer = await read(page, `${router}/cat.bin`);
      expect(answer).toMatchObject({ status: 200, bytes: 5_000_000, sha256: sha256(content) });
      expect(answer.headers["x-agarose-read"]).toEqual(expect.any(String));
      const asked = await read(page, `${router}/cat.bin`, { range: "bytes=400000-600000" });
      expect(asked).toMatchObject({ status: 206, sha256: sha256(content.subarray(400_000, 600_001)) });
      const kept = await page.evaluate(
        async (path) => (await caches.match(path)) !== undefined,
        `/ec/${router}/cat.bin`,
      );
      expect(kept).toBe(false);
    });

    test("a read that fails is answered with its code, and not by the router's own handler", async ({
      openUnderWorker,
    }) => {
      const page = await openUnderWorker(router);
      const answer = await read(page, "no such object");
      expect(answer.status).toBe(404);
      expect(answer.headers["x-agarose-error"]).toBe("OBJECT_NOT_FOUND");
    });

    test("the page registers it, preloads objects and purges them", async ({ openUnderWorker, putRandom, world }) => {
      const key = `${router}/preloaded.bin`;
      await putRandom(key, 10_000);
      const page = await openUnderWorker(router);
      const planFrom = async (): Promise<string | undefined> =>
        /plan;desc="(\w+) plan"/.exec((await read(page, key)).headers["server-timing"] ?? "")?.[1];
      await page.evaluate(async (wanted) => {
        const handle = await (globalThis as unknown as InPage).agarose.register({ worker: "/worker.js" });
        Object.assign(globalThis, { handle });
        await handle.preload([wanted]);
      }, key);
      expect((await world.log()).some(({ path }) => path.includes("/v1/plans?"))).toBe(true);
      expect(await planFrom()).toBe("known");
      await page.evaluate((prefix) => (globalThis as unknown as InPage).handle.purge({ prefix }), `${router}/`);
      expect(await planFrom()).toBe("edge");
      const failure = await page.evaluate(async () => {
        const { handle } = globalThis as unknown as InPage;
        const error: unknown = await handle.preload(["no such object"]).catch((reason: unknown) => reason);
        return (error as { readonly code?: string } | undefined)?.code;
      });
      expect(failure).toBe("OBJECT_NOT_FOUND");
    });

    test("requests outside of its route are not its own", async ({ openUnderWorker }) => {
      const page = await openUnderWorker(router);
      const answer = await page.evaluate(async () => {
        const { status, headers } = await fetch("/agarose.json");
        return [status, headers.has("x-agarose-read")];
      });
      expect(answer).toEqual([200, false]);
    });
  });
}
