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

  test("takes names and URLs, which may have an equals sign of their own", () => {
    const query =
      "?prefix=/media/&pops=fra=https://fra.example&delta=2&regions=a=https://a.example/x%3Dy,b=https://b.example";
    expect(configFromUrl(BASE + query)).toEqual({
      prefix: "/media/",
      config: {
        prefix: "/media/",
        pops: [{ name: "fra", url: "https://fra.example" }],
        regions: [
          { name: "a", url: "https://a.example/x=y" },
          { name: "b", url: "https://b.example" },
        ],
        delta: 2,
      },
    });
  });

  test("is undefined for a worker's URL that asks for nothing", () => {
    expect(configFromUrl(`${BASE}?v=3`)).toBeUndefined();
  });

  test.each([
    "?pops=fra",
    "?pops=",
    "?pops=fra=nothing:",
    "?prefix=x&pops=fra=https://a",
    "?pops=a=https://a&delta=",
    "?config=",
  ])("refuses %s", (query) => {
    expect(rejected(() => configFromUrl(BASE + query))).toMatchObject({ code: "CONFIG_INVALID" });
  });
});

test("a file whose prefix is not the one routed by says what to add to the URL", () => {
  const config = parseConfig({ prefix: "/media/", pops: [POP] }, BASE);
  expect(rejected(() => checkPrefix(config, "/ec/"))).toMatchObject({
    message: expect.stringContaining("&prefix=/media/"),
  });
});
