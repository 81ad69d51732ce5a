import { expect, test } from "vitest";

import { createCodec } from "./codec.ts";
import { readBuild } from "./node.ts";
import { createWasmEngine } from "./wasm-engine.ts";

async function freshCodec() {
  const { instance } = await WebAssembly.instantiate(await readBuild("simd"), {});
  const memory = instance.exports["memory"] as WebAssembly.Memory;
  return { memory, codec: createCodec(createWasmEngine(instance)) };
}

test("memory does not grow with the length of shards or with the number of patterns", async () => {
  const { memory, codec } = await freshCodec();
  const before = memory.buffer.byteLength;
  codec.encode([new Uint8Array(3_000_000), new Uint8Array(3_000_000)], [2, 3]);
  const shards = Array.from({ length: 21 }, (_, index) => ({ index, bytes: new Uint8Array(9) }));
  for (let first = 1; first <= 12; first++) {
    for (let wanted = 0; wanted < first; wanted++) codec.reconstruct(9, shards.slice(first, first + 9), [wanted]);
  }
  expect(before).toBeLessThan(1_200_000);
  expect(memory.buffer.byteLength - before).toBeLessThanOrEqual(65_536);
});

test("the memory that the largest matrices need is reused by the next ones", async () => {
  const { memory, codec } = await freshCodec();
  const data = Array.from({ length: 250 }, () => new Uint8Array(1));
  // The first solution leaves something behind: see `scope` in src/allocator.rs.
  codec.encode([new Uint8Array(1)], [1]);
  codec.encode(data, [255]);
  const after = memory.buffer.byteLength;
  for (let row = 250; row < 255; row++) codec.encode(data, [row]);
  expect(memory.buffer.byteLength).toBe(after);
  expect(after).toBeLessThan(4_000_000);
});

test("a status of the module that the face does not expect is an internal error", async () => {
  const failing = {
    exports: {
      memory: new WebAssembly.Memory({ initial: 1 }),
      kernelName: () => 1,
      stagingAt: () => 0,
      matrixAt: () => 2000,
      rowsMax: () => 4,
      solve: () => 4,
    },
  };
  const codec = createCodec(createWasmEngine(failing as unknown as WebAssembly.Instance));
  expect(() => codec.encode([Uint8Array.of(1)], [1])).toThrow(
    expect.objectContaining({ code: "INTERNAL", details: { status: 4 } }),
  );
});
