import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";

import { BUILDS, javascriptCodec, loadCodec, readBuild } from "./node.ts";

/** Parities computed by klauspost/reedsolomon (`native/`); the Rust tests read the same file. */
interface Golden {
  readonly vectors: readonly { readonly k: number; readonly data: string[]; readonly parity: string[] }[];
}

const golden = JSON.parse(await readFile(new URL("../golden/vectors.json", import.meta.url), "utf8")) as Golden;

test.each([...BUILDS, "javascript"] as const)("%s computes the parities of klauspost/reedsolomon", async (name) => {
  const codec = name === "javascript" ? javascriptCodec() : await loadCodec(await readBuild(name));
  expect(golden.vectors).toHaveLength(9);
  for (const { k, data, parity } of golden.vectors) {
    const rows = parity.map((_, i) => k + i);
    const computed = codec.encode(data.map(fromHex), rows).map(toHex);
    expect(computed).toEqual(parity);
  }
});

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, "hex"));
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
