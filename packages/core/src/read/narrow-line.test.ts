/** The spare chunk of a read, and the line that all chunks share. */
import { expect, test } from "vitest";
import { ReadWorld } from "../../test/read-world.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { Line } from "./line.ts";

const object = await sampleObject({ k: 4, m: 2, bytes: 100_000, stripeBytes: 100_000 });

/** Reads the object with delta 1 over a line of so many bytes per millisecond, or one that is not measured yet. */
async function requestsOver(rate?: number): Promise<number> {
  const world = new ReadWorld(object);
  const { clock } = world;
  const line = new Line(clock);
  if (rate !== undefined) {
    const before = line.begin("before", 100 * rate);
    for (let turn = 0; turn < 100; turn++) {
      await clock.run(clock.sleep(1));
      before.received(rate, 0);
    }
    before.end();
    expect(line.rate).toBeCloseTo(rate, -2);
  }
  expect(await world.read({ line, delta: 1 })).toEqual(object.bytes);
  return world.requests();
}

test("a read asks for no spare chunk where the line is known to be what it waits for", async () => {
  expect(await requestsOver(250)).toBe(4);
  expect(await requestsOver(25_000)).toBe(5);
});

test("a read asks for a spare chunk before the line is measured", async () => {
  expect(await requestsOver()).toBe(5);
});
