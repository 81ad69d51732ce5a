/** The Cache API where it hangs. No real one does so on time, so this one is a fake. */
import { SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { FrontCache } from "./front-cache.ts";

test("no caller waits for a Cache API that hangs: a read for 200 ms, a change for 30 s", async () => {
  const clock = new SimulatedClock();
  const never = (): Promise<never> => new Promise(() => {});
  const hanging = { match: never, put: never, delete: never } as unknown as Cache;
  const cache = new FrontCache({ pop: "fra", host: () => "fra.example" }, clock, () => hanging);
  const msOf = async (call: Promise<unknown>): Promise<number> => {
    const startMs = clock.now();
    await clock.run(call);
    return clock.now() - startMs;
  };
  expect(await msOf(cache.get("a"))).toBe(200);
  expect(await msOf(cache.put("a", new Uint8Array(1), 60))).toBe(30_000);
  expect(await msOf(cache.delete("a"))).toBe(30_000);
  expect(clock.pendingTimers).toBe(0);
});
