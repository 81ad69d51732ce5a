/** Clients of `/v1/plans` over real TCP that leave, stall or ask for much: the isolate's memory is bounded. */
import { FrameReader } from "@agarose/core/sources";
import { freePort } from "@agarose/dev-world/free-port";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { watchHeap } from "../../../test/heap.ts";
import { openRequest } from "../../../test/tcp-client.ts";
import { ADMIN_TOKEN, clientHeaders, POP, putCached, randomBytes, REGIONS, startWorld } from "../../../test/world.ts";
import type { TestWorld } from "../../../test/world.ts";
import { READ_BYTES_MAX } from "../../read/limits/memory-budget.ts";

const STRIPE_BYTES = 4 * 1024 * 1024;
const BODY_BYTES = 120_000;
const KEYS = Array.from({ length: 40 }, (_, i) => `page/${i}`);
/** Of each client that leaves: no request was for them before, so the isolate has no bodies of them. */
const KEYS_LEFT = Array.from({ length: 10 }, (_, i) => [`left/${i}/a`, `left/${i}/b`]);
const BATCH_BYTES_MAX = 2 * 1024 * 1024;
/** Of READ_BYTES_MAX, a batch with bodies takes 4 MiB. */
const BATCHES_MAX = 16;
const CLIENTS = 64;
const V8_FLAGS = "MINIFLARE_WORKERD_V8_FLAGS";

let world: TestWorld;
let inspectorPort: number;
beforeAll(async () => {
  inspectorPort = await freePort();
  process.env[V8_FLAGS] = "--expose-gc";
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" }, { inspectorPort });
  delete process.env[V8_FLAGS];
  for (const [i, key] of [...KEYS, ...KEYS_LEFT.flat()].entries())
    await world.put(key, randomBytes(BODY_BYTES, i), { stripeBytes: STRIPE_BYTES });
  await putCached(world, "video", randomBytes(2 * STRIPE_BYTES), { stripeBytes: STRIPE_BYTES });
});
afterAll(() => world.close());

const chunkRequests = (): number => world.buckets.requests.filter(({ name }) => name.startsWith("chunks/")).length;

const plansPath = (keys: readonly string[], query: Record<string, string> = { bodies: "1" }): string =>
  `/v1/plans?${new URLSearchParams([...keys.map((key) => ["key", key]), ...Object.entries(query)])}`;

const readsWithMemory = async (): Promise<number> => (await world.status()).isolate.readsWithMemory;

async function untilNoneHasMemory(): Promise<void> {
  while ((await readsWithMemory()) > 0) await new Promise((resolve) => setTimeout(resolve, 100));
}

interface Batch {
  readonly bytes: number;
  readonly plans: number;
  readonly chunks: number;
}

/** Reads a batch to its end frame. */
async function readBatch(path: string, address = "198.51.100.1"): Promise<Batch> {
  const response = await fetch(`${world.url}${path}`, { headers: clientHeaders(address) });
  expect(response.status).toBe(200);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const reader = new FrameReader(new Response(bytes).body!);
  const counts = { plan: 0, chunk: 0, miss: 0 };
  for (let frame = await reader.next(); frame.type !== "end"; frame = await reader.next()) {
    counts[frame.type as keyof typeof counts]++;
  }
  return { bytes: bytes.length, plans: counts.plan, chunks: counts.chunk };
}

test("a batch ends at its byte bound, with whole objects only", async () => {
  const { bytes, plans, chunks } = await readBatch(plansPath(KEYS));
  expect(bytes).toBeLessThanOrEqual(BATCH_BYTES_MAX + 100);
  expect(bytes, "the bound was met").toBeGreaterThan(BATCH_BYTES_MAX - BODY_BYTES - 10_000);
  expect(chunks).toBeGreaterThanOrEqual(4 * 15);
  expect(chunks % 4).toBe(0);
  expect(plans).toBeGreaterThanOrEqual(chunks / 4);
});

describe("memory", () => {
  test("is not taken by HEAD of any route", async () => {
    const paths = ["/o/video", "/v1/read/video", plansPath(KEYS), plansPath(KEYS, {}), "/healthz", "/v1/chunk/video"];
    for (const path of [...paths, "/v1/status", "/metrics"]) {
      for (let i = 0; i < 20; i++) {
        const headers = { ...clientHeaders("203.0.113.1"), authorization: `Bearer ${ADMIN_TOKEN}` };
        (await openRequest(world.url, { method: "HEAD", path, headers })).destroy();
      }
      expect(await readsWithMemory(), path).toBe(0);
    }
  });

  test("comes back at once from clients that leave in the middle of a batch", async () => {
    let answer = (): void => {};
    const chunksAfter = new Promise<void>((resolve) => (answer = resolve));
    for (const region of REGIONS) world.buckets.faults.set(region, { chunksAfter });
    const sockets = [];
    for (const [i, keys] of KEYS_LEFT.entries()) {
      sockets.push(await openRequest(world.url, { path: plansPath(keys), headers: clientHeaders(`192.0.2.${i}`) }));
    }
    expect(await readsWithMemory(), "the batches are in their middle: the fault fired").toBe(KEYS_LEFT.length);
    // Reads that wait ask for further chunks, until all that they may ask for are under way.
    let asked = -1;
    while (asked !== chunkRequests()) {
      asked = chunkRequests();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
    expect(world.buckets.fired.size).toBeGreaterThan(0);
    // Without a reset, only the end of the buckets' time-outs would show that the client has left.
    for (const socket of sockets) socket.resetAndDestroy();
    await untilNoneHasMemory();
    expect(chunkRequests(), "no request timed out and was repeated elsewhere").toBe(asked);
    answer();
    world.buckets.faults.clear();
    expect((await readBatch(plansPath(KEYS))).chunks).toBeGreaterThanOrEqual(4 * 15);
  });

  test("is bounded for clients that read nothing: later batches have no bodies until it expires", async () => {
    const heap = await watchHeap(inspectorPort, `core:user:${POP}`);
    // All at once: on a slow machine, the first ones would have expired before the last ones came.
    const stalled = await Promise.all(
      Array.from({ length: CLIENTS }, (_, i) =>
        openRequest(world.url, { path: plansPath(KEYS), headers: clientHeaders(`203.0.113.${i}`), times: 4 }),
      ),
    );
    const { plans, chunks } = await readBatch(plansPath(KEYS));
    const { readsWithMemory: held, expiredReads: gone } = (await world.status()).isolate;
    expect(held + gone, "the fault fired: batches wait for their clients").toBeGreaterThanOrEqual(BATCHES_MAX - 1);
    expect({ plans, chunks, gone }).toEqual({ plans: KEYS.length, chunks: 0, gone: 0 });
    // A busy machine is late with its samples.
    await expect
      .poll(() => Math.max(...heap.samples) - heap.before, { message: "the batches are in memory" })
      .toBeGreaterThan(BATCHES_MAX * 100_000);
    expect(heap.stop()).toBeLessThan(READ_BYTES_MAX);
    // Their time is over when another read needs the memory.
    await new Promise((resolve) => setTimeout(resolve, 10_500));
    expect((await readBatch(plansPath(KEYS))).chunks).toBeGreaterThanOrEqual(4 * 15);
    const { expiredReads } = (await world.status()).isolate;
    expect(expiredReads).toBeGreaterThanOrEqual(BATCHES_MAX - 1);
    for (const socket of stalled) socket.destroy();
    await untilNoneHasMemory();
    expect((await world.status()).isolate.expiredReads, "the clients' leaving ended the other leases").toBe(
      expiredReads,
    );
  });
});
