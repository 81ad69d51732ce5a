/**
 * Cases that `bench --live` refuses before it stores anything. `e2e/world/bench-live.slow.spec.ts` has the measurement.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorld, type World } from "../../../../test/world.ts";

let world: World;
beforeAll(async () => {
  world = await startTestWorld();
});
afterAll(() => world.close());

async function bench(pops: readonly object[], ...args: string[]) {
  const path = join(world.dir, "live.json");
  await writeFile(path, JSON.stringify({ regions: world.config.regions, code: { k: 4, m: 2 }, unsigned: true, pops }));
  const { code, stderr } = await world.run(["bench", "--live", "--config", path, ...args]);
  return { code, stderr };
}

const POP = { name: "fra", url: "http://127.0.0.1:9" };

test.each([
  ["a configuration without a PoP", [], [], /0 pops and at least 1 is needed/],
  ["objects below the smallest size", [POP], ["--largest", "1000"], /--largest 1000 leaves no size/],
  ["a machine without a browser", [POP], ["--chromium", "/nowhere"], /there is no browser to measure with/],
  ["a duration that is none", [POP], ["--wait", "soon"], /--wait soon must be 0s or more/],
])("%s is refused, and nothing is stored", async (_name, pops, args, message) => {
  const { code, stderr } = await bench(pops, ...args);
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
  expect(await world.names("")).toEqual([]);
});
