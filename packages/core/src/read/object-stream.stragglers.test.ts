/** Lines on which what is read ahead takes minutes. */
import { describe, expect, test } from "vitest";
import { collect } from "../../test/read-world.ts";
import { referenceCodec } from "../../test/objects/reference-codec.ts";
import { sampleObject, toyHash } from "../../test/objects/sample-object.ts";
import { SimulatedClock } from "../../test/simulated-clock.ts";
import { rejectionOf } from "../../test/errors.ts";
import { encodeFrame } from "../format/bundle.ts";
import { FrameReader } from "../sources/frame-reader.ts";
import { bundleSource } from "../sources/bundle-source.ts";
import { stripeCount } from "../format/manifest/index.ts";
import { openRead } from "./object-stream.ts";
import { RegionSource } from "../sources/region-source.ts";
import type { ChunkSource } from "../sources/source.ts";

const object = await sampleObject({ k: 4, m: 2, bytes: 1000, stripeBytes: 100 });
const { manifest } = object;
const STRIPES = stripeCount(manifest);
const TIMEOUT_MS = 30_000;
const PART_MS = 10_000;

interface Line {
  readonly clock: SimulatedClock;
  /** The bytes that arrive at a time. */
  readonly partBytes: number;
  /** Bytes that a body brings before it goes silent. */
  readonly silentAfter: number;
}

/** `bytes` in parts, each a while after the one before. */
function dribble(
  bytes: Uint8Array,
  { clock, partBytes, silentAfter }: Line,
  signal?: AbortSignal,
): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        await clock.sleep(at < silentAfter ? PART_MS : 1e12, signal);
        controller.enqueue(bytes.slice(at, (at += partBytes)));
        if (at >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}

function bucketsOn(line: Line): ChunkSource[] {
  return manifest.placement.map((name, chunk) => {
    const stored = Uint8Array.from(
      Array.from({ length: STRIPES }, (_, stripe) => [...object.shard(stripe, chunk)]).flat(),
    );
    return new RegionSource({
      manifest,
      region: { name, url: `https://${name}.test` },
      latency: () => ({ meanMs: 1e6, sdMs: 0 }),
      fetch: async (_url, { signal }) => ({
        status: 200,
        headers: new Headers(),
        body: dribble(stored, line, signal),
      }),
    });
  });
}

function edgeOn(line: Line): ChunkSource[] {
  const chunks = [0, 1, 2, 3];
  const frames = Array.from({ length: STRIPES }, (_, stripe) =>
    chunks.map((chunk) => encodeFrame("chunk", stripe, chunk, object.shard(stripe, chunk))),
  ).flat();
  const bundle = new FrameReader(dribble(Uint8Array.from(frames.flatMap((frame) => [...frame])), line));
  const latency = (): { meanMs: number; sdMs: number } => ({ meanMs: 1e6, sdMs: 0 });
  return [bundleSource({ id: "pop", latency, cached: () => chunks, frames: Promise.resolve(bundle) })];
}

async function read(sources: ChunkSource[], clock: SimulatedClock): Promise<Uint8Array> {
  const ports = { clock, random: () => 0, sha256: toyHash, codec: async () => referenceCodec };
  const { body } = await openRead({ manifest, sources }, ports, { delta: 0, windowBytes: 400, timeoutMs: TIMEOUT_MS });
  return collect(body);
}

describe.each([
  // A shard of 25 bytes takes 50 s, and the window of four stripes 200 s.
  ["buckets", bucketsOn, 5],
  // A frame of 37 bytes takes 20 s, and a stripe 80 s.
  ["a PoP's bundle", edgeOn, 20],
] as const)("from %s", (_name, sourcesOn, partBytes) => {
  test("a read whose stripes take longer than the time-out continues while anything comes", async () => {
    const clock = new SimulatedClock();
    const line = { clock, partBytes, silentAfter: Number.POSITIVE_INFINITY };
    expect(await clock.run(read(sourcesOn(line), clock))).toEqual(object.bytes);
    expect(clock.now()).toBeGreaterThan(STRIPES * TIMEOUT_MS);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a read without any progress fails within two time-outs", async () => {
    const clock = new SimulatedClock();
    const silentAfter = 60;
    const error = await clock.run(rejectionOf(read(sourcesOn({ clock, partBytes, silentAfter }), clock)));
    expect(error).toMatchObject({ code: "READ_TIMEOUT", details: { timeoutMs: TIMEOUT_MS } });
    const lastMs = (silentAfter / partBytes) * PART_MS;
    expect(clock.now()).toBeGreaterThan(lastMs);
    expect(clock.now()).toBeLessThanOrEqual(lastMs + 2 * TIMEOUT_MS);
  });
});
