import { expect, test } from "vitest";

import { describeCodec } from "./codec.contract.ts";
import { BUILDS, javascriptCodec, loadCodec, readBuild } from "./node.ts";

for (const build of BUILDS) {
  describeCodec(build, async () => loadCodec(await readBuild(build)));
}
describeCodec("javascript", async () => javascriptCodec());

test.each(BUILDS)("the %s build runs the kernel of its name", async (build) => {
  expect((await loadCodec(await readBuild(build))).kernel).toBe(build);
});
