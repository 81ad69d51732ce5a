/** A region that has two names while it gets another one: manifests have either. */
import { expect, test } from "vitest";
import { POP, randomBytes, readBundle, readObject, startWorld } from "../../test/world.ts";

const FORMER = "former";
const content = randomBytes(300_000);

test("chunks are read from a bucket under its former name and under the one of now, as manifests have them", async () => {
  const world = await startWorld({}, { formerNames: { r0: FORMER } });
  try {
    await world.put("new", content);
    await world.put("old", content, {
      edit: (manifest) => ({
        ...manifest,
        placement: manifest.placement.map((name) => (name === "r0" ? FORMER : name)),
      }),
    });
    await world.pops.cron(POP);
    // Without two others, every read of a (4, 2) code needs the chunk of the first region.
    for (const name of ["r4", "r5"]) world.buckets.faults.set(name, { down: true });
    for (const [key, name] of [
      ["new", "r0"],
      ["old", FORMER],
    ] as const) {
      expect(Buffer.compare((await readObject(world, key)).bytes, content), key).toBe(0);
      const { plan } = await readBundle(`${world.url}/v1/read/${key}`, key);
      expect(plan.manifest?.placement, key).toContain(name);
      expect(plan.regions.find((region) => region.name === name)?.url, key).toMatch(/\/r0$/);
    }
    expect(world.buckets.fired.get("r4")).toBeGreaterThan(0);
    expect((await fetch(`${world.url}/o/none`)).status, "an object that no bucket has").toBe(404);
  } finally {
    await world.close();
  }
});
