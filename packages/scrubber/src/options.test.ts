import { expect, test } from "vitest";
import { parseConfig } from "@agarose/storage/config/config";
import { parseOptions } from "./options.ts";

const REGIONS = ["a", "b", "c"].map((name) => ({
  name,
  provider: name,
  endpoint: "http://127.0.0.1:1",
  bucket: `bucket-${name}`,
}));

const configWith = (fields: object) =>
  parseConfig(JSON.stringify({ regions: REGIONS, code: { k: 2, m: 1 }, ...fields }), "test");

test("options are spelled as those of the command", () => {
  const spelled = { prefix: "a/", every: "6h", age: "30d", sample: "1%", bandwidth: "10MB/s", budget: "5" };
  expect(parseOptions(spelled, configWith({}))).toEqual({
    prefix: "a/",
    everyMs: 21_600_000,
    concurrency: 16,
    requests: Infinity,
    objectsPerPart: 1_000,
    stepsMax: 9_000,
    deep: { everyMs: 21_600_000, ageMs: 2_592_000_000, share: 0.01, bytesPerSecond: 10_000_000, usd: 5 },
  });
});

test.each([
  { age: "soon" },
  { sample: "2" },
  { bandwidth: "10" },
  { objectsPerPart: 0 },
  { stepsMax: 3 },
  { concurrency: 1.5 },
  { requests: Number.NaN },
])("%j is refused", (options) => {
  expect(() => parseOptions(options, configWith({}))).toThrow(expect.objectContaining({ code: "USAGE" }));
});

test.each([
  ["credentials", { credentials: { profile: "work" } }],
  [
    "credentials of region a",
    { regions: [{ ...REGIONS[0], credentials: { command: ["keys"] } }, ...REGIONS.slice(1)] },
  ],
  ["signing", { publicKeys: [`ed25519:${"A".repeat(43)}=`], signing: { keyFile: "key.pem" } }],
])("a configuration whose %s are not in variables is refused: a Worker has no files", (field, fields) => {
  const refused = expect.objectContaining({ code: "CONFIG_INVALID", details: { field } });
  expect(() => parseOptions({}, configWith(fields))).toThrow(refused);
});

test("keys, signing and secrets in variables are taken", () => {
  const names = { accessKeyId: "A", secretAccessKey: "B" };
  const fields = {
    credentials: { env: names },
    publicKeys: [`ed25519:${"A".repeat(43)}=`],
    signing: { environment: "SIGNING_KEY" },
    encryption: [{ prefix: "private/", secrets: [{ environment: "SECRET" }] }],
  };
  expect(() => parseOptions({}, configWith(fields))).not.toThrow();
});
