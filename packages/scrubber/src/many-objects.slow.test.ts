/** 100,000 objects in workerd, with so few steps to a Workflow that many have to share the walk. */
import { afterEach, expect, test } from "vitest";
import { startListedBuckets } from "../test/listed-buckets.ts";
import { REGIONS, startScrubberWorld, type ScrubberWorld } from "../test/scrubber-world.ts";
import { walkRequests } from "../test/walk-costs.ts";

const OBJECTS = 100_000;
const OBJECTS_PER_PART = 5_000;
const regions = REGIONS.slice(0, 3);

let world: ScrubberWorld;
afterEach(() => world.close());

test("four steps to a Workflow: each object is looked at once, by about as many requests as computed", async () => {
  const buckets = await startListedBuckets(OBJECTS, regions, { k: 2, m: 1 });
  const options = { objectsPerPart: OBJECTS_PER_PART, concurrency: 2 };
  world = await startScrubberWorld({ buckets, regions: 3, options, stepLimit: 4 });
  const { totals, ranges, running, parents, errors } = await world.walkedBySchedule();

  expect(totals).toMatchObject({ objects: OBJECTS, repaired: 0, damaged: 0, failed: 0, unchecked: 0 });
  expect([ranges > 4, running, parents > 1]).toEqual([true, 2, true]);
  expect(errors).toContain("The limit of 4 steps has been reached");
  const { lists } = walkRequests({ objects: OBJECTS, objectsPerPart: OBJECTS_PER_PART, regions: 3, ranges });
  expect(Math.abs(buckets.requests().lists / lists - 1)).toBeLessThan(0.2);
});
