import { expect, test } from "vitest";

import { describeCodec } from "./codec.contract.ts";
import { createCodec } from "./codec.ts";
import { BUILDS, javascriptCodec, loadCodec, readBuild } from "./node.ts";
import { withPlainSwizzle } from "./features.ts";
import { createWasmEngine } from "./wasm-engine.ts";

for (const build of BUILDS) {
  describeCodec(build, async () => loadCodec(await readBuild(build)));
}
describeCodec("relaxed with plain swizzles", async () => {
  const module = await WebAssembly.compile(withPlainSwizzle(await readBuild("relaxed")));
  return createCodec(createWasmEngine(await WebAssembly.instantiate(module, {})));
});
describeCodec("javascript", async () => javascriptCodec());

test.each(BUILDS)("the %s build runs the kernel of its name", async (build) => {
  expect((await loadCodec(await readBuild(build))).kernel).toBe(build);
});
