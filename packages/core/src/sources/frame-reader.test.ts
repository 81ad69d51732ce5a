import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { pseudoRandomBytes } from "../../test/objects/sample-object.ts";
import { streamOf } from "../../test/streams.ts";
import { encodeFrame, type Frame } from "../format/bundle.ts";
import { FrameReader } from "./frame-reader.ts";

const FRAMES: Frame[] = [
  { type: "chunk", stripe: 0, chunk: 0, payload: pseudoRandomBytes(50) },
  { type: "miss", stripe: 0, chunk: 2, payload: new Uint8Array(0) },
  { type: "chunk", stripe: 4_000_000_000, chunk: 255, payload: pseudoRandomBytes(1) },
  { type: "end", stripe: 0, chunk: 0, payload: new Uint8Array(0) },
];
const BYTES = Uint8Array.from(
  FRAMES.flatMap((frame) => [...encodeFrame(frame.type, frame.stripe, frame.chunk, frame.payload)]),
);

describe("FrameReader", () => {
  test("returns the same frames however the body is split", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(BYTES.length), { maxLength: 12 }), async (cuts) => {
        const reader = new FrameReader(streamOf(split(BYTES, cuts)));
        for (const frame of FRAMES) expect(await reader.next()).toEqual(frame);
        expect((await rejectionOf(reader.next())).code).toBe("BUNDLE_INVALID");
      }),
      { numRuns: 200 },
    );
  });

  test("reports a body that ends inside a frame, at every byte", async () => {
    const frame = encodeFrame("chunk", 3, 1, pseudoRandomBytes(20));
    for (let length = 0; length < frame.length; length++) {
      const error = await rejectionOf(new FrameReader(streamOf([frame.subarray(0, length)])).next());
      expect(error.code).toBe("BUNDLE_INVALID");
      expect(error.message).toMatch(/truncated: \d+ of \d+ bytes/);
    }
  });

  test("copies payloads, so that a chunk does not keep the buffer that it arrived in", async () => {
    const reader = new FrameReader(streamOf([BYTES]));
    const { payload } = await reader.next();
    expect(payload.buffer).not.toBe(BYTES.buffer);
    expect(payload.buffer.byteLength).toBe(50);
  });

  test("passes on the error of a body that breaks off, and cancels the body", async () => {
    const broken = new FrameReader(streamOf([BYTES.subarray(0, 5)], { error: new TypeError("connection reset") }));
    await expect(broken.next()).rejects.toThrow("connection reset");

    let cancelled = 0;
    const reader = new FrameReader(streamOf([BYTES], { onCancel: () => cancelled++ }));
    await reader.next();
    await reader.cancel();
    expect(cancelled).toBe(1);
  });
});

function split(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}
