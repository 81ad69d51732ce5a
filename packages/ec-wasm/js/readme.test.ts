import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";

import { expect, test } from "vitest";

import { loadCodec } from "./node.ts";

test("the example in the readme does what it says", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const example = /```ts\n(.*?)```/s.exec(readme)![1]!.replace(/^import .*$/m, "");
  const body = stripTypeScriptTypes(`async () => {${example}; return { data, d0, d2 }; }`);
  const run = new Function("loadCodec", `return (${body})()`) as (load: typeof loadCodec) => Promise<Example>;
  const { data, d0, d2 } = await run(loadCodec);
  expect([d0, d2]).toEqual([data[0], data[2]]);
});

interface Example {
  readonly data: Uint8Array[];
  readonly d0: Uint8Array;
  readonly d2: Uint8Array;
}
