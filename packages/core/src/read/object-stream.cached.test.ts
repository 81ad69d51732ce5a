/** Cached objects whose bundles share a narrow line. */
import { expect, test } from "vitest";
import { FakeSource, referenceCodec, sampleObject, SimulatedClock, toyHash } from "../../test/index.ts";
import { collect } from "../../test/read-world.ts";
import { encodeFrame } from "../format/bundle.ts";
import { concat } from "../format/hash-tree.ts";
import { bundleSource } from "../sources/bundle-source.ts";
import { FrameReader } from "../sources/frame-reader.ts";
import { Line } from "./line.ts";
import { openRead } from "./object-stream.ts";

const object = await sampleObject({ k: 4, m: 2, bytes: 300_000, stripeBytes: 4 * 1024 * 1024, leaves: true });
const { manifest } = object;
/** Bytes per millisecond: 20 Mbit/s. */
const RATE = 2_500;
const PART_BYTES = 16 * 1024;
const READS = 8;
const EDGE_MS = 20;
const REGION_MS = 40;

/** Starts reads at one time. Resolves to how long each took, and to how many requests the regions got. */
async function readAll(
  line: boolean,
  silent: readonly number[] = [],
  edgeMs = EDGE_MS,
): Promise<{ took: number[]; asked: number }> {
  const clock = new SimulatedClock();
  const shared = new Line(clock);
  let freeAtMs = 0;
  let asked = 0;
  const bundle = (isSilent: boolean): ReadableStream<Uint8Array> => {
    const frames = [0, 1, 2, 3].map((chunk) => encodeFrame("chunk", 0, chunk, object.shard(0, chunk)));
    const bytes = concat([...frames, encodeFrame("end", 0, 0, new Uint8Array())]);
    let at = 0;
    return new ReadableStream(
      {
        async pull(controller) {
          if (isSilent && at > 0) await clock.sleep(1e9);
          const part = bytes.slice(at, (at += PART_BYTES));
          freeAtMs = Math.max(freeAtMs, clock.now()) + part.length / RATE;
          await clock.sleep(freeAtMs - clock.now());
          controller.enqueue(part);
          if (at >= bytes.length) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  };
  const read = async (index: number): Promise<number> => {
    const frames = clock.sleep(edgeMs).then(() => new FrameReader(bundle(silent.includes(index))));
    const edge = bundleSource({
      id: "pop",
      frames,
      latency: () => ({ meanMs: edgeMs, sdMs: EDGE_MS }),
      cached: () => [0, 1, 2, 3],
    });
    const regions = manifest.placement.map((id) => new FakeSource({ id, object, clock, ms: REGION_MS }));
    const ports = { clock, random: () => 0, sha256: toyHash, codec: async () => referenceCodec };
    const context = line ? { ...ports, line: shared } : ports;
    const { body } = await openRead({ manifest, sources: [edge, ...regions] }, context, { hedge: true, delta: 0 });
    expect(await toyHash(await collect(body))).toEqual(await toyHash(object.bytes));
    asked += regions.reduce((sum, { requests }) => sum + requests.length, 0);
    return clock.now();
  };
  const took = await clock.run(Promise.all(Array.from({ length: READS }, (_, index) => read(index))));
  return { took, asked };
}

test("bundles that share the line are waited for, and the buckets are not asked for the same bytes", async () => {
  const { took, asked } = await readAll(true);
  expect(asked).toBe(0);
  expect(Math.max(...took)).toBeLessThan(1.1 * ((READS * manifest.bytes) / RATE + EDGE_MS));
  expect((await readAll(false)).asked, "without a line").toBeGreaterThan(READS);
});

test("bundles are preferred on a narrow line to regions that are nearer, because they come anyway", async () => {
  const edgeMs = 1.5 * REGION_MS;
  const { took, asked } = await readAll(true, [], edgeMs);
  expect(asked).toBe(0);
  expect(Math.max(...took)).toBeLessThan(1.1 * ((READS * manifest.bytes) / RATE + edgeMs));
});

test("a bundle that falls silent while others come is replaced from the buckets", async () => {
  const { took, asked } = await readAll(true, [0]);
  expect(asked).toBeGreaterThan(0);
  expect(took[0]).toBeLessThan((READS * manifest.bytes) / RATE + EDGE_MS + 5 * REGION_MS);
});
