/** Callers and consumers that leave, and the requests that end with them. */
import { describe, expect, test } from "vitest";
import { popId } from "./latency-tracker.ts";
import { sampleBytes } from "../../test/fake-world.ts";
import { KEY, request, read, failure, startWorld } from "../../test/world-reads.ts";

describe("an abort by the caller", () => {
  test("before the first byte ends every request and rejects with ABORTED", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4];
    await read(world, client);
    world.log.length = 0;
    const caller = new AbortController();
    const answer = client.answer(request({}, "GET", KEY, caller.signal));
    world.clock.after(5, () => caller.abort());
    expect((await failure(world, answer)).code).toBe("ABORTED");
    await world.clock.pass(1);
    expect(world.requests().length).toBeGreaterThan(4);
    expect(world.requests().filter(({ aborted }) => !aborted)).toEqual([]);
    expect(world.events.at(-1)).toMatchObject({ type: "read-end", error: "ABORTED" });
  });

  test("of a body cancels what is under way, the bundle included", async () => {
    const { world, client } = await startWorld();
    world.pops[0]!.cached = [4];
    const long = sampleBytes(64 * 1024);
    world.put("long", long);
    let over = false;
    const { body } = await world.clock.settle(client.answer(request({}, "GET", "long"), () => void (over = true)));
    const reader = body!.getReader();
    await world.clock.settle(reader.read());
    expect(over).toBe(false);
    await reader.cancel();
    await world.clock.pass(1);
    expect(over).toBe(true);
    expect(world.events.at(-1)).toMatchObject({ type: "read-end", error: "ABORTED" });
    expect(world.openBundles).toBe(0);
  });

  test("of a body aborts every request within 50 ms, though neither a region nor the PoP has answered", async () => {
    const { world, client } = await startWorld();
    world.put("long", sampleBytes(256 * 1024));
    await read(world, client, {}, "long");
    world.pops[0]!.fault = "silent";
    world.regions[1]!.delayMs = 60_000;
    world.log.length = 0;
    const { body } = await world.clock.settle(client.answer(request({}, "GET", "long")));
    const reader = body!.getReader();
    await world.clock.settle(reader.read());
    // The GETs of five chunks bring the further stripes, and r1 has not begun.
    expect(world.requests().map(({ to, aborted }) => [to, aborted])).toEqual(
      ["p0", "r0", "r1", "r2", "r3", "r4", "r5"].map((to) => [to, false]),
    );
    await reader.cancel();
    await world.clock.pass(50);
    expect(world.requests().filter(({ aborted }) => !aborted)).toEqual([]);
    await world.clock.pass(1_000);
    expect(client.latencies.isAvoided(popId("p0")), "the PoP had time left").toBe(false);
  });

  test("of a body after the PoP was due counts the PoP as late", async () => {
    const { world, client } = await startWorld();
    world.put("long", sampleBytes(256 * 1024));
    await read(world, client, {}, "long");
    world.pops[0]!.fault = "silent";
    const { body } = await world.clock.settle(client.answer(request({}, "GET", "long")));
    const reader = body!.getReader();
    await world.clock.settle(reader.read());
    await world.clock.pass(10_000);
    await reader.cancel();
    await world.clock.pass(50);
    expect(world.requests().filter(({ to, aborted }) => to === "p0" && aborted)).toHaveLength(1);
    expect(client.latencies.isAvoided(popId("p0"))).toBe(true);
  });

  test("of a body aborts the call for new signatures, which a region waits for", async () => {
    const { world, client } = await startWorld();
    world.put("long", sampleBytes(256 * 1024));
    // A client replaces them 20 seconds before they expire.
    world.pops[0]!.signedSeconds = 21;
    const { body } = await world.clock.settle(client.answer(request({}, "GET", "long")));
    const reader = body!.getReader();
    await world.clock.settle(reader.read());
    await world.clock.pass(2_000);
    world.pops[0]!.fault = "silent";
    for (const region of world.regions.slice(0, 2)) region.fault = "down";
    world.log.length = 0;
    const reading = (async () => {
      while (!(await reader.read()).done);
    })();
    await world.clock.pass(50);
    expect(world.requests().map(({ to, aborted }) => [to, aborted])).toEqual([["p0", false]]);
    await reader.cancel();
    await reading;
    await world.clock.pass(50);
    expect(world.requests().map(({ to, aborted }) => [to, aborted])).toEqual([["p0", true]]);
  });
});
