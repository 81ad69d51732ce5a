/** The cost of keys that do not exist, and reads of buckets that deny access. */
import { encodeManifest, MANIFEST_BYTES_MAX, type Manifest } from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ADMIN_TOKEN,
  clientHeaders,
  POP,
  putCached,
  randomBytes,
  readObject,
  startWorld,
  REGIONS,
  type TestWorld,
} from "../../test/world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
});
afterAll(() => world.close());

/** Requests to buckets that `task` causes. */
async function bucketRequests(task: () => Promise<void>): Promise<number> {
  const before = world.buckets.requests.length;
  await task();
  return world.buckets.requests.length - before;
}

const get = async (path: string, address = "203.0.113.7"): Promise<number> => {
  const response = await fetch(`${world.url}${path}`, { headers: clientHeaders(address) });
  await response.arrayBuffer();
  return response.status;
};

describe("a key that does not exist", () => {
  test("costs one lookup, however often it is asked for", async () => {
    const requests = await bucketRequests(async () => {
      for (let i = 0; i < 20; i++) expect(await get("/o/nowhere")).toBe(404);
    });
    expect(requests).toBe(REGIONS.length);
  });

  test("is limited by client: a flood of them is refused, and others read on", async () => {
    await world.put("page", randomBytes(1_000));
    const statuses: number[] = [];
    const atOnce = 10;
    const startMs = performance.now();
    const requests = await bucketRequests(async () => {
      for (let i = 0; i < 400; i += atOnce) {
        const keys = Array.from({ length: atOnce }, (_, lane) => `/o/flood-${i + lane}`);
        statuses.push(...(await Promise.all(keys.map((key) => get(key, "203.0.113.9")))));
      }
    });
    // The client gets a token each second, so a slower machine lets more of the flood through, here and there.
    const tokens = 60 + (performance.now() - startMs) / 1_000;
    expect(new Set(statuses)).toEqual(new Set([404, 429]));
    const answered = statuses.filter((status) => status === 404).length;
    expect(answered, "one look-up for each token, and those in flight with the last").toBeLessThan(tokens + atOnce);
    expect(requests).toBeLessThanOrEqual(answered * REGIONS.length);
    expect(statuses.slice(0, 20), "dead links of a page").toEqual(Array.from({ length: 20 }, () => 404));
    expect(statuses.join(" "), "the client has to wait").toContain("429 429");
    expect(await get("/o/page", "203.0.113.10")).toBe(200);
    expect(await get("/o/page", "203.0.113.9"), "what the PoP knows needs no lookup").toBe(200);
  });

  test("ends a batch of plans after some of them", async () => {
    const keys = Array.from({ length: 100 }, (_, i) => `batch-${i}`);
    const requests = await bucketRequests(async () => {
      const query = new URLSearchParams(keys.map((key) => ["key", key]));
      expect(await get(`/v1/plans?${query}`, "203.0.113.11")).toBe(200);
    });
    // Ten, and those that were in flight with the tenth.
    expect(requests).toBeLessThanOrEqual(16 * REGIONS.length);
  });
});

test("a plan whose manifest is large is left out of a batch", async () => {
  await world.put("small", randomBytes(1_000));
  await world.put("large", randomBytes(1_000), {
    edit: (manifest) => ({ ...manifest, headers: fillingHeaders(manifest) }),
  });
  const response = await fetch(`${world.url}/v1/plans?key=large&key=small`);
  const reader = new FrameReader(response.body!);
  const frames = [await reader.next(), await reader.next()];
  expect(frames.map(({ type, stripe }) => [type, stripe])).toEqual([
    ["plan", 1],
    ["end", 0],
  ]);
  expect(await get("/v1/read/large"), "its own read brings it").toBe(200);
});

describe("buckets that all deny access", () => {
  test("are a failure of the sources, leave the cache as it is, and show in the status", async () => {
    const denied = await startWorld({ MANIFEST_TTL_SECONDS: "1" });
    try {
      const content = randomBytes(100_000);
      await putCached(denied, "a.jpg", content);
      for (const region of REGIONS) denied.buckets.faults.set(region, { status: 403 });
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      const unknown = await fetch(`${denied.url}/o/unknown`);
      expect([unknown.status, unknown.headers.get("x-agarose-error")]).toEqual([502, "NO_SOURCE"]);
      expect(Buffer.from((await readObject(denied, "a.jpg")).bytes).equals(Buffer.from(content))).toBe(true);
      await denied.pops.cron(POP);
      expect(denied.buckets.fired.size, "the fault fired").toBe(REGIONS.length);
      const response = await fetch(`${denied.url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      const { cache, isolate } = (await response.json()) as {
        cache: { objects: { key: string; chunks: number[] }[] };
        isolate: { deniedRegions: string[] };
      };
      expect(cache.objects).toMatchObject([{ key: "a.jpg", chunks: [0, 1, 2, 3] }]);
      expect(isolate.deniedRegions.toSorted()).toEqual(REGIONS);
    } finally {
      await denied.close();
    }
  });
});

/** Headers that make a manifest nearly as long as any. */
function fillingHeaders(manifest: Manifest): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; ; i++) {
    const room = MANIFEST_BYTES_MAX - encodeManifest({ ...manifest, headers }).length - 40;
    if (room <= 0) return headers;
    headers[`x-amz-meta-${i}`] = "x".repeat(Math.min(1_000, room));
  }
}
