import { expect, test } from "vitest";
import { startPeersWorld, type PeersWorld } from "../../test/peers-world.ts";
import { randomBytes, REGIONS } from "../../test/world.ts";

/** Reads per period. One object is asked for so often that it does not matter when which count arrives. */
const READS = { a: 1, b: 1, c: 6 };

const content = (i: number): Uint8Array => randomBytes(100_000, i + 1);

/** The view of clients and cache of Frankfurt over three periods. */
async function account(world: PeersWorld): Promise<unknown[]> {
  const seen: unknown[] = [];
  // So far apart that no measurement mistakes one for another.
  for (const [i, region] of REGIONS.entries()) world.buckets.faults.set(region, { delayMs: 30 + 120 * i });
  for (const [i, key] of Object.keys(READS).entries()) await world.put(key, content(i));
  for (let period = 0; period < 3; period++) {
    for (const [i, [key, reads]] of Object.entries(READS).entries()) {
      for (let n = 0; n < reads; n++) {
        const answer = await fetch(`${world.url("fra")}/o/${key}`);
        const body = new Uint8Array(await answer.arrayBuffer());
        seen.push([answer.status, answer.headers.get("etag"), Buffer.compare(body, content(i)) === 0]);
      }
    }
    await world.pops.cron("fra");
    const { epoch, cache, lastPeriod } = await world.status("fra");
    seen.push([epoch, cache.objects, lastPeriod.errors, lastPeriod.written, lastPeriod.evicted]);
    const kv = await world.pops.miniflare.getKVNamespace("CHUNKS", "fra");
    seen.push((JSON.parse((await kv.get("configuration", "text")) ?? "") as { cached: unknown }).cached);
  }
  return seen;
}

test("a PoP that reaches no peer answers and caches as one that has none", async () => {
  // Room for one object, so that there is something to choose.
  const vars = { CACHE_BYTES: "100000" };
  const alone = await startPeersWorld(vars, { fra: { PEERS: "", PEER_KEY: "" } });
  const cut = await startPeersWorld(vars);
  try {
    for (const other of ["lhr", "iad"] as const) cut.link("fra", other).fault = { down: true };
    const [seenCut, seenAlone] = [await account(cut), await account(alone)];
    for (const [i, seen] of seenCut.entries()) expect(seen, `step ${i}`).toEqual(seenAlone[i]);
    expect((await alone.status("fra")).peers).toBeNull();
    const { peers } = await cut.status("fra");
    expect(peers!.peers.map(({ down, silent }) => [down, silent])).toEqual([
      [true, true],
      [true, true],
    ]);
    for (const other of ["lhr", "iad"] as const) expect(cut.link("fra", other).fired).toBeGreaterThan(0);
  } finally {
    await alone.close();
    await cut.close();
  }
});
