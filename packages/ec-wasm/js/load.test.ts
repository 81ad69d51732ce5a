import { afterEach, expect, test, vi } from "vitest";

import { kernelSupported, loadCodec as loadCodecFrom } from "./load.ts";
import { BUILDS, loadCodec, readBuild } from "./node.ts";

const [relaxed, simd, scalar] = await Promise.all(BUILDS.map(readBuild));

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("in Node the fastest supported build is found without a source", async () => {
  expect((await loadCodec()).kernel).toBe(BUILDS.find(kernelSupported));
});

test("the same source gives the same codec, another source another one", async () => {
  const bytes = await readBuild("simd");
  const codec = await loadCodecFrom(bytes);
  expect(await loadCodecFrom(bytes)).toBe(codec);
  expect(await loadCodecFrom(bytes.slice())).not.toBe(codec);
});

test("a compiled module, an ArrayBuffer and a view are all sources", async () => {
  for (const source of [new WebAssembly.Module(simd!), simd!.buffer, new DataView(simd!.buffer)]) {
    expect((await loadCodecFrom(source)).kernel).toBe("simd");
  }
});

test("of several builds the fastest that validates is taken", async () => {
  const sources = { relaxed: relaxed!, simd: simd!, scalar: scalar! };
  expect((await loadCodecFrom(sources)).kernel).toBe("relaxed");
  const validate = vi.spyOn(WebAssembly, "validate").mockImplementation((bytes) => !hasRelaxedSwizzle(bytes));
  expect((await loadCodecFrom(sources)).kernel).toBe("simd");
  const compiled = new WebAssembly.Module(relaxed!);
  expect((await loadCodecFrom({ relaxed: compiled, scalar: scalar! })).kernel).toBe("scalar");
  validate.mockReturnValue(false);
  expect((await loadCodecFrom(sources)).kernel).toBe("scalar");
});

test("the bytes of the relaxed build run as plain SIMD where relaxed SIMD is missing", async () => {
  vi.spyOn(WebAssembly, "validate").mockImplementation((bytes) => !hasRelaxedSwizzle(bytes));
  const compile = vi.spyOn(WebAssembly, "compile");
  for (const source of [relaxed!.slice(), { relaxed: relaxed!.slice(), scalar: scalar! }]) {
    expect((await loadCodecFrom(source)).kernel).toBe("simd");
    expect(hasRelaxedSwizzle(compile.mock.lastCall![0])).toBe(false);
  }
});

test("where a policy forbids compiling, the JavaScript codec takes over", async () => {
  const refused = vi.spyOn(WebAssembly, "compile").mockRejectedValue(new WebAssembly.CompileError("blocked by CSP"));
  const codec = await loadCodecFrom(await readBuild("simd"));
  expect(refused).toHaveBeenCalledOnce();
  expect(codec.kernel).toBe("javascript");
  expect(codec.encode([Uint8Array.of(7)], [1])).toEqual([Uint8Array.of(7)]);
});

test("where there is no WebAssembly at all, the JavaScript codec takes over", async () => {
  vi.stubGlobal("WebAssembly", undefined);
  expect((await loadCodecFrom({ relaxed: relaxed!, simd: simd! })).kernel).toBe("javascript");
  expect((await loadCodecFrom(await readBuild("simd"))).kernel).toBe("javascript");
});

test("without a source outside Node the error says what to pass", async () => {
  await expect(loadCodecFrom()).rejects.toMatchObject({ name: "AgaroseError", code: "CONFIG_INVALID" });
});

test("bytes that are no WebAssembly are refused, not decoded around", async () => {
  await expect(loadCodecFrom(new TextEncoder().encode("<html>"))).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    details: { bytes: 6 },
  });
});

function hasRelaxedSwizzle(bytes: BufferSource): boolean {
  return Buffer.from(bytes as Uint8Array).includes(Buffer.from([0xfd, 0x80, 0x02]));
}
