/** Chunks of private buckets: read by the signatures of a plan, and by those of a newer one once they have expired. */
import { expect, test } from "vitest";
import { AgaroseError } from "@agarose/core";
import { stripeShape } from "@agarose/core/format";
import { sampleObject } from "@agarose/core/testing";
import type { FullPlan } from "./plans/bundle-request.ts";
import { FairQueue, Slot } from "./sources/fair-queue.ts";
import { LatencyTracker } from "./latency-tracker.ts";
import { regionSources } from "./sources/region-sources.ts";
import { VirtualClock } from "../../test/virtual-clock.ts";

async function setUp() {
  const { manifest } = await sampleObject({ k: 4, m: 2, bytes: 400, stripeBytes: 400 });
  const clock = new VirtualClock();
  const plan = (date: string): FullPlan => ({
    pop: "fra",
    epoch: 1,
    version: manifest.version,
    manifest,
    cached: [],
    delta: 1,
    regions: [...new Set(manifest.placement)].map((name) => ({
      name,
      url: `https://${name}.test`,
      meanMs: 20,
      sdMs: 2,
      signed: {
        seconds: 300,
        queries: Object.fromEntries(manifest.placement.map((_, i) => [i, `date=${date}&of=${i}`])),
      },
    })),
  });
  const asked: string[] = [];
  const resigned: { next: () => Promise<FullPlan>; calls: number } = { next: async () => plan("old"), calls: 0 };
  const sources = regionSources(plan("old"), {
    fetch: async (url) => {
      asked.push(url);
      return new Response(null, { status: 500 });
    },
    latencies: new LatencyTracker(clock),
    queue: () => new FairQueue(),
    slot: new Slot(null),
    sign: () => {
      resigned.calls++;
      return resigned.next();
    },
  });
  const read = async (chunk: number): Promise<unknown> => {
    const source = sources.find((candidate) => candidate.has(0, chunk))!;
    const signal = new AbortController().signal;
    return source.fetch({ stripe: stripeShape(manifest, 0), chunk, signal }).catch((error: AgaroseError) => error.code);
  };
  return { manifest, plan, asked, resigned, read };
}

test("each chunk is asked for by its own signature, and by that of the newer plan once there is one", async () => {
  const { plan, asked, resigned, read } = await setUp();
  await read(0);
  await read(2);
  expect(asked.map((url) => url.split("?")[1])).toEqual(["date=old&of=0", "date=old&of=2"]);
  resigned.next = async () => plan("new");
  await read(1);
  expect(asked.at(-1)).toMatch(/\/1\?date=new&of=1$/);
});

test("a new plan that cannot be had fails the chunk, and is asked for again by the next one", async () => {
  const { plan, asked, resigned, read } = await setUp();
  resigned.next = () => Promise.reject(new AgaroseError("NO_SOURCE", "no PoP answers"));
  expect(await read(0)).toBe("SOURCE_FAILED");
  expect(asked).toEqual([]);
  resigned.next = async () => plan("new");
  await read(0);
  expect(asked.map((url) => url.split("?")[1])).toEqual(["date=new&of=0"]);
});
