import { expect, test } from "vitest";
import type { Config } from "../config/config.ts";
import { namesDrained } from "./object-layout.ts";

const config = {
  regions: [{ name: "dublin", formerly: "ireland", drain: true }, { name: "frankfurt" }],
} as unknown as Config;
const extra = (region: string) => ({ upload: "0".repeat(32), placement: [region], sha256: ["0".repeat(64)] });

test.each([
  ["a leaf list there", { leaves: ["dublin"] }, true],
  ["an extra chunk there", { extra: extra("dublin") }, true],
  ["an extra chunk there by the region's former name", { leaves: ["frankfurt"], extra: extra("ireland") }, true],
  ["both elsewhere", { leaves: ["frankfurt"], extra: extra("frankfurt") }, false],
  ["neither", {}, false],
])("an object of a region that is being emptied has to be stored again with %s", (_, manifest, expected) => {
  expect(namesDrained(manifest, config)).toBe(expected);
});
