import { randomBytes } from "node:crypto";
import { spread, survives, type PlacementRegion } from "@agarose/core/format";
import { WEB_SIZES } from "@agarose/solver/codes-by-size";
import { seededRandom } from "@agarose/solver/random";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";
import type { Config } from "@agarose/storage/config/config";
import { chooseCodes, layoutOf } from "@agarose/storage/layout/object-layout";
import { readManifest } from "@agarose/storage/objects/manifests";

let world: World;
let auto: Config;

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 4_194_304 });
  auto = { ...world.config, code: "auto", survive: { regions: 1, providers: 1 } };
});
afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});
afterAll(() => world.close());

const manifestOf = (key: string) => readManifest(key, world.parts());

describe("code auto", () => {
  test("stores an object of at most 16 KiB in its manifest alone, and reads, verifies and replaces it", async () => {
    for (const bytes of [0, 1, 16_384]) {
      const body = randomBytes(bytes);
      await world.put("inline", body, { config: auto });
      expect(await manifestOf("inline")).toMatchObject({ k: 1, m: 0, placement: [], requires: ["inline"] });
      expect((await world.get("inline")).equals(body)).toBe(true);
      expect(await world.verify("inline")).toMatchObject({ sound: true, readable: true, chunks: 0 });
      expect(await world.put("inline", body, { config: auto })).toMatchObject({ outcome: "unchanged" });
    }
    expect((await world.get("inline", { start: 100, end: 200 })).length).toBe(100);
    expect(await world.names("chunks/inline!")).toEqual([]);
  });

  test("stores a small object as whole copies in different providers, one more than may be lost", async () => {
    const body = randomBytes(16_385);
    await world.put("copies", body, { config: auto });
    const manifest = await manifestOf("copies");
    expect(manifest).toMatchObject({ k: 1, m: 1 });
    expect(new Set(manifest.placement).size).toBe(2);
    for (const region of manifest.placement) {
      const stored = await world.read(region, `chunks/copies!${manifest.upload}/${manifest.placement.indexOf(region)}`);
      expect(stored.equals(body)).toBe(true);
    }
    expect(await world.verify("copies")).toMatchObject({ sound: true, chunks: 2 });
  });

  test("gives up the chunks of an object that becomes inline, and those of one that no longer is", async () => {
    await world.put("shrinks", randomBytes(100_000), { config: auto });
    expect(await world.names("chunks/shrinks!")).not.toEqual([]);
    await world.put("shrinks", randomBytes(100), { config: auto });
    const { stdout } = await world.run(["gc", "--json"]);
    expect(JSON.parse(stdout.toString()).uploads).toMatchObject([{ key: "shrinks" }]);
    await world.put("shrinks", randomBytes(200_000), { config: auto });
    expect(await world.verify("shrinks")).toMatchObject({ sound: true });
  });

  test("survives what the configuration promises, for every size, whatever is lost (seed 3)", async () => {
    const random = seededRandom(3);
    const pairs = REGIONS.flatMap((one, i) => REGIONS.slice(i + 1).map((other) => [one, other]));
    for (const [regions, losses] of [
      [1, REGIONS.map((name) => [name])],
      [2, pairs],
    ] as const) {
      const config = { ...auto, survive: { regions, providers: regions } };
      for (const bytes of [9, 16_384, 16_385, 60_000, 150_000, 400_000, 1_500_000]) {
        const body = Buffer.alloc(bytes, random.integer(256));
        const key = `survive/${regions}/${bytes}`;
        await world.put(key, body, { config });
        for (const lost of bytes > 100_000 ? [losses[random.integer(losses.length)]!] : losses) {
          for (const region of lost) world.faults.set(region, DOWN);
          expect((await world.get(key)).equals(body), `seed 3: ${key} without ${lost.join()}`).toBe(true);
          world.faults.clear();
        }
      }
    }
    expect([...world.fired.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(20);
  });

  test("keeps the promise for random regions, providers and keys, or refuses it (seed 11)", () => {
    const random = seededRandom(11);
    let kept = 0;
    for (let round = 0; round < 40; round++) {
      const count = 1 + random.integer(8);
      const regions = Array.from({ length: count }, (_, i): PlacementRegion => ({
        name: `r${i}`,
        provider: `p${random.integer(4)}`,
        ...(random.next() < 0.5 && { latencyMs: 1 + 300 * random.next() }),
      }));
      const survive = { regions: random.integer(3), providers: random.integer(2) };
      const config = { ...auto, regions, survive } as unknown as Config;
      const what = `seed 11, round ${round}: ${JSON.stringify({ regions, survive })}`;
      try {
        const { codes } = chooseCodes({ regions, survive });
        for (const { bytes } of WEB_SIZES) {
          const { k, m, placement, inline } = layoutOf(config, `key-${random.integer(1e6)}`, bytes);
          if (inline) continue;
          const actual = survives({ k, m }, placement, regions);
          expect(actual.regions, what).toBeGreaterThanOrEqual(survive.regions);
          expect(actual.providers, what).toBeGreaterThanOrEqual(survive.providers);
        }
        expect(codes.length).toBeGreaterThan(0);
        kept++;
      } catch (error) {
        expect(error, what).toMatchObject({ code: "LAYOUT_UNSAFE" });
      }
    }
    expect(kept).toBeGreaterThan(20);
  });

  test("spreads copies over the regions by key, and prefers near ones where latencies are known", () => {
    const regions = REGIONS.map((name) => ({ name, provider: name }));
    const used = Array.from({ length: 300 }, (_, i) => spread({ k: 1, m: 1 }, regions, `photo-${i}.jpg`));
    for (const name of REGIONS) {
      const share = used.filter((placement) => placement.includes(name)).length / used.length;
      expect(share, name).toBeGreaterThan(0.2);
      expect(share, name).toBeLessThan(0.5);
    }
    const measured = regions.map((region, i) => ({ ...region, latencyMs: 10 * (6 - i) }));
    expect(spread({ k: 1, m: 1 }, measured, "any")).toEqual(["sydney", "tokyo"]);
  });

  test("takes at most 1.45 times the bytes of a usual site, everything stored counted", async () => {
    const site = await startTestWorld({ stripeBytes: 4_194_304 });
    try {
      const config: Config = { ...site.config, code: "auto", survive: { regions: 1, providers: 1 } };
      // One in a hundred of its 10,000 images, each for the hundred of about its size; and one clip.
      const sizes: number[] = [];
      let seen = 0;
      for (const { bytes, count } of WEB_SIZES) {
        for (seen += count; seen >= 100; seen -= 100) sizes.push(bytes);
      }
      expect(sizes.length).toBeGreaterThan(99);
      expect(Math.max(...sizes)).toBeGreaterThan(10e6);
      for (const [i, bytes] of sizes.entries()) await site.put(`site/${i}`, randomBytes(bytes), { config });
      let stored = 0;
      for (const store of site.stores) for await (const { bytes } of store.list("")) stored += bytes;
      const data = sizes.reduce((sum, bytes) => sum + bytes, 0);
      expect(stored / data).toBeLessThanOrEqual(1.45);
      expect(stored / data).toBeGreaterThan(1.2);
    } finally {
      await site.close();
    }
  });
});

describe("codes of the configuration", () => {
  test("an explicit code holds for every size", async () => {
    const config = { ...world.config, code: { k: 4, m: 2 } };
    await world.put("explicit", randomBytes(10), { config });
    expect(await manifestOf("explicit")).toMatchObject({ k: 4, m: 2, placement: [...REGIONS] });
    expect(await manifestOf("explicit")).not.toHaveProperty("inline");
  });

  test("the first rule that fits prefix and size decides", () => {
    const rules = [
      { prefix: "video/", code: { k: 4, m: 2 } },
      { bytesMax: 1000, code: { k: 1, m: 2 } },
      { prefix: "map/", bytesMax: 1e6, code: "auto" as const },
    ];
    const config: Config = { ...world.config, code: { k: 2, m: 2 }, codes: rules };
    const codeOf = (key: string, bytes: number): string => {
      const { k, m, inline } = layoutOf(config, key, bytes);
      return inline ? "inline" : `${k}+${m}`;
    };
    expect(codeOf("video/a", 10)).toBe("4+2");
    expect(codeOf("photo", 1000)).toBe("1+2");
    expect(codeOf("map/a", 1001)).toBe("inline");
    expect(codeOf("map/a", 2e6)).toBe("2+2");
    expect(codeOf("photo", 1001)).toBe("2+2");
  });

  test("stripes below 16 KiB make whole copies of what would be inline", () => {
    expect(layoutOf({ ...auto, stripeBytes: 100 }, "a", 101)).toMatchObject({ inline: false, k: 1, m: 1 });
    expect(layoutOf({ ...auto, stripeBytes: 100 }, "a", 100)).toMatchObject({ inline: true });
  });
});
