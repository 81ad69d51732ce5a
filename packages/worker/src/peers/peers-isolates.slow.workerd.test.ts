/** Two isolates of one PoP: what one of them hears of a peer, the other hears without KV. */
import { afterEach, expect, test, vi } from "vitest";
import { startPeersWorld, type PeersWorld } from "../../test/peers-world.ts";
import { randomBytes, readBundle } from "../../test/world.ts";

const KEY = "photos/cat.jpg";
/** The counts of reads are handed on after two seconds. */
const PATIENCE_MS = 60_000;

let world: PeersWorld;
afterEach(() => world.close());

test("an isolate that took no message in hears of it with the answer to its counts, while KV is down", async () => {
  world = await startPeersWorld({}, {}, { lhr2: true });
  const { version } = await world.put(KEY, randomBytes(300_000, 7));
  const periods = async (): Promise<void> => {
    await Promise.all((["fra", "lhr", "iad"] as const).map((name) => world.pops.cron(name)));
  };
  await periods();
  await (await fetch(`${world.url("fra")}/o/${KEY}`)).arrayBuffer();
  await periods();
  await world.reported("lhr", "fra", (held) => held[version]?.length === 4);
  const holders = async (): Promise<string[]> => {
    const { plan } = await readBundle(`${world.url("lhr2")}/v1/read/${KEY}`, KEY);
    return (plan.peers ?? []).map(({ name }) => name);
  };
  expect(await holders()).toEqual(["fra"]);
  await world.pops.setFault("lhr2", { kv: "down" });
  const link = world.link("fra", "lhr");
  link.messages.length = 0;
  await world.purge("fra", KEY);
  await vi.waitFor(async () => expect(await holders()).toEqual([]), PATIENCE_MS);
  expect(link.messages.map(({ status }) => status)).toEqual([204]);
  // Until it has looked there in vain, it has not been shown that KV was not needed.
  await vi.waitFor(async () => {
    expect(await holders()).toEqual([]);
    expect((await world.pops.fault("lhr2")).fired).toBeGreaterThan(0);
  }, PATIENCE_MS);
});
