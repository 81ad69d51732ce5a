/**
 * Where the chunks of a fill come from when a peer has them: its cache, as long as that is the best source and sound.
 */
import { afterEach, describe, expect, test } from "vitest";
import { startPeersWorld, type PeersWorld } from "../../test/peers-world.ts";
import { randomBytes, REGIONS } from "../../test/world.ts";
import { AVOID_MS } from "@agarose/core/sources";
import { FAILURES_MAX } from "../regions/circuit-breakers.ts";

const KEY = "photos/cat.jpg";
const CONTENT = randomBytes(300_000, 7);
/** 300,000 bytes in stripes of 64 KiB, of which k = 4 chunks each are cached. */
const STRIPES = 5;
const CHUNKS = 4 * STRIPES;
const EGRESS_USD_PER_GB = 0.09;
/** So far apart from the start that even the measurements of a busy machine do not confuse buckets and peers. */
const FAR_PEER = { bucketMs: 50, linkMs: 600 };

let world: PeersWorld;
afterEach(() => world.close());

async function readInLondon(from = world): Promise<{ kind: string | null; bytes: Uint8Array }> {
  const response = await fetch(`${from.url("lhr")}/o/${KEY}`);
  return { kind: response.headers.get("x-agarose-read"), bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Frankfurt has the whole object in its cache, and London, which was asked for it since, is about to. */
async function setUp(
  own: Parameters<typeof startPeersWorld>[1] = {},
  egressUsdPerGb = 0,
  { bucketMs, linkMs }: { bucketMs?: number; linkMs?: number } = {},
): Promise<PeersWorld> {
  const one = await startPeersWorld({}, own, {
    egressUsdPerGb,
    ...(bucketMs !== undefined && { bucketMs }),
    ...(linkMs !== undefined && { linkMs }),
  });
  // Before there is an object: while its peers seem far, London would cache for their readers, too.
  if (bucketMs !== undefined) await one.measuredFarther("lhr", "fra");
  else if (own.lhr === undefined) await one.measuredNearer("lhr", "fra");
  const { version } = await one.put(KEY, CONTENT);
  await one.pops.cron();
  await (await fetch(`${one.url("fra")}/o/${KEY}`)).arrayBuffer();
  await one.pops.cron();
  expect((await one.status("fra")).cache.objects).toMatchObject([{ key: KEY, chunks: [0, 1, 2, 3] }]);
  if (own.lhr === undefined) await one.reported("lhr", "fra", (held) => held[version]?.length === 4);
  expect((await one.status("lhr")).cache.objects).toEqual([]);
  // Once: what buckets have sent for a second read, the fill would not ask for again.
  await readInLondon(one);
  return one;
}

/** The range that probes of every fifth period read to measure the rate of a region: a whole chunk. */
const PROBED = `bytes=0-${CONTENT.length / 4 - 1}`;

/** GETs of chunks that buckets have seen, without those of probes. */
function fromBuckets({ buckets }: PeersWorld): string[] {
  const chunks = buckets.requests.filter(({ name, range }) => name.startsWith("chunks/") && range !== PROBED);
  return chunks.map(({ region, name, range }) => `${region} ${name} ${range}`).toSorted();
}

function fromFrankfurt({ link }: PeersWorld): number {
  return link("lhr", "fra").paths.filter((path) => path.startsWith("GET /v1/chunk/")).length;
}

/** Runs the period in which London fills its cache; what it asked of whom is then all that was asked. */
async function fill(one = world, pop?: string): Promise<void> {
  one.buckets.requests.length = 0;
  one.link("lhr", "fra").paths.length = 0;
  one.link("lhr", "fra").fired = 0;
  await one.pops.cron(pop);
  const { cache, lastPeriod } = await one.status("lhr");
  expect(lastPeriod).toMatchObject({ written: STRIPES, left: 0, reconstructed: 0, errors: [] });
  expect(cache.objects).toMatchObject([{ key: KEY, chunks: [0, 1, 2, 3], done: STRIPES }]);
}

/** London's cache alone has, and delivers, the object as it is. */
async function expectCached(one = world): Promise<void> {
  one.link("lhr", "fra").fault = {};
  one.buckets.requests.length = 0;
  one.link("lhr", "fra").paths.length = 0;
  expect(await readInLondon(one)).toEqual({ kind: "edge", bytes: CONTENT });
  expect([...fromBuckets(one), fromFrankfurt(one)]).toEqual([0]);
}

describe("a fill", () => {
  test("comes from the peer's cache where buckets charge, however far the peer is", async () => {
    world = await setUp({}, EGRESS_USD_PER_GB, FAR_PEER);
    await fill();
    expect(fromBuckets(world)).toEqual([]);
    expect(fromFrankfurt(world)).toBe(CHUNKS);
    await expectCached();
  });

  test("comes from the peer's cache where that is nearer than buckets that charge nothing", async () => {
    world = await setUp();
    for (const region of REGIONS) world.buckets.faults.set(region, { delayMs: 1_000 });
    await fill();
    expect(fromBuckets(world)).toEqual([]);
    expect(fromFrankfurt(world)).toBe(CHUNKS);
    await expectCached();
  });

  test("comes from the buckets where these charge nothing and are nearer", async () => {
    world = await setUp({}, 0, FAR_PEER);
    await fill();
    expect(fromBuckets(world).length, fromBuckets(world).join("\n")).toBe(CHUNKS);
    expect(fromFrankfurt(world)).toBe(0);
  });

  const faults = {
    "sends garbage": { spoil: (body: Uint8Array) => body.map((byte) => byte ^ 1) },
    "cuts every request for a chunk": { cutsChunks: true },
  };
  for (const [what, fault] of Object.entries(faults)) {
    test(`comes from the buckets when the peer ${what}`, async () => {
      world = await setUp({}, EGRESS_USD_PER_GB);
      const link = world.link("lhr", "fra");
      link.fault = fault;
      link.firedAtMs.length = 0;
      await fill();
      const openedMs = link.firedAtMs[FAILURES_MAX - 1]!;
      expect(fromBuckets(world).length, fromBuckets(world).join("\n")).toBe(CHUNKS);
      const { openBreakers } = (await world.status("lhr")).isolate;
      // Fewer failures open no breaker: the fault fired. A busy machine may look when the breaker has closed again.
      expect(openedMs).toBeGreaterThan(0);
      if (Date.now() - openedMs < AVOID_MS) expect(openBreakers).toEqual(["fra"]);
      await expectCached();
    });
  }

  test("is that of a PoP without peers, in the first period in which none of them can be reached", async () => {
    world = await setUp({}, EGRESS_USD_PER_GB);
    const alone = await setUp({ lhr: { PEERS: "", PEER_KEY: "" } }, EGRESS_USD_PER_GB);
    try {
      for (const other of ["fra", "iad"] as const) world.link("lhr", other).fault = { down: true };
      await fill(world, "lhr");
      await fill(alone, "lhr");
      expect(world.link("lhr", "fra").fired, "the fault fired").toBeGreaterThan(0);
      expect(fromBuckets(world)).toEqual(fromBuckets(alone));
      expect(fromFrankfurt(alone)).toBe(0);
      await expectCached(alone);
      await expectCached();
    } finally {
      await alone.close();
    }
  });
});
