import { describe, expect, test } from "vitest";
import { parsePopSettings } from "./peer-settings.ts";

const parsePeers = (pop: string, list: string | undefined, key: string | undefined) =>
  parsePopSettings({ POP: pop, PEERS: list, PEER_KEY: key }).peers;

const KEY = "a secret of the PoPs";
const LIST = JSON.stringify([
  { name: "fra", url: "https://fra.example/" },
  { name: "lhr", url: "https://lhr.example" },
]);

describe("the peers of a PoP", () => {
  test("are the others of a list that all PoPs share", () => {
    expect(parsePeers("fra", LIST, KEY)).toEqual({ key: KEY, pops: [{ name: "lhr", url: "https://lhr.example" }] });
    expect(parsePeers("iad", LIST, KEY)?.pops.map(({ url }) => url)).toEqual([
      "https://fra.example",
      "https://lhr.example",
    ]);
  });

  test.each([
    ["without a list", undefined, KEY],
    ["with an empty list", "[]", KEY],
    ["with `off`", "off", KEY],
    ["with itself alone in the list", JSON.stringify([{ name: "fra", url: "https://fra.example" }]), KEY],
    ["without a key", LIST, undefined],
  ])("are none %s", (_, list, key) => {
    expect(parsePeers("fra", list, key)).toBeUndefined();
  });

  test.each([
    ["no JSON", "["],
    ["no list", '{"name":"lhr"}'],
    ["a PoP without a name", '[{"url":"https://a.example"}]'],
    ["a PoP twice", '[{"name":"a","url":"https://a.example"},{"name":"a","url":"https://b.example"}]'],
    ["a PoP without a URL", '[{"name":"lhr"}]'],
    ["a URL of another scheme", '[{"name":"lhr","url":"ftp://a.example"}]'],
    ["null", "[null]"],
  ])("are refused when the list is or has %s", (_, list) => {
    expect(() => parsePeers("fra", list, KEY)).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", details: { variable: "PEERS" } }),
    );
  });
});
