import { describe, expect, test } from "vitest";
import { checkPrefix, configFromUrl, parseConfig } from "../src/config.ts";

const BASE = "https://app.test/agarose-sw.js";
const POP = { name: "fra", url: "https://fra.example/" };

function rejected(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    return error;
  }
  return expect.fail("it was accepted");
}

describe("parseConfig", () => {
  test("fills in the prefix and resolves URLs against the base", () => {
    expect(parseConfig({ pops: [POP], regions: [{ name: "dublin", url: "/bucket/" }] }, BASE)).toEqual({
      prefix: "/ec/",
      pops: [{ name: "fra", url: "https://fra.example" }],
      regions: [{ name: "dublin", url: "https://app.test/bucket" }],
    });
  });

  test("percent-encodes the prefix, as the paths of requests are", () => {
    expect(parseConfig({ prefix: "/média/", pops: [POP] }, BASE).prefix).toBe("/m%C3%A9dia/");
  });

  test.each([
    ["configuration", "no object"],
    ["configuration", {}],
    ["prefix", { prefix: "ec/", pops: [POP] }],
    ["prefix", { prefix: "/ec", pops: [POP] }],
    ["prefix", { prefix: "/ec/?x/", pops: [POP] }],
    ["prefix", { prefix: "//host/", pops: [POP] }],
    ["pops", { pops: "fra" }],
    ["pops", { pops: [{ url: "https://a" }] }],
    ["pops", { pops: [null] }],
    ["pops", { pops: [POP, POP] }],
    ["pops, fra", { pops: [{ name: "fra", url: "ftp://a" }] }],
    ["pops, fra", { pops: [{ name: "fra" }] }],
    ["regions", { pops: [POP], regions: {} }],
    ["regions, a", { regions: [{ name: "a", url: "https://key:secret@bucket.example" }] }],
    ["delta", { pops: [POP], delta: -1 }],
    ["delta", { pops: [POP], delta: "1" }],
  ])("names the field that is wrong: %s of %j", (field, input) => {
    expect(rejected(() => parseConfig(input, BASE))).toMatchObject({ code: "CONFIG_INVALID", details: { field } });
  });
});

describe("configFromUrl", () => {
  test("takes the address of a file", () => {
    expect(configFromUrl(`${BASE}?config=/agarose.json`)).toEqual({
      prefix: "/ec/",
      url: "https://app.test/agarose.json",
    });
  });

  test("takes a prefix beside it, percent-encoded", () => {
    expect(configFromUrl(`${BASE}?config=a.json&prefix=/média/`)).toEqual({
      prefix: "/m%C3%A9dia/",
      url: "https://app.test/a.json",
    });
  });

  test("is undefined for a worker's URL that asks for nothing", () => {
    expect(configFromUrl(`${BASE}?v=3`)).toBeUndefined();
  });

  test.each(["?prefix=x&config=/agarose.json", "?config="])("refuses %s", (query) => {
    expect(rejected(() => configFromUrl(BASE + query))).toMatchObject({ code: "CONFIG_INVALID" });
  });
});

test("a file whose prefix is not the one routed by says what to add to the URL", () => {
  const config = parseConfig({ prefix: "/media/", pops: [POP] }, BASE);
  expect(rejected(() => checkPrefix(config, "/ec/"))).toMatchObject({
    message: expect.stringContaining("&prefix=/media/"),
  });
});
