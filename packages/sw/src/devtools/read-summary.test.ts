/** The summary of a read's events for the log and the overlay. */
import { describe, expect, test } from "vitest";
import type { ReadEvent } from "../events/read-events.ts";
import { described, savedBytes, sharesOf, summarized, type ReadSummary } from "./read-summary.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const KEY = "photos/cat.jpg";

/** Reads KEY with chunks `cached` at the PoP and folds the events of the read. */
async function readAndFold(cached: number[], fault = false): Promise<ReadSummary> {
  const world = new FakeWorld();
  world.put(KEY, sampleBytes(10_000));
  world.pops[0]!.cached = cached;
  if (fault) for (const region of world.regions) region.fault = "down";
  const client = world.client();
  const reading = client.answer({ key: KEY, method: "GET", headers: new Headers({ range: "bytes=0-8191" }) });
  const body = reading.then(({ body: stream }) =>
    new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
  );
  await world.clock.settle(body.catch(() => {}));
  await world.clock.pass(0);
  return fold(world.events)!;
}

function fold(events: readonly ReadEvent[]): ReadSummary | undefined {
  return events.reduce<ReadSummary | undefined>(summarized, undefined);
}

describe("a read in one line", () => {
  test("says how it was served, in what time, and by whom", async () => {
    const summary = await readAndFold([0, 1]);
    expect(described(summary)).toMatch(
      /^photos\/cat\.jpg \[bytes=0-8191\] 206 mixed, 8\.2 kB in \d+ ms \(first byte \d+ ms\): .*edge p0 \d/,
    );
  });

  test("says why it failed, and until it ends that it is under way", async () => {
    const failed = await readAndFold([], true);
    expect(described(failed)).toMatch(/ failed with NOT_ENOUGH_CHUNKS after \d+ ms$/);
    const { end: _end, ...open } = failed;
    expect(described(open)).toBe("photos/cat.jpg [bytes=0-8191] is being read");
  });
});

test("saved is what the edge sent of the bytes used, and all of an object that was kept", async () => {
  const summary = await readAndFold([0, 1]);
  const edge = sharesOf(summary).find(({ kind }) => kind === "edge")!;
  expect(edge).toMatchObject({ source: "p0", bytes: 1024 * edge.chunks });
  expect(savedBytes(summary)).toBe(edge.bytes);
  const none = await readAndFold([]);
  expect(savedBytes(none)).toBe(0);
  expect(savedBytes({ ...none, end: { ...none.end!, kind: "stored" } })).toBe(8192);
});

test("events of a read whose beginning was missed are left out", async () => {
  const { requests } = await readAndFold([]);
  expect(summarized(undefined, requests[0]!)).toBeUndefined();
});
