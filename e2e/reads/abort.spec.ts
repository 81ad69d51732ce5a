/** A read that its page gives up while the network is at it. */
import { openControlledApp } from "../fixtures/app.ts";
import { test } from "../fixtures/slow-test.ts";
import { expect } from "../fixtures/test.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

/** Ten stripes: nine transfers of nine seconds. */
const LONG_BYTES = 40_000_000;

/** Requests for chunks since the last reset that ended, or have not ended, in one way. */
async function chunkRequests(world: LocalWorld, outcome?: string): Promise<number> {
  const gets = (await world.log()).filter(({ method, path }) => method === "GET" && path.includes("/chunks/"));
  return gets.filter((record) => outcome === undefined || record.outcome === outcome).length;
}

test("a page that aborts its read ends the requests to the buckets that are under way, and no more are made", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("aborted", LONG_BYTES);
  const page = await openControlledApp(context, world);
  await world.reset();
  await page.evaluate(async () => {
    const abort = new AbortController();
    const response = await fetch("/ec/aborted", { signal: abort.signal });
    const reader = response.body!.getReader();
    await reader.read();
    Object.assign(globalThis, { life: { abort, reader } });
  });
  expect(await chunkRequests(world, "pending")).toBeGreaterThan(0);
  const error = await page.evaluate(async () => {
    const { abort, reader } = (
      globalThis as unknown as { life: { abort: AbortController; reader: ReadableStreamDefaultReader } }
    ).life;
    abort.abort();
    return reader.read().then(
      () => "went on",
      (cause: Error) => cause.name,
    );
  });
  expect(error).toBe("AbortError");
  await expect.poll(() => chunkRequests(world, "pending")).toBe(0);
  expect(await chunkRequests(world, "aborted")).toBeGreaterThan(0);
  const asked = await chunkRequests(world);
  await page.waitForTimeout(500);
  expect(await chunkRequests(world)).toBe(asked);
});
