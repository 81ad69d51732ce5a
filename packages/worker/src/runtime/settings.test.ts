import { describe, expect, test } from "vitest";
import { pricesOf } from "../cache/cache-settings.ts";
import { parseSettings, type VARIABLES } from "./settings.ts";

const REGIONS = JSON.stringify([{ name: "r0", url: "https://r0.example" }]);
const settingsOf = (vars: Partial<Record<keyof typeof VARIABLES, string>> = {}) =>
  parseSettings({ POP: "fra", REGIONS, UNSIGNED: "true", ...vars });

describe("the variables of the cache manager", () => {
  test("have defaults: the adaptive policy, functional chunks, Cloudflare's prices, no limit", () => {
    expect(settingsOf()).toMatchObject({
      policy: "adaptive",
      functional: true,
      recovered: true,
      delta: 1,
      spending: { writeUsdPerMillion: 5, readUsdPerMillion: 0.5, usdPerPeriod: Infinity, usdPerMonth: Infinity },
    });
  });

  test.each(["agar", "exact", "online", "lfu", "lru", "sprout", "adaptive", "off"])("POLICY may be %s", (policy) => {
    expect(settingsOf({ POLICY: policy }).policy).toBe(policy);
  });

  test("are amounts of money, or empty for the default", () => {
    const { spending } = settingsOf({ BUDGET_USD_PER_MONTH: "12.50", BUDGET_USD_PER_PERIOD: "" });
    expect(spending).toMatchObject({ usdPerMonth: 12.5, usdPerPeriod: Infinity });
  });

  test("a cache is no larger than a month's budget stores", () => {
    expect(settingsOf().cacheBytes).toBe(1e9);
    expect(settingsOf({ BUDGET_USD_PER_MONTH: "20" }).cacheBytes).toBe(1e9);
    expect(settingsOf({ BUDGET_USD_PER_MONTH: "20", CACHE_BYTES: "500000000000" }).cacheBytes).toBe(40e9);
    expect(settingsOf({ BUDGET_USD_PER_MONTH: "0.1" }).cacheBytes).toBe(0.2e9);
    expect(settingsOf({ BUDGET_USD_PER_MONTH: "0.1", KV_STORAGE_USD_PER_GB_MONTH: "0" }).cacheBytes).toBe(1e9);
  });

  test("prices count by what an hour of waiting is worth, and not at all where that is 0", () => {
    const dear = [{ name: "r0", egressUsdPerGb: 0.09 }, { name: "r1" }];
    const prices = pricesOf(settingsOf({ WAITING_USD_PER_HOUR: "2" }), dear);
    expect(prices?.write).toBeCloseTo(9, 9);
    expect([...prices!.egressPerByte.keys()]).toEqual(["r0"]);
    expect(pricesOf(settingsOf({ WAITING_USD_PER_HOUR: "0" }), dear)).toBeUndefined();
  });

  test.each([
    ["POLICY", "clairvoyant"],
    ["POLICY", "backend"],
    ["POLICY", ""],
    ["FUNCTIONAL", "yes"],
    ["BUDGET_USD_PER_MONTH", "-1"],
    ["BUDGET_USD_PER_MONTH", "1e3"],
    ["BUDGET_USD_PER_PERIOD", "$5"],
    ["KV_WRITE_USD_PER_MILLION", "NaN"],
    ["KV_READ_USD_PER_MILLION", ".5"],
  ] as const)("%s = %j is refused by name", (name, value) => {
    expect(() => settingsOf({ [name]: value })).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => settingsOf({ [name]: value })).toThrow(`variable ${name} is ${JSON.stringify(value)}`);
  });
});

test("an ADMIN_TOKEN of 15 characters is refused, one of 16 is taken, and the message does not show it", () => {
  const token = "0123456789abcde";
  expect(() => settingsOf({ ADMIN_TOKEN: token })).toThrow("ADMIN_TOKEN has 15 characters: at least 16");
  expect(() => settingsOf({ ADMIN_TOKEN: token })).not.toThrow(token);
  expect(() => settingsOf({ ADMIN_TOKEN: `${token}f` })).not.toThrow();
});

test("MEMORY_BYTES is 16 MiB, or what it says", () => {
  expect(settingsOf().memoryBytes).toBe(16 * 1024 * 1024);
  expect(settingsOf({ MEMORY_BYTES: "500000000" }).memoryBytes).toBe(500_000_000);
  expect(() => settingsOf({ MEMORY_BYTES: "1 GB" })).toThrow("variable MEMORY_BYTES");
});

describe("whose manifests a PoP uses", () => {
  const KEYS = JSON.stringify([`ed25519:${"A".repeat(43)}=`]);

  test("is said by PUBLISHER_KEYS, or by UNSIGNED", () => {
    expect(settingsOf({ UNSIGNED: "false", PUBLISHER_KEYS: KEYS }).publisherKeys).toHaveLength(1);
    expect(settingsOf({ UNSIGNED: "true", PUBLISHER_KEYS: "[]" }).publisherKeys).toEqual([]);
  });

  test.each([
    ["neither", { UNSIGNED: "false", PUBLISHER_KEYS: "[]" }],
    ["both", { UNSIGNED: "true", PUBLISHER_KEYS: KEYS }],
  ])("%s of them is refused, and the message says how to make a key", (_which, vars) => {
    expect(() => settingsOf(vars)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => settingsOf(vars)).toThrow("`agarose keys new`");
  });
});

describe("the price of a GB out of a region", () => {
  const priced = (egressUsdPerGb: unknown) =>
    settingsOf({ REGIONS: JSON.stringify([{ name: "r0", url: "https://r0.example", egressUsdPerGb }]) }).regions[0];

  test("is what REGIONS says, and nothing by default", () => {
    expect(priced(0.09)?.egressUsdPerGb).toBe(0.09);
    expect(priced(undefined)?.egressUsdPerGb ?? 0).toBe(0);
  });

  test.each([[-0.01], ["0.09"], [null], [[]]])("of %j is refused", (price) => {
    expect(() => priced(price)).toThrow("egressUsdPerGb");
  });
});
