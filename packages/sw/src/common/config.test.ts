import { offencesOf } from "@agarose/core/testing";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configFromUrl, parseConfig } from "./config.ts";

const BASE = "https://app.test/agarose-sw.js";
const LOCAL_BASE = "http://localhost:5173/";
const POP = { name: "fra", url: "https://fra.example/" };
const KEY = `ed25519:${"A".repeat(43)}=`;

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
    const regions = [{ name: "dublin", url: "/bucket/" }];
    expect(parseConfig({ pops: [POP], regions, unsigned: true }, BASE)).toEqual({
      prefix: "/ec/",
      unsigned: true,
      pops: [{ name: "fra", url: "https://fra.example" }],
      regions: [{ name: "dublin", url: "https://app.test/bucket" }],
    });
  });

  test("percent-encodes the prefix, as the paths of requests are", () => {
    expect(parseConfig({ prefix: "/média/", pops: [POP], unsigned: true }, BASE).prefix).toBe("/m%C3%A9dia/");
  });

  test.each([
    ["configuration", "no object"],
    ["configuration", {}],
    ["prefix", { prefix: "ec/", pops: [POP] }],
    ["prefix", { prefix: "/ec", pops: [POP] }],
    ["prefix", { prefix: "/ec/?x/", pops: [POP] }],
    ["prefix", { prefix: "//host/", pops: [POP] }],
    ["prefix", { prefix: "/.//", pops: [POP] }],
    ["prefix", { prefix: "/", pops: [POP] }],
    ["prefix", { prefix: "/./", pops: [POP] }],
    ["prefix", { prefix: "/a/../", pops: [POP] }],
    ["prefix", { prefix: "/%2e/", pops: [POP] }],
    ["pops", { pops: "fra" }],
    ["pops", { pops: [{ url: "https://a" }] }],
    ["pops", { pops: [null] }],
    ["pops", { pops: [POP, POP] }],
    ["pops", { pops: [{ name: "fra", url: "ftp://a" }] }],
    ["pops", { pops: [{ name: "fra" }] }],
    ["regions", { pops: [POP], regions: {} }],
    ["regions", { regions: [{ name: "a", url: "https://key:secret@bucket.example" }] }],
    ["delta", { pops: [POP], unsigned: true, delta: -1 }],
    ["delta", { pops: [POP], unsigned: true, delta: "1" }],
    ["publicKeys", { pops: [POP] }],
    ["publicKeys", { pops: [POP], unsigned: false }],
    ["publicKeys", { pops: [POP], unsigned: "yes" }],
    ["publicKeys", { pops: [POP], publicKeys: [] }],
    ["publicKeys", { pops: [POP], publicKeys: {} }],
    ["publicKeys", { pops: [POP], publicKeys: "\0" }],
    ["publicKeys", { pops: [POP], publicKeys: ["ed25519:AAAA"] }],
    ["publicKeys", { pops: [POP], publicKeys: [KEY], unsigned: true }],
  ])("names the field that is wrong: %s of %j", (field, input) => {
    expect(rejected(() => parseConfig(input, BASE))).toMatchObject({ code: "CONFIG_INVALID", details: { field } });
  });
});

describe("whose manifests a client uses", () => {
  test("without a key and without `unsigned`, the message says how to make a key", () => {
    expect(rejected(() => parseConfig({ pops: [POP] }, BASE))).toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("`agarose keys new`"),
    });
  });

  test.each(["http://127.0.0.1:8080", "http://localhost/bucket", "http://127.0.0.2:9"])(
    "a world on this machine, at %s, needs neither",
    (url) => {
      expect(parseConfig({ pops: [{ name: "a", url }] }, LOCAL_BASE)).toMatchObject({ pops: [{ url }] });
    },
  );

  test("an app that others open needs one of them, though its PoPs are at addresses of this machine", () => {
    const pops = [{ name: "a", url: "http://127.0.0.1:8080" }];
    expect(rejected(() => parseConfig({ pops }, BASE))).toMatchObject({ details: { field: "publicKeys" } });
  });

  test.each([
    "http://127.0.0.1.evil.example",
    "https://localhost.example",
    "http://0x7f.evil.example",
    "https://my-localhost",
    "http://127.evil.example",
  ])("one address elsewhere, such as %s, ends that", (url) => {
    const pops = [
      { name: "a", url: "http://127.0.0.1:8080" },
      { name: "b", url },
    ];
    expect(rejected(() => parseConfig({ pops }, LOCAL_BASE))).toMatchObject({ details: { field: "publicKeys" } });
  });
});

test("whatever a file holds, it is refused by name or becomes a configuration that the next one takes as it is", () => {
  const mostly = (good: fc.Arbitrary<unknown>, ...bad: readonly fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 15, arbitrary: good }, ...bad, fc.jsonValue());
  const odd = fc.constantFrom("/bucket", "//host", "javascript:0", "https://a:b@c", "");
  const endpoint = fc.record({ name: mostly(fc.string({ minLength: 1 })), url: mostly(fc.webUrl(), odd) });
  const endpoints = mostly(fc.array(mostly(endpoint), { maxLength: 3 }));
  const prefix = mostly(
    fc.webPath().map((path) => `${path}/`),
    fc.string(),
  );
  const fields = {
    prefix,
    pops: endpoints,
    regions: endpoints,
    delta: mostly(fc.nat({ max: 255 }), fc.integer()),
    unsigned: mostly(fc.constant(true)),
  };
  const input = mostly(fc.record(fields, { requiredKeys: [] }));
  const counts = { taken: 0, refused: 0 };
  fc.assert(
    fc.property(input, (json) => {
      let config;
      try {
        config = parseConfig(json, BASE);
      } catch (error) {
        expect(error).toMatchObject({ code: "CONFIG_INVALID", details: { field: expect.any(String) } });
        return void counts.refused++;
      }
      counts.taken++;
      expect(config.prefix).toMatch(/^\/([^?#]*\/)?$/);
      expect(new URL(config.prefix, BASE).origin, "the prefix is a path of the app").toBe(new URL(BASE).origin);
      for (const one of [...config.pops, ...config.regions]) {
        const { protocol, username, password } = new URL(one.url);
        expect([protocol.replace("s:", ":"), username, password]).toEqual(["http:", "", ""]);
      }
      expect(parseConfig(config, "https://elsewhere.test/")).toEqual(config);
    }),
    { numRuns: 2_000 },
  );
  expect(counts.taken).toBeGreaterThan(50);
  expect(counts.refused).toBeGreaterThan(50);
});

describe("configFromUrl", () => {
  test("takes the address of a file", () => {
    expect(configFromUrl(`${BASE}?config=/agarose.json`)).toEqual({
      prefix: "/ec/",
      url: "https://app.test/agarose.json",
      claim: true,
      navigations: false,
    });
    expect(configFromUrl(`${BASE}?config=/agarose.json&claim=no`)).toMatchObject({ claim: false });
  });

  test("takes a prefix beside it, percent-encoded", () => {
    expect(configFromUrl(`${BASE}?config=a.json&prefix=/média/`)).toEqual({
      prefix: "/m%C3%A9dia/",
      url: "https://app.test/a.json",
      claim: true,
      navigations: false,
    });
  });

  test("is undefined for a worker's URL that asks for nothing", () => {
    expect(configFromUrl(`${BASE}?v=3`)).toBeUndefined();
  });

  test.each([
    "?prefix=x&config=/agarose.json",
    "?prefix=/&config=/agarose.json",
    "?config=",
    "?config=https://evil.test/agarose.json",
    "?config=//evil.test/agarose.json",
  ])("refuses %s", (query) => {
    expect(rejected(() => configFromUrl(BASE + query))).toMatchObject({ code: "CONFIG_INVALID" });
  });
});

test(
  "hostile bytes in place of a configuration end in a typed error, in bounded time",
  { timeout: 300_000 },
  async () => {
    const sample = { pops: [POP], publicKeys: [KEY], regions: [{ name: "r0", url: "https://r0.example/b" }] };
    const offences = await offencesOf((_, text) => parseConfig(jsonOf(text), BASE), sample);
    expect(offences).toEqual([]);
  },
);

/** Answers that `fetchConfig` refuses before parsing. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
