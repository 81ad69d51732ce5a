/** The contract on the engines that few browsers need. */
import { describeCodec } from "./codec.contract.ts";
import { createCodec } from "./codec.ts";
import { withPlainSwizzle } from "./features.ts";
import { loadCodec, readBuild } from "./node.ts";
import { createWasmEngine } from "./wasm-engine.ts";

for (const build of ["scalar", "simd"] as const) {
  describeCodec(build, async () => loadCodec(await readBuild(build)));
}
describeCodec("relaxed with plain swizzles", async () => {
  const module = await WebAssembly.compile(withPlainSwizzle(await readBuild("relaxed")));
  return createCodec(createWasmEngine(await WebAssembly.instantiate(module, {})));
});
