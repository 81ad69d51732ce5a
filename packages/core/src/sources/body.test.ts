import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { pseudoRandomBytes } from "../../test/objects/sample-object.ts";
import { streamOf } from "../../test/streams.ts";
import { BodyReader, readExactly } from "./body.ts";

const BYTES = pseudoRandomBytes(1000);

describe.each([
  ["a byte stream", true],
  ["a stream of parts", false],
])("BodyReader on %s", (_, isBytes) => {
  test("returns the same pieces however the body is split (property)", async () => {
    const cuts = fc.array(fc.nat(BYTES.length), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, fc.array(fc.nat(400), { maxLength: 12 }), async (parts, pieces) => {
        const edges = [0, ...parts.toSorted((a, b) => a - b), BYTES.length];
        const reader = new BodyReader(
          streamOf(
            edges.slice(1).map((end, i) => BYTES.subarray(edges[i], end)),
            { isBytes },
          ),
        );
        let at = 0;
        for (const piece of [...pieces, BYTES.length]) {
          const read = await reader.read(piece);
          expect(read).toEqual(BYTES.subarray(at, at + piece));
          at += read.length;
        }
        expect(at).toBe(BYTES.length);
        expect(await reader.read(1)).toHaveLength(0);
      }),
      { numRuns: 300 },
    );
  });

  test("returns every piece in a buffer of its own", async () => {
    const reader = new BodyReader(streamOf([BYTES], { isBytes }));
    const [first, second] = [await reader.read(300), await reader.read(500)];
    expect(first.buffer.byteLength).toBe(300);
    expect(second.buffer.byteLength).toBe(500);
    expect(first).toEqual(BYTES.subarray(0, 300));
  });

  test("passes on the error of a body that breaks off", async () => {
    const reader = new BodyReader(streamOf([BYTES], { isBytes, error: new TypeError("connection reset") }));
    await expect(reader.read(2000)).rejects.toThrow("connection reset");
  });

  test("cancels the body", async () => {
    let cancelled = 0;
    const reader = new BodyReader(streamOf([BYTES], { isBytes, onCancel: () => cancelled++ }));
    await reader.read(10);
    await reader.cancel();
    expect(cancelled).toBe(1);
  });
});

test("readExactly returns the bytes of a body in one array, and none for a missing body", async () => {
  const none = { status: 200, headers: new Headers(), body: null };
  expect(await readExactly(none, 0, "nothing")).toEqual(new Uint8Array(0));
  expect(await rejectionOf(readExactly(none, 3, "chunk 7"))).toMatchObject({
    code: "CHUNK_WRONG_LENGTH",
    message: "chunk 7 sent 0 bytes, 3 are expected",
    details: { expected: 3, received: 0 },
  });
  const body = { ...none, body: streamOf([BYTES.subarray(0, 500), BYTES.subarray(500)]) };
  expect(await readExactly(body, 1000, "chunk 7")).toEqual(BYTES);
});
