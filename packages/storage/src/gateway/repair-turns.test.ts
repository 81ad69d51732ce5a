/** Repairs of what a gateway's own puts have queued: their turns, and over real S3 endpoints with a region down. */
import { systemClock, type Clock } from "@agarose/core";
import { CHUNK_PREFIX } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { allOf, KEYS, startThreeRegions, type ThreeRegions } from "../../test/three-regions.ts";
import { S3Store } from "../buckets/s3-store.ts";
import { configOfFields } from "../config/config.ts";
import { REPAIR_PREFIX } from "../commit/names.ts";
import { closeParts, openParts } from "../parts.ts";
import { startGateway } from "./gateway.ts";
import { RepairTurns } from "./repair-turns.ts";

/** A clock whose waits end when the test says so. */
function startWaits() {
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const after: Clock["after"] = (ms, end) => {
    const wait = { ms, end };
    waits.push(wait);
    return () => void waits.splice(waits.indexOf(wait), 1);
  };
  return {
    clock: { ...systemClock, after },
    /** Ends the next wait, and returns how long it is. */
    async pass(): Promise<number> {
      await vi.waitFor(() => expect(waits).not.toEqual([]));
      const { ms, end } = waits.shift()!;
      end();
      return ms;
    },
    waits,
  };
}

test("keys have their turns one after the other, and pauses between", async () => {
  const { clock, pass, waits } = startWaits();
  const done: string[] = [];
  let atOnce = 0;
  const turns = new RepairTurns(clock, async (key) => {
    expect(++atOnce, "one at a time").toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    atOnce--;
    done.push(key);
    return true;
  });
  for (const key of ["a", "b", "a", "c"]) turns.add(key);
  expect(await pass(), "regions get a moment").toBe(20_000);
  expect([await pass(), await pass()]).toEqual([250, 250]);
  await vi.waitFor(() => expect(done).toEqual(["a", "b", "c"]));
  turns.add("d");
  expect(await pass()).toBe(20_000);
  await vi.waitFor(() => expect(done).toEqual(["a", "b", "c", "d"]));
  expect(waits).toEqual([]);
  await turns.close();
});

test("a key that is queued again during its repair has another one after that", async () => {
  const { clock, pass } = startWaits();
  const ends: ((isWhole: boolean) => void)[] = [];
  const turns = new RepairTurns(clock, () => new Promise((resolve) => ends.push(resolve)));
  turns.add("a");
  await pass();
  await vi.waitFor(() => expect(ends).toHaveLength(1));
  turns.add("a");
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(ends, "not at once").toHaveLength(1);
  ends[0]!(true);
  await pass();
  await vi.waitFor(() => expect(ends).toHaveLength(2));
  ends[1]!(true);
  await turns.close();
});

test("what fails is tried again, behind the others and ever later", async () => {
  const { clock, pass } = startWaits();
  const tried: string[] = [];
  let isUp = false;
  const turns = new RepairTurns(clock, async (key) => {
    tried.push(key);
    return isUp;
  });
  turns.add("a");
  turns.add("b");
  const waited: number[] = [];
  for (let at = 0; at < 8; at++) waited.push(await pass());
  expect(waited).toEqual([20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000, 600_000]);
  isUp = true;
  expect([await pass(), await pass()]).toEqual([600_000, 250]);
  await vi.waitFor(() => expect(tried.join("")).toBe("ababababab"));
  await turns.close();
});

test("closing stops the repair that runs, and what comes later is left", async () => {
  const { clock, pass, waits } = startWaits();
  let stopped = false;
  const turns = new RepairTurns(clock, async (_key, signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stopped = true;
    throw signal.reason;
  });
  turns.add("a");
  turns.add("b");
  await pass();
  await turns.close();
  expect(stopped).toBe(true);
  turns.add("c");
  expect(waits).toEqual([]);
});

let world: ThreeRegions;
beforeEach(async () => {
  world = await startThreeRegions();
});
afterEach(() => world.close());

test.each(["repairs", "leaves"])("a gateway that %s what its puts queue, with a region down", async (what) => {
  const waits = startWaits();
  // Nothing else waits for so long.
  const after: Clock["after"] = (ms, end) => ([20_000, 40_000].includes(ms) ? waits.clock : systemClock).after(ms, end);
  const config = configOfFields(world.config, "test");
  const context = openParts(config, { attempts: 1 }, new AbortController().signal, {
    clock: { ...systemClock, after },
  });
  const repaired: string[] = [];
  const onRepaired = ({ key }: { readonly key: string }): void => void repaired.push(key);
  const listening = { port: 0, host: "127.0.0.1", spoolBytes: 2 ** 20 };
  const gateway = await startGateway({
    ...listening,
    pairs: [KEYS],
    context,
    ...(what === "repairs" && { onRepaired }),
  });
  const bucket = { ...config.regions[0]!, endpoint: gateway.url, bucket: "agarose" };
  const client = new S3Store(bucket, { credentials: KEYS, attempts: 1 });
  const tokyo = context.stores.find(({ region }) => region.name === "tokyo")!;
  const chunks = () => allOf(tokyo.list(`${CHUNK_PREFIX}film!`));
  const body = new Uint8Array(50_000).fill(7);
  try {
    world.down.add("tokyo");
    await client.put("film", body, { bytes: body.length, contentType: "video/mp4" });
    await client.put("gone", body, { bytes: body.length, contentType: "video/mp4" });
    await client.remove(["gone"]);
    expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
    if (what === "leaves") {
      world.down.clear();
      expect(waits.waits).toEqual([]);
      return;
    }
    const before = world.refused.requests;
    expect(await waits.pass()).toBe(20_000);
    await vi.waitFor(() => expect(world.refused.requests, "it is down still").toBeGreaterThan(before));
    await vi.waitFor(() => expect(waits.waits).toMatchObject([{ ms: 40_000 }]));
    expect(repaired).toEqual([]);
    world.down.clear();
    expect(await chunks()).toEqual([]);
    await waits.pass();
    await vi.waitFor(() => expect(repaired.toSorted()).toEqual(["film", "gone"]), { timeout: 10_000 });
    expect(await chunks()).toHaveLength(1);
    const queued = await Promise.all(context.stores.map((region) => allOf(region.list(REPAIR_PREFIX))));
    expect(queued.flat(), "nothing is queued any more").toEqual([]);
  } finally {
    client.close();
    await gateway.close(0);
    closeParts(context);
  }
});
