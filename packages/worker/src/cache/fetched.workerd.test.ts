/** Fills on access (Agar, section III; Sprout, section III): what reads have fetched, the next period does not. */
import { afterEach, expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
afterEach(() => world.close());

const content = randomBytes(200_000);
/** Room for two of four chunks of the content. */
const HALF = "110000";

async function chunksFetchedByPeriod(): Promise<number> {
  world.buckets.requests.length = 0;
  await world.pops.cron(POP);
  return world.buckets.requests.filter(({ name }) => name.startsWith("chunks/")).length;
}

test.each(["true", "false"])(
  "a period after two reads fills the cache and fetches no chunk (FUNCTIONAL %s)",
  async (FUNCTIONAL) => {
    world = await startWorld({ FUNCTIONAL, CACHE_BYTES: HALF });
    await world.put("page", content);
    for (let i = 0; i < 2; i++) await readObject(world, "page");
    expect(await chunksFetchedByPeriod()).toBe(0);
    const { lastPeriod, cache } = await world.status();
    expect(lastPeriod).toMatchObject({
      errors: [],
      written: 4,
      reconstructed: 0,
      fetchedBytes: 0,
      filledBytes: content.length / 2,
    });
    expect(cache.objects[0]!.chunks).toHaveLength(2);
    expect(await readObject(world, "page")).toEqual({ kind: "mixed", bytes: content });
    const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
    expect(frames.filter(({ type }) => type === "chunk")).toHaveLength(8);
  },
);

test("what is read once is not kept: the period fetches it", async () => {
  world = await startWorld({ CACHE_BYTES: HALF });
  await world.put("page", content);
  await readObject(world, "page");
  expect(await chunksFetchedByPeriod()).toBe(16);
  expect((await world.status()).lastPeriod).toMatchObject({ errors: [], fetchedBytes: content.length });
});
