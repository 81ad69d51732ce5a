/** Plans of several objects in one answer. */
import { systemSha256 } from "@agarose/core";
import {
  acceptUnsigned,
  BUNDLE_CONTENT_TYPE,
  chunkName,
  parsePlan,
  sealManifest,
  type Frame,
  type Plan,
} from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { InvocationReport } from "../../../test/platform/platform-limits.ts";
import { isOnNode } from "../../../test/node-pops.ts";
import { POP, putCached, randomBytes, readBundle, startWorld, type TestWorld } from "../../../test/world.ts";

const PLANNED_KEYS_MAX = 100;
const READ_TOKEN = "a token for all readers";
const PAGE = Array.from({ length: PLANNED_KEYS_MAX }, (_, i) => `page/größe ${i}.jpg`);

let world: TestWorld;
beforeAll(async () => {
  const vars = {
    PRIVATE_PREFIXES: '["members/"]',
    READ_TOKEN,
    MANIFEST_TTL_SECONDS: "600",
    TELEMETRY_KEY: "x".repeat(20),
  };
  world = await startWorld(vars, { limited: true });
  for (const [i, key] of [...PAGE, "members/a"].entries()) await world.put(key, randomBytes(1_000, i + 1));
});
afterAll(() => world.close());

const ask = (keys: readonly string[], headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${world.url}/v1/plans?${new URLSearchParams(keys.map((key) => ["key", key]))}`, { headers });

async function framesOf(response: Response): Promise<Frame[]> {
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe(BUNDLE_CONTENT_TYPE);
  expect(response.headers.get("cache-control")).toBe("no-store");
  const reader = new FrameReader(response.body!);
  const frames: Frame[] = [];
  for (;;) {
    const frame = await reader.next();
    if (frame.type === "end") return frames;
    frames.push(frame);
  }
}

/** The keys whose plans are there, in order. */
const plannedKeys = (keys: readonly string[], frames: readonly Frame[]): string[] =>
  frames.map(({ stripe }) => keys[stripe]!).toSorted((a, b) => keys.indexOf(a) - keys.indexOf(b));

/** Operations since the last call, and violations of the platform's limits; on Node there are none. */
async function limits(): Promise<{ invocations: InvocationReport[]; violations: string[] }> {
  if (isOnNode()) return { invocations: [], violations: [] };
  return (await (await fetch(`${world.url}/__limits`)).json()) as Awaited<ReturnType<typeof limits>>;
}

test("as many plans as a page may ask for come in one answer, within the platform's limits, also when no manifest is known", async () => {
  const start = performance.now();
  const frames = await framesOf(await ask(PAGE));
  const seconds = (performance.now() - start) / 1000;
  expect(plannedKeys(PAGE, frames)).toEqual(PAGE);
  for (const { stripe, payload } of frames) {
    expect((await planOf(payload, PAGE[stripe]!)).manifest?.key).toBe(PAGE[stripe]);
  }
  const { invocations, violations } = await limits();
  expect(violations).toEqual([]);
  if (isOnNode()) return;
  const { kvOperations, subrequests } = invocations.find(({ what }) => what === "/v1/plans")!;
  // One for the configuration, and one more for every five seconds that a slow machine takes.
  expect(kvOperations).toBeLessThanOrEqual(1 + Math.floor(seconds / 5));
  expect(subrequests).toBeGreaterThan(PLANNED_KEYS_MAX);
});

test("the plans of inline objects name the regions once, because nothing of them is read from there", async () => {
  const keys = ["inline/a", "inline/b", "inline/c"];
  for (const [seed, key] of keys.entries()) {
    const inline = randomBytes(1_000, seed + 1);
    const coded = await world.put(key, inline);
    const draft = { ...coded, k: 1, m: 0, placement: [], hashes: [], inline, requires: ["inline"] };
    const manifest = await sealManifest(draft, systemSha256);
    await world.put(key, inline, { edit: () => manifest });
  }
  const frames = await framesOf(await ask([...keys, "page/größe 0.jpg"]));
  const plans = await Promise.all(
    frames.map(async ({ payload, stripe }) => planOf(payload, [...keys, "page/größe 0.jpg"][stripe]!)),
  );
  const inline = plans.filter(({ manifest }) => manifest?.inline);
  expect(inline).toHaveLength(keys.length);
  expect(inline.filter(({ regions }) => regions.length > 0).length).toBeLessThanOrEqual(1);
  expect(plans.find(({ manifest }) => !manifest?.inline)!.regions.length).toBeGreaterThan(0);
  // A client that knows nothing yet learns the regions.
  const [first] = await framesOf(await ask(keys.slice(0, 1)));
  expect((await planOf(first!.payload, keys[0]!)).regions.length).toBeGreaterThan(0);
});

test("a plan is the one that a bundle begins with, without its chunks", async () => {
  await putCached(world, "cached", randomBytes(100_000));
  const [frame] = await framesOf(await ask(["cached"]));
  const { plan } = await readBundle(`${world.url}/v1/read/cached`, "cached");
  expect(plan.cached).toHaveLength(4);
  expect(await planOf(frame!.payload, "cached")).toEqual(plan);
});

test("keys that do not exist, and private ones without the token, have no plan and harm no other", async () => {
  const keys = ["nowhere", PAGE[0]!, "members/a", PAGE[1]!];
  expect(plannedKeys(keys, await framesOf(await ask(keys)))).toEqual([PAGE[0], PAGE[1]]);
  const allowed = await framesOf(await ask(keys, { authorization: `Bearer ${READ_TOKEN}` }));
  expect(plannedKeys(keys, allowed)).toEqual([PAGE[0], "members/a", PAGE[1]]);
  const closed = allowed.find(({ stripe }) => keys[stripe] === "members/a")!;
  expect((await planOf(closed.payload, "members/a")).private).toBe(true);
});

test("a plan that is fetched ahead does not count as a request", async () => {
  await world.pops.cron(POP);
  await framesOf(await ask(PAGE));
  await readBundle(`${world.url}/v1/read/${encodeURIComponent(PAGE[7]!)}`.replaceAll("%2F", "/"), PAGE[7]!);
  const before = (await world.status()).cache.objects.map(({ key }) => key);
  await world.pops.cron(POP);
  const added = (await world.status()).cache.objects.map(({ key }) => key).filter((key) => !before.includes(key));
  expect(added).toEqual([PAGE[7]]);
});

test.each([
  ["no key", []],
  ["too many keys", Array.from({ length: PLANNED_KEYS_MAX + 1 }, (_, i) => `k${i}`)],
  ["a key that comes twice", ["a", "b", "a"]],
])("%s is refused as REQUEST_INVALID", async (_name, keys) => {
  const response = await ask(keys);
  expect(response.status).toBe(400);
  expect(response.headers.get("x-agarose-error")).toBe("REQUEST_INVALID");
});

test("a key that is none is refused", async () => {
  expect((await ask([".."])).status).toBe(400);
});

function planOf(payload: Uint8Array, key: string): Promise<Plan> {
  return parsePlan(payload, { key, trust: acceptUnsigned, sha256: systemSha256 });
}

describe("with bodies", () => {
  const askBodies = (keys: readonly string[]): Promise<Response> =>
    fetch(`${world.url}/v1/plans?${new URLSearchParams([...keys.map((key) => ["key", key]), ["bodies", "1"]])}`);

  /** A client's content of the frames of a key: the chunks after its plan, verified by nothing here. */
  const contentOf = (frames: readonly Frame[], index: number, bytes: number): Uint8Array => {
    const chunks = frames.filter(({ type, stripe }) => type === "chunk" && stripe === index);
    const sorted = chunks.toSorted((a, b) => a.chunk - b.chunk).map(({ payload }) => payload);
    return Buffer.concat(sorted).subarray(0, bytes);
  };

  test("small objects follow their plans, uncached too, each chunk as announced, and count as requests", async () => {
    const keys = PAGE.slice(0, 16);
    const copies = randomBytes(18_000, 99);
    await world.put("copies", copies, { k: 1, m: 1 });
    await world.pops.cron(POP);
    // Forgets those of the Cron Triggers, which come faster here than KV takes writes.
    await limits();
    const frames = await framesOf(await askBodies([...keys, "copies"]));
    expect((await limits()).violations).toEqual([]);
    for (const [i, key] of [...keys, "copies"].entries()) {
      const plan = frames.findIndex(({ type, stripe }) => type === "plan" && stripe === i);
      const { cached, manifest } = await planOf(frames[plan]!.payload, key);
      expect(frames[plan]!.chunk).toBe(manifest!.k);
      const { plan: alone } = await readBundle(`${world.url}/v1/read/${key}`, key);
      expect(cached, "what the PoP has in its cache, and no more").toEqual(alone.cached);
      expect(frames.findIndex(({ type, stripe }) => type === "chunk" && stripe === i)).toBeGreaterThan(plan);
      const expected = key === "copies" ? copies : randomBytes(1_000, i + 1);
      expect(Buffer.from(contentOf(frames, i, expected.length)).equals(expected)).toBe(true);
    }
    await world.pops.cron(POP);
    const counted = (await world.status()).cache.objects.map(({ key }) => key);
    expect(counted).toEqual(expect.arrayContaining(["copies"]));
  });

  test("bodies that were sent once come again without a request to a bucket", async () => {
    const content = randomBytes(18_000, 7);
    await world.put("again", content, { k: 2, m: 1 });
    const chunkGets = (): number => world.buckets.requests.filter(({ name }) => name.startsWith("chunks/again")).length;
    const bodyOf = async (): Promise<Uint8Array> => contentOf(await framesOf(await askBodies(["again"])), 0, 18_000);
    expect(Buffer.from(await bodyOf()).equals(content)).toBe(true);
    const asked = chunkGets();
    expect(asked).toBeGreaterThanOrEqual(2);
    expect(Buffer.from(await bodyOf()).equals(content)).toBe(true);
    expect(chunkGets()).toBe(asked);
  });

  test("the bodies of new keys come before a majority confirms the keys", async () => {
    const keys = Array.from({ length: 9 }, (_, i) => `new/${i}`);
    for (const key of keys) await world.put(key, randomBytes(18_000, 7), { k: 2, m: 1 });
    world.buckets.requests.length = 0;
    await framesOf(await askBodies(keys));
    const requestsOf = (kind: string) => world.buckets.requests.filter(({ name }) => name.startsWith(`${kind}/new/`));
    const lastChunk = world.buckets.requests.indexOf(requestsOf("chunks").at(-1)!);
    const before = world.buckets.requests
      .slice(0, lastChunk)
      .filter((request) => requestsOf("manifests").includes(request));
    // Some first regions are late, and others are asked, too. A majority takes three requests more.
    expect(before.length).toBeLessThan(4 * keys.length);
    await vi.waitFor(() => expect(requestsOf("manifests").length).toBeGreaterThanOrEqual(4 * keys.length), 5_000);
  });

  test("objects in the chunk cache take none of the memory for those that no cache holds", async () => {
    // Together more than the 8 MiB that an isolate keeps of small objects.
    const cached = new Map(Array.from({ length: 80 }, (_, i) => [`cached/${i}`, randomBytes(120_000, i)]));
    for (const [key, content] of cached) await world.put(key, content, { stripeBytes: 128 * 1024 });
    const readAll = async (): Promise<void> => {
      const keys = [...cached.keys()];
      for (let at = 0; at < keys.length; at += 16) {
        const page = keys.slice(at, at + 16);
        const frames = await framesOf(await askBodies(page));
        for (const [i, key] of page.entries()) {
          const isWhole = Buffer.from(contentOf(frames, i, 120_000)).equals(cached.get(key)!);
          expect(isWhole, key).toBe(true);
        }
      }
    };
    const isCached = async (key: string): Promise<boolean> => {
      const [frame] = await framesOf(await ask([key]));
      return (await planOf(frame!.payload, key)).cached.length === 4;
    };
    await readAll();
    for (let period = 0; period < 5; period++) await world.pops.cron(POP);
    // The isolate may learn of the last period a moment later.
    for (const key of cached.keys()) await vi.waitFor(async () => expect(await isCached(key), key).toBe(true), 20_000);
    await world.put("alone", randomBytes(18_000, 5));
    const chunkGets = async (key: string): Promise<number> => {
      world.buckets.requests.length = 0;
      expect(contentOf(await framesOf(await askBodies([key])), 0, 18_000)).toHaveLength(18_000);
      return world.buckets.requests.filter(({ name }) => name.startsWith(`chunks/${key}`)).length;
    };
    expect(await chunkGets("alone")).toBeGreaterThan(0);
    await readAll();
    expect(await chunkGets("alone")).toBe(0);
  });

  test("large objects, those of many chunks, and those whose regions fail, come as plans, with a miss for what was announced", async () => {
    await world.put("large", randomBytes(200_000));
    await world.put("many", randomBytes(3_000), { k: 5, m: 1 });
    const lost = await world.put("lost", randomBytes(3_000, 5));
    for (const name of world.buckets.objects.keys()) {
      if (name.includes(chunkName("lost", lost.upload, 0).slice(0, -1))) world.buckets.objects.delete(name);
    }
    const frames = await framesOf(await askBodies(["large", "lost", PAGE[20]!, "many"]));
    expect(frames.find(({ type, stripe }) => type === "plan" && stripe === 0)!.chunk).toBe(0);
    expect(frames.filter(({ stripe, type }) => stripe === 0 && type !== "end")).toHaveLength(1);
    expect(frames.filter(({ stripe }) => stripe === 3)).toMatchObject([{ type: "plan", chunk: 0 }]);
    const misses = frames.filter(({ type, stripe }) => type === "miss" && stripe === 1);
    expect(misses.map(({ chunk }) => chunk)).toEqual([0, 1, 2, 3]);
    expect(frames.filter(({ type, stripe }) => type === "chunk" && stripe === 2)).toHaveLength(4);
  });
});
