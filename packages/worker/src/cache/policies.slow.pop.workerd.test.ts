import { afterEach, expect, test } from "vitest";
import { POP, randomBytes, readObject, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
const content = randomBytes(200_000);

afterEach(() => world.close());

test.each(["adaptive", "agar", "exact", "online", "lfu", "lru", "sprout"])(
  "policy %s caches what is asked for, and knows it from period to period",
  async (policy) => {
    world = await startWorld({ POLICY: policy, CACHE_BYTES: "210000" });
    await world.put("rare", randomBytes(200_000, 3));
    await world.put("page", content);
    for (const key of ["rare", "page", "page", "page", "page"]) await readObject(world, key);
    await world.pops.cron(POP);
    expect((await world.status()).lastPeriod).toMatchObject({ errors: [] });
    for (let i = 0; i < 3; i++) await readObject(world, "page");
    await world.pops.cron(POP);
    const { cache, lastPeriod } = await world.status();
    expect(lastPeriod).toMatchObject({ errors: [] });
    expect(cache.objects.map(({ key }) => key)).toContain("page");
    expect(cache.cachedBytes).toBeLessThanOrEqual(210_000);
    expect((await readObject(world, "page")).bytes).toEqual(content);
  },
);
