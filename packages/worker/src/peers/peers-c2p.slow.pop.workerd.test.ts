/** `POLICY=c2p` at real PoPs, through real cron and reads. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPeersWorld, type PeersWorld } from "../../test/peers-world.ts";
import { randomBytes } from "../../test/world.ts";

const CONTENT = randomBytes(100_000, 3);
/** Room for one object and a half in each PoP. */
const CACHE_BYTES = String(1.5 * CONTENT.length);

let world: PeersWorld;

async function read(name: "fra" | "lhr", key: string): Promise<void> {
  const response = await fetch(`${world.url(name)}/o/${key}`);
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(CONTENT);
}

async function held(name: "fra" | "lhr"): Promise<Record<string, readonly number[]>> {
  const { cache } = await world.status(name);
  return Object.fromEntries(cache.objects.map(({ key, chunks }) => [key, chunks]));
}

beforeAll(async () => {
  world = await startPeersWorld({ POLICY: "c2p", CACHE_BYTES, FUNCTIONAL: "false" });
});
afterAll(() => world.close());

test("a PoP leaves alone what a peer holds whole, and caches what no peer holds", async () => {
  const { version } = await world.put("shared", CONTENT);
  await world.put("own", CONTENT);
  await world.pops.cron();
  await read("fra", "shared");
  await world.pops.cron();
  expect(Object.keys(await held("fra"))).toEqual(["shared"]);
  await world.reported("lhr", "fra", (chunks) => chunks[version]?.length === 4);
  await read("lhr", "shared");
  await read("lhr", "own");
  await world.pops.cron();
  expect(await held("lhr")).toEqual({ own: [0, 1, 2, 3] });
});

test("of two objects that do not fit, the one stays of which the caches together hold all", async () => {
  await world.put("new", CONTENT);
  await read("fra", "new");
  await world.pops.cron();
  const cached = await held("fra");
  expect(Object.keys(cached)).toContain("new");
  expect(cached["new"]).toHaveLength(4);
});
