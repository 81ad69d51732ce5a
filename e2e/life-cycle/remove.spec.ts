/** The server's own way to end a service worker that browsers have: `agarose init --remove`. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findCli } from "@agarose/dev-world/client";
import { read, registerWorker, sha256 } from "../fixtures/app.ts";
import { startOriginHost, type AppFile } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const WORKER = "/agarose-sw.js?config=/agarose.json";

test("what init --remove writes ends the worker and deletes what it kept, and the open page reads from the network", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("ended", 300_000);
  const files: Record<string, AppFile> = {};
  const host = await startOriginHost(world.app, {}, files);
  const folder = await mkdtemp(join(tmpdir(), "agarose-remove-"));
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await registerWorker(page, WORKER, "classic");
    const before = await read(page, "ended");
    expect(before).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(before.headers["x-agarose-pop"], "the worker answers").toBeUndefined();
    const kept = (): Promise<string[]> => page.evaluate(() => caches.keys());
    const registrations = (): Promise<number> =>
      page.evaluate(() => navigator.serviceWorker.getRegistrations().then(({ length }) => length));
    await expect.poll(kept).toEqual(["agarose"]);
    expect(await registrations()).toBe(1);

    await promisify(execFile)(process.execPath, [findCli(), "init", folder, "--remove"]);
    files[WORKER] = { contentType: "text/javascript", body: await readFile(join(folder, "agarose-sw.js"), "utf8") };
    // A browser looks for an update of the worker when a page is opened.
    await page.reload();
    await expect.poll(registrations).toBe(0);
    await expect.poll(kept).toEqual([]);
    const after = await read(page, "ended");
    expect(after).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(after.headers["x-agarose-pop"], "the network answers").toBe("fra");
  } finally {
    await host.close();
    await rm(folder, { recursive: true, force: true });
  }
});
