import { expect, test } from "vitest";

import { describeCodec } from "./codec.contract.ts";
import { BUILDS, javascriptCodec, loadCodec, readBuild } from "./node.ts";

describeCodec("relaxed", async () => loadCodec(await readBuild("relaxed")));
describeCodec("javascript", async () => javascriptCodec());

test.each(BUILDS)("the %s build runs the kernel of its name", async (build) => {
  expect((await loadCodec(await readBuild(build))).kernel).toBe(build);
});
