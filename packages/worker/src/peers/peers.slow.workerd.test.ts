import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi, type TestContext } from "vitest";
import { startPeersWorld, type Name, type PeersWorld } from "../../test/peers-world.ts";
import { ADMIN_TOKEN, randomBytes, readBundle } from "../../test/world.ts";
import { AVOID_MS, AVOID_MS_MAX } from "@agarose/core/sources";

const KEY = "photos/cat.jpg";
const CONTENT = randomBytes(300_000, 7);

let world: PeersWorld;

async function read(
  name: Name | "lhr2",
  key = KEY,
  from = world,
): Promise<{ kind: string | null; bytes: Uint8Array; timing: string }> {
  const response = await fetch(`${from.url(name)}/o/${key}`);
  return {
    kind: response.headers.get("x-agarose-read"),
    bytes: new Uint8Array(await response.arrayBuffer()),
    timing: response.headers.get("server-timing") ?? "",
  };
}

/** On a busy machine, peers that answer too late open breakers. */
const PATIENCE_MS = 2 * AVOID_MS_MAX;
const POLL_MS = 100;

/** Reads until an isolate asks the peer: it learns of peers beside its reads, which do not wait for that. */
async function readFromFrankfurt(reader: Name | "lhr2", key: string): Promise<void> {
  const untilMs = Date.now() + PATIENCE_MS;
  for (;;) {
    const { bytes, timing } = await read(reader, key);
    expect(bytes).toEqual(CONTENT);
    if (timing.includes("peer-fra")) return;
    if (Date.now() > untilMs) {
      const { peers, regions, isolate } = await world.status(reader === "lhr2" ? "lhr" : reader);
      throw new Error(`${reader} does not ask fra: ${timing} ${JSON.stringify({ peers, regions, isolate })}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Puts objects that only Frankfurt caches, until the readers' isolates ask it for them; returns their versions. */
async function cacheInFrankfurt(keys = [KEY], readers: readonly (Name | "lhr2")[] = ["lhr"]): Promise<string[]> {
  // Before there are objects: while Frankfurt seems far, the others would cache for its readers, too.
  for (const pop of ["lhr", "iad"] as const) await world.measuredNearer(pop, "fra");
  const versions = await Promise.all(keys.map(async (key) => (await world.put(key, CONTENT)).version));
  await world.pops.cron();
  await Promise.all(keys.map((key) => read("fra", key)));
  await world.pops.cron();
  const { cache } = await world.status("fra");
  expect(cache.objects.map((object) => object.chunks)).toEqual(keys.map(() => [0, 1, 2, 3]));
  const areAllHeld = (held: Record<string, readonly number[]>): boolean =>
    versions.every((one) => held[one]?.length === 4);
  for (const pop of ["lhr", "iad"] as const) await world.reported(pop, "fra", areAllHeld);
  // A busy machine may have delayed the last probes. Until the next period, readers would then ask the buckets.
  for (const pop of ["lhr", "iad"] as const) await world.measuredNearer(pop, "fra");
  for (const reader of readers) for (const key of keys) await readFromFrankfurt(reader, key);
  return versions;
}

describe("a chunk that only a peer has cached", () => {
  let version: string;
  beforeAll(async () => {
    world = await startPeersWorld();
    [version] = (await cacheInFrankfurt()) as [string];
  });
  beforeEach(() => void (world.link("lhr", "fra").paths.length = 0));
  afterAll(() => world.close());

  test("is read from there", async () => {
    const { bytes, kind, timing } = await read("lhr");
    expect(bytes).toEqual(CONTENT);
    // A machine that is busy may let a bucket win one of the races.
    expect(["edge", "mixed"]).toContain(kind);
    expect(timing).toContain("peer-fra");
    expect(world.link("lhr", "fra").paths.filter((path) => path.startsWith("GET /v1/chunk/")).length).toBe(20);
    expect((await world.status("lhr")).cache.objects).toEqual([]);
  });

  test("is asked for in the trace of the read", async () => {
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    const { traceparents } = world.link("lhr", "fra");
    traceparents.clear();
    const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01` };
    await (await fetch(`${world.url("lhr")}/o/${KEY}`, { headers })).arrayBuffer();
    // A request of an earlier read may arrive late.
    const traced = [...traceparents].filter((header) => header !== undefined);
    expect(traced).toEqual([expect.stringMatching(`^00-${trace}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`)]);
    expect(world.buckets.headerNames).toContain("host");
    expect(world.buckets.headerNames).not.toContain("traceparent");
  });

  test("is counted, and the peer is seen in /metrics", async () => {
    await read("lhr");
    const answer = await fetch(`${world.url("lhr")}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    const text = await answer.text();
    expect(text).toMatch(/^agarose_isolate_peer_requests_total\{.*peer="fra".*outcome="used".*\} [1-9]/m);
    expect(text).toMatch(/^agarose_peer_objects\{.*peer="fra".*\} 1$/m);
    expect(text).toMatch(/^agarose_peer_down\{.*peer="fra".*\} 0$/m);
  });

  test("is named in the bundle of the other PoPs, with what of the object is in any cache", async () => {
    const { plan } = await readBundle(`${world.url("lhr")}/v1/read/${KEY}`, KEY);
    expect(plan).toMatchObject({ pop: "lhr", cached: [], peers: [{ name: "fra", chunks: [0, 1, 2, 3] }] });
    const answer = await fetch(`${world.url("lhr")}/v1/read/${KEY}`);
    expect(answer.headers.get("x-agarose-oic")).toBe("1.00");
    await answer.body?.cancel();
  });

  test("is given to a client as it is, and never under another version, stripe or chunk", async () => {
    const { plan } = await readBundle(`${world.url("fra")}/v1/read/${KEY}`, KEY);
    expect(plan.peers, "its own chunks are no peer's").toBeUndefined();
    const get = (query: string): Promise<Response> => fetch(`${world.url("fra")}/v1/chunk/${KEY}?${query}`);
    const shard = await get(`version=${version}&stripe=0&chunk=1`);
    expect(shard.status).toBe(200);
    expect(new Uint8Array(await shard.arrayBuffer())).toEqual(CONTENT.subarray(16_384, 2 * 16_384));
    expect((await get(`version=${"0".repeat(32)}&stripe=0&chunk=1`)).status).toBe(404);
    expect((await get(`version=${version}&stripe=5&chunk=1`)).status).toBe(404);
    expect((await get(`version=${version}&stripe=0&chunk=4`)).status).toBe(404);
    expect((await get(`version=${version}&stripe=0`)).status).toBe(400);
  });
});

const FAULTS = {
  "sends garbage": { spoil: (body: Uint8Array) => body.map((byte) => byte ^ 1) },
  "sends half of it": { spoil: (body: Uint8Array) => body.subarray(0, body.length >> 1) },
  "sends more than it": { spoil: (body: Uint8Array) => new Uint8Array([...body, 0]) },
  "is down": { down: true },
  "answers too late": { delayMs: 1_500 },
};

/** An isolate does not ask a peer that has just failed it, so that each fault meets its own isolate. */
describe.each([
  { lhr: "sends garbage", lhr2: "sends half of it", iad: "sends more than it" },
  { lhr: "is down", lhr2: "answers too late" },
] as const)("a chunk that only a peer has cached, read through a broken link: $lhr", (faults) => {
  beforeAll(async () => {
    world = await startPeersWorld({}, {}, { lhr2: true });
    await cacheInFrankfurt([KEY], Object.keys(faults) as (Name | "lhr2")[]);
  });
  afterAll(() => world.close());

  for (const [reader, fault] of Object.entries(faults) as [Name | "lhr2", keyof typeof FAULTS][]) {
    test(`comes from elsewhere when the peer ${fault}`, async () => {
      const link = world.link(reader === "lhr2" ? "lhr" : reader, "fra");
      link.fault = FAULTS[fault];
      link.fired = 0;
      const { bytes } = await read(reader);
      expect(bytes).toEqual(CONTENT);
      expect(link.fired, "the fault fired").toBeGreaterThan(0);
    });
  }
});

describe("a peer", () => {
  afterEach(() => world.close());

  test("is not asked for any more once it has failed a few times in a row", async () => {
    world = await startPeersWorld();
    await cacheInFrankfurt();
    const link = world.link("lhr", "fra");
    link.fault = FAULTS["sends garbage"];
    const isOpen = async (): Promise<boolean> =>
      (await world.status("lhr")).isolate.openBreakers.some((peer) => peer === "fra");
    // A breaker is open for five seconds, and each failed trial doubles them: a busy machine needs longer to look.
    for (let openMs = AVOID_MS; ; openMs = Math.min(2 * openMs, AVOID_MS_MAX)) {
      while (await isOpen()) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const sinceMs = Date.now();
      do expect((await read("lhr")).bytes).toEqual(CONTENT);
      while (!(await isOpen()));
      link.paths.length = 0;
      expect((await read("lhr")).bytes).toEqual(CONTENT);
      const { plan } = await readBundle(`${world.url("lhr")}/v1/read/${KEY}`, KEY);
      const asked = link.paths.filter((path) => path.startsWith("GET /v1/chunk/"));
      if (Date.now() - sinceMs >= openMs) continue;
      expect(asked).toEqual([]);
      expect(plan.peers).toBeUndefined();
      break;
    }
  });
});

describe("a chunk that a peer purges", () => {
  const keys = ["photos/dog.jpg", "photos/bird.jpg"] as const;
  let versions: string[];
  beforeAll(async () => {
    world = await startPeersWorld();
    versions = await cacheInFrankfurt([...keys]);
  });
  afterAll(() => world.close());

  test("is forgotten from one message, without any period", async () => {
    const [key, version] = [keys[0], versions[0]!];
    await world.purge("fra", key);
    await world.reported("lhr", "fra", (held) => held[version] === undefined);
    const last = world.link("fra", "lhr").messages.at(-1)!;
    expect(JSON.parse(last.body)).toMatchObject({
      cache: { node: "fra", isComplete: false, statements: [{ key: version, chunks: [] }] },
    });
    expect((await read("lhr", key)).bytes).toEqual(CONTENT);
  });

  test("is forgotten with the message itself by the isolate that takes it in, which does not wait for KV", async () => {
    const key = keys[1];
    const plan = async () => (await readBundle(`${world.url("lhr")}/v1/read/${key}`, key)).plan;
    expect((await plan()).peers).toMatchObject([{ name: "fra" }]);
    const link = world.link("fra", "lhr");
    link.messages.length = 0;
    await world.purge("fra", key);
    await vi.waitFor(() => expect(link.messages.map(({ status }) => status)).toEqual([204]), 60_000);
    expect((await plan()).peers).toBeUndefined();
  });
});

/** Most of their time is a PoP that waits for its turn. */
describe.concurrent("messages", () => {
  async function peersWorld({ onTestFinished }: TestContext): Promise<PeersWorld> {
    const one = await startPeersWorld();
    onTestFinished(() => one.close());
    return one;
  }

  test("that are lost are made good by the next digest", async (context) => {
    const own = await peersWorld(context);
    const link = own.link("fra", "lhr");
    const { version } = await own.put(KEY, CONTENT);
    await own.pops.cron();
    await read("fra", KEY, own);
    link.fault = { loses: true };
    await own.pops.cron();
    await own.reported("iad", "fra", (held) => held[version]?.length === 4);
    expect(link.fired, "messages were lost").toBeGreaterThan(0);
    await own.reported("lhr", "fra", (held) => held[version] === undefined);
    link.fault = {};
    await own.pops.cron();
    await own.reported("lhr", "fra", (held) => held[version]?.length === 4);
  });

  test("let all three PoPs have their turn within one period", async (context) => {
    const own = await peersWorld(context);
    for (const [i, name] of (["fra", "lhr", "iad"] as const).entries()) {
      await own.put(`own/${name}`, randomBytes(100_000, i + 1));
      await read(name, `own/${name}`, own);
    }
    await own.pops.cron();
    await Promise.all((["fra", "lhr", "iad"] as const).map((name) => read(name, `own/${name}`, own)));
    await own.pops.cron();
    for (const name of ["fra", "lhr", "iad"] as const) {
      const { cache, lastPeriod, peers } = await own.status(name);
      expect(lastPeriod.errors).toEqual([]);
      expect(cache.objects.map(({ key }) => key)).toContain(`own/${name}`);
      expect(peers!.turn).toBeGreaterThan(0);
      expect(peers!.peers.map(({ down, silent }) => down || silent)).toEqual([false, false]);
    }
  });

  test("make a PoP wait that is not first, and begin nothing out of turn", async (context) => {
    const own = await peersWorld(context);
    await own.pops.cron();
    const tickets = await Promise.all(
      (["fra", "lhr", "iad"] as const).map(async (name) => ({ name, turn: (await own.status(name)).peers!.turn })),
    );
    const { name } = tickets.toSorted((a, b) => a.turn - b.turn || (a.name < b.name ? -1 : 1))[2]!;
    await own.put(KEY, CONTENT);
    await read(name, KEY, own);
    // The others, which are first, have no period in the meantime.
    await own.pops.cron(name);
    const waiting = await own.status(name);
    expect(waiting.lastPeriod.errors).toEqual([]);
    expect(waiting.cache.objects).toEqual([]);
    expect(waiting.peers!.turn, "it has not had its turn").toBe(tickets.find((one) => one.name === name)!.turn);
    await read(name, KEY, own);
    await own.pops.cron();
    const { cache, peers } = await own.status(name);
    expect(cache.objects.map(({ key }) => key)).toEqual([KEY]);
    expect(peers!.turn).toBeGreaterThan(waiting.peers!.turn);
  });
});
