/** Reads that their page gives up while a part of them arrives. */
import type { Page } from "@playwright/test";
import { openControlledApp } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

/** The error codes of the reads that `work` makes in the page, by how many reads ended with them. */
async function endsOf(page: Page, work: () => Promise<void>): Promise<Record<string, number>> {
  await page.evaluate(() => {
    const ends: Record<string, number> = {};
    Object.assign(globalThis, { ends });
    new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
      for (const { type, error } of data) if (type === "read-end") ends[error] = (ends[error] ?? 0) + 1;
    });
  });
  await work();
  await page.waitForTimeout(1000);
  return page.evaluate(() => (globalThis as unknown as { ends: Record<string, number> }).ends);
}

for (const how of ["cancels the body", "aborts", "aborts for a reason of its own"]) {
  test(`a page that ${how} while parts arrive has ABORTED reads, and none that is a defect`, async ({
    context,
    world,
    putRandom,
  }) => {
    await putRandom("given-up", 20_000_000);
    await world.client.throttle(200);
    const page = await openControlledApp(context, world);
    const ends = await endsOf(page, () =>
      page.evaluate(async (way) => {
        for (let read = 0; read < 40; read++) {
          const abort = new AbortController();
          const response = await fetch(`/ec/given-up?${read}`, { signal: abort.signal });
          const reader = response.body!.getReader();
          await reader.read();
          // At different moments of the arrival of a stripe.
          await new Promise((resolve) => setTimeout(resolve, read));
          if (way === "cancels the body") await reader.cancel();
          else abort.abort(way === "aborts" ? undefined : "the user has gone on");
          await reader.closed.catch(() => {});
        }
      }, how),
    );
    await world.client.throttle(0);
    expect(ends["ABORTED"], "reads that were given up").toBeGreaterThan(20);
    expect(Object.keys(ends).filter((code) => code !== "ABORTED" && code !== "undefined")).toEqual([]);
  });
}
