/** Readers of the same blocks that leave, and come back. */
import { expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { ReadWorld } from "../../test/read-world.ts";
import { BlockMemory } from "./block-memory.ts";

const object = await sampleObject({ k: 4, m: 2, stripeBytes: 1_400_000, bytes: 1_400_000, leaves: true });
/** In one block. */
const range = { start: 70_000, end: 71_000 };
const content = object.bytes.subarray(range.start, range.end);
/** A read requests one block and the leaf list, which come after 100 ms. */
const REQUESTS = 2;

/** Regions, and readers that share a memory. */
function readers() {
  const world = new ReadWorld(object);
  const memory = new BlockMemory(1_000_000, world.clock);
  const signals = () => world.sources.flatMap(({ requests }) => requests.map(({ signal }) => signal));
  return {
    world,
    /** Begins to read, until `leave` is called. */
    begin() {
      const abort = new AbortController();
      const read = world.open({ memory, range, delta: 0, signal: abort.signal });
      const bytes = read.then(async ({ body }) => new Uint8Array(await new Response(body).arrayBuffer()));
      bytes.catch(() => {});
      return { bytes, leave: () => abort.abort() };
    },
    underWay: () => signals().filter(({ aborted }) => !aborted).length,
  };
}

test("a follower requests a block once more when its leader leaves, and gets it", async () => {
  const { world, begin, underWay } = readers();
  const [leader, follower] = [begin(), begin()];
  await world.clock.advance(50);
  expect(world.requests()).toBe(REQUESTS);
  leader.leave();
  expect(await rejectionOf(leader.bytes)).toMatchObject({ code: "ABORTED" });
  expect(await world.clock.run(follower.bytes)).toEqual(content);
  expect([world.clock.now(), world.requests(), underWay()]).toEqual([150, 2 * REQUESTS, REQUESTS]);
  expect(world.clock.pendingTimers).toBe(0);
});

test("a leader that stays is not disturbed by followers that leave, and serves one that comes back", async () => {
  const { world, begin } = readers();
  const [leader, follower] = [begin(), begin()];
  await world.clock.advance(50);
  follower.leave();
  expect(await rejectionOf(follower.bytes)).toMatchObject({ code: "ABORTED" });
  const again = begin();
  for (const { bytes } of [leader, again]) expect(await world.clock.run(bytes)).toEqual(content);
  expect([world.clock.now(), world.requests()]).toEqual([100, REQUESTS]);
  expect(world.clock.pendingTimers).toBe(0);
});

test("nothing stays under way when all leave, and the next one requests the block anew", async () => {
  const { world, begin, underWay } = readers();
  const all = [begin(), begin(), begin()];
  await world.clock.advance(50);
  for (const { leave } of all) leave();
  for (const { bytes } of all) expect(await rejectionOf(bytes)).toMatchObject({ code: "ABORTED" });
  await world.clock.advance(0);
  expect([world.requests(), underWay()]).toEqual([REQUESTS, 0]);
  expect(world.clock.pendingTimers).toBe(0);
  expect(await world.clock.run(begin().bytes)).toEqual(content);
  expect([world.clock.now(), world.requests()]).toEqual([150, 2 * REQUESTS]);
});

test("who leaves when the block has come finds it in memory", async () => {
  const { world, begin } = readers();
  const first = begin();
  await world.clock.run(first.bytes);
  first.leave();
  expect(await world.clock.run(begin().bytes)).toEqual(content);
  expect(world.requests()).toBe(REQUESTS);
});
