import { expect, test } from "vitest";
import type { Config } from "@agarose/storage/config/config";
import { regionWarnings } from "./deploy.ts";
import type { PopEnvironment } from "./deployment.ts";

const EXAMPLE = { name: "frankfurt", url: "https://agarose-frankfurt.s3.eu-central-1.amazonaws.com" };
const OWN = { name: "fra", url: "https://mine.example/fra" };
const config = { regions: [OWN] } as unknown as Config;
const pop = (regions: unknown): PopEnvironment =>
  ({ name: "fra", vars: { REGIONS: JSON.stringify(regions) } }) as unknown as PopEnvironment;

test("the example's buckets are warned of, with and without a configuration", () => {
  const warning = "REGIONS of [env.fra] still names the example's buckets: replace them with yours";
  expect(regionWarnings([pop([EXAMPLE])], config)).toEqual([warning]);
  expect(regionWarnings([pop([EXAMPLE])], undefined)).toEqual([warning]);
});

test("the configuration's own buckets are not", () => {
  expect(regionWarnings([pop([{ ...OWN, url: `${OWN.url}/` }])], config)).toEqual([]);
  expect(regionWarnings([pop([OWN])], undefined)).toEqual([]);
});

test("differences are named", () => {
  expect(regionWarnings([pop([{ name: "lhr", url: "https://x.example" }])], config)).toEqual([
    "REGIONS of [env.fra] lacks fra of the configuration",
    "REGIONS of [env.fra] names lhr, which the configuration does not have",
  ]);
  expect(regionWarnings([pop([{ ...OWN, url: "https://x.example" }])], config)).toEqual([
    "REGIONS of [env.fra] has https://x.example for fra, the configuration https://mine.example/fra",
  ]);
});

test.each(["no JSON", "{}", '[{"name": 1}]'])("malformed REGIONS are left to the Worker: %s", (text) => {
  const broken = { name: "fra", vars: { REGIONS: text } } as unknown as PopEnvironment;
  expect(regionWarnings([broken], undefined)).toEqual([]);
});
