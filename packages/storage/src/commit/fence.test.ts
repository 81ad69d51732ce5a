/** How long a look at the control records counts, and who waits for the next one. */
import { acceptUnsigned } from "@agarose/core/format";
import { SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import type { Store } from "../buckets/store.ts";
import { Breaker } from "../regions/ask-regions.ts";
import { Fence, LEASE_MS, type FenceContext } from "./fence.ts";

/** A fence over three regions, each of which answers a look at once, or never. */
function openFence() {
  const clock = new SimulatedClock();
  const seen = { looks: 0, isSilent: false };
  const region = (name: string): Store => {
    const get = (): Promise<Response> => {
      if (name === "r0") seen.looks++;
      const record = { control: 1, region: name, deployment: "0".repeat(32), epoch: 1, signers: [], retired: [] };
      if (seen.isSilent) return new Promise(() => {});
      return Promise.resolve(new Response(JSON.stringify({ ...record, secrets: [] })));
    };
    return { region: { name }, get } as unknown as Store;
  };
  const { signal } = new AbortController();
  const context = { config: {}, stores: ["r0", "r1", "r2"].map(region), signal, clock, trust: acceptUnsigned };
  const fence = new Fence({ ...context, breaker: new Breaker(clock) } as unknown as FenceContext);
  return { clock, seen, fence };
}

test("the next look begins while the last one counts, so that a writer waits for the first only", async () => {
  const { clock, seen, fence } = openFence();
  await fence.check();
  seen.isSilent = true;
  await clock.advance(LEASE_MS - 1);
  await fence.check();
  expect(seen.looks).toBe(2);
});

test("a look that began longer ago counts no more, whether or not the next one has ended", async () => {
  const { clock, seen, fence } = openFence();
  await fence.check();
  seen.isSilent = true;
  await clock.advance(LEASE_MS - 1);
  await fence.check();
  await clock.advance(2);
  let isAllowed = false;
  const checked = fence.check().then(
    () => void (isAllowed = true),
    (error: unknown) => error,
  );
  await clock.advance(LEASE_MS - 3);
  expect(isAllowed).toBe(false);
  await clock.advance(60_000);
  expect(await checked).toMatchObject({ code: "NO_QUORUM" });
  seen.isSilent = false;
  await clock.advance(60_000);
  await fence.check();
});

test("many writers share one look", async () => {
  const { clock, seen, fence } = openFence();
  await Promise.all(Array.from({ length: 20 }, () => fence.check()));
  await clock.advance(LEASE_MS - 1);
  await Promise.all(Array.from({ length: 20 }, () => fence.check()));
  expect(seen.looks).toBe(2);
});
