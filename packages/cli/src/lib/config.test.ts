import { describe, expect, test } from "vitest";
import { loadConfig, parseConfig } from "./config.ts";

const REGION = { name: "fra", provider: "aws", endpoint: "https://s3.example/", bucket: "chunks-fra" };
const CONFIG = { regions: [REGION], code: { k: 4, m: 2 } };

function parse(json: unknown): ReturnType<typeof parseConfig> {
  return parseConfig(JSON.stringify(json), "agarose.json");
}

test("defaults are filled in", () => {
  expect(parse(CONFIG)).toEqual({
    regions: [
      { ...REGION, endpoint: "https://s3.example", awsRegion: "us-east-1", url: "https://s3.example/chunks-fra" },
    ],
    code: { k: 4, m: 2 },
    stripeBytes: 4 * 1024 * 1024,
    survive: { regions: 1, providers: 0 },
    pops: [],
  });
});

test("a public URL of its own is kept", () => {
  const url = "https://cdn.example/fra";
  expect(parse({ ...CONFIG, regions: [{ ...REGION, url: `${url}/` }] }).regions[0]?.url).toBe(url);
});

describe("what is wrong is named by its path", () => {
  test.each([
    ["regions", { ...CONFIG, regions: [] }],
    ["regions", { ...CONFIG, regions: [REGION, REGION] }],
    ["regions.0.endpoint", { ...CONFIG, regions: [{ ...REGION, endpoint: "ftp://x" }] }],
    ["regions.0.endpoint", { ...CONFIG, regions: [{ ...REGION, endpoint: "no url" }] }],
    ["regions.0.bucket", { ...CONFIG, regions: [{ ...REGION, bucket: "Bucket_1" }] }],
    ["regions.0.provider", { ...CONFIG, regions: [{ name: "a", endpoint: "https://x", bucket: "bbb" }] }],
    ["regions.0.secretAccessKey", { ...CONFIG, regions: [{ ...REGION, secretAccessKey: "no" }] }],
    ["regions.0.name", { ...CONFIG, regions: [{ ...REGION, name: "a b" }] }],
    ["code", { regions: [REGION] }],
    ["code.k", { ...CONFIG, code: { k: "4", m: 2 } }],
    ["code.m", { ...CONFIG, code: { k: 4, m: 1.5 } }],
    ["survive.providers", { ...CONFIG, survive: { regions: 1, providers: -1 } }],
    ["pops.0.url", { ...CONFIG, pops: [{ name: "fra", url: "x" }] }],
    ["stripebytes", { ...CONFIG, stripebytes: 5 }],
  ])("%s", (field, json) => {
    expect(() => parse(json)).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        message: expect.stringContaining(`\`${field}\``),
        details: expect.objectContaining({ path: "agarose.json" }),
      }),
    );
  });
});

test.each([
  ["`code` is missing", { regions: [REGION] }],
  ["`codee` is no field of this file", { ...CONFIG, codee: 1 }],
  ["`code.k` must be of type number", { ...CONFIG, code: { k: "4", m: 2 } }],
  ["agarose.json must be of type object, and is null", null],
])("the message says it in plain words: %s", (words, json) => {
  expect(() => parse(json)).toThrow(words);
});

test("a byte order mark is no matter", () => {
  expect(parseConfig(`\uFEFF${JSON.stringify(CONFIG)}`, "agarose.json")).toEqual(parse(CONFIG));
});

test.each([
  { k: 0, m: 1 },
  { k: 128, m: 1 },
])("the code %j is CODE_INVALID", (code) => {
  expect(() => parse({ ...CONFIG, code })).toThrow(expect.objectContaining({ code: "CODE_INVALID" }));
});

test.each([0, 16 * 1024 * 1024 + 1])("stripes of %i bytes are CODE_INVALID", (stripeBytes) => {
  expect(() => parse({ ...CONFIG, stripeBytes })).toThrow(expect.objectContaining({ code: "CODE_INVALID" }));
});

test("a file that is not there, or is not JSON, is CONFIG_INVALID", async () => {
  await expect(loadConfig("/no/such/agarose.json")).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("--config"),
  });
  expect(() => parseConfig("{", "x.json")).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});
