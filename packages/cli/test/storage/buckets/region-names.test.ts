import { expect, test } from "vitest";
import type { Manifest } from "@agarose/core/format";
import { configOfFields } from "@agarose/storage/config/config";
import { clientConfigOf } from "../../../src/lib/files/client-config.ts";
import { sharedVariables } from "../../../src/lib/pop-variables.ts";
import { currentNames, hasFormerName, regionsByName, withCurrentNames } from "@agarose/storage/buckets/region-names";

function configWith(regions: readonly object[]) {
  const fields = {
    regions: regions.map((region) => ({ provider: "p", endpoint: "http://localhost:9000", bucket: "own", ...region })),
    unsigned: true,
  };
  return configOfFields(fields, "agarose.config.json");
}

const RENAMED = configWith([{ name: "west", formerly: "ireland" }, { name: "east" }]);
const manifest = (placement: readonly string[], leaves?: readonly string[]): Manifest =>
  ({ placement, ...(leaves && { leaves }) }) as unknown as Manifest;

test("names of a manifest become those of now, and a name of no region stays", () => {
  expect(currentNames(["ireland", "east", "west", "gone"], RENAMED.regions)).toEqual(["west", "east", "west", "gone"]);
  expect(withCurrentNames(manifest(["ireland"], ["east", "ireland"]), RENAMED.regions)).toEqual({
    placement: ["west"],
    leaves: ["east", "west"],
  });
  expect(withCurrentNames(manifest(["east"]), RENAMED.regions)).toEqual({ placement: ["east"] });
});

test.each([
  ["a chunk", manifest(["ireland", "east"]), true],
  ["a leaf list", manifest(["east"], ["ireland"]), true],
  ["neither", manifest(["west", "east"], ["west"]), false],
])("a manifest has a former name where %s does", (_, one, expected) => {
  expect(hasFormerName(one, RENAMED.regions)).toBe(expected);
});

test("PoPs and pages get the bucket under both names", () => {
  const url = "http://localhost:9000/own";
  const both = [
    { name: "west", url },
    { name: "ireland", url },
    { name: "east", url },
  ];
  expect(JSON.parse(sharedVariables(RENAMED, { hasBindings: false })["REGIONS"]!)).toEqual(both);
  expect(clientConfigOf(RENAMED).regions).toEqual(both);
  const plain = configWith([{ name: "west" }]);
  expect(regionsByName(plain.regions)).toEqual(plain.regions);
});

test.each([
  ["its own", [{ name: "west", formerly: "west" }]],
  ["that of another region", [{ name: "west", formerly: "east" }, { name: "east" }]],
  [
    "the former one of another region",
    [
      { name: "west", formerly: "x" },
      { name: "east", formerly: "x" },
    ],
  ],
])("a former name that is %s is refused", (_, regions) => {
  expect(() => configWith(regions)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});
