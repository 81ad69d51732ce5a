/** How a PoP caches, as its variables say. */
import { pricesInMs, SLOTS, type MsPrices } from "@agarose/solver/planner";
import { POLICY_NAMES } from "@agarose/solver/policies";
import { amount, choice, flag, parseVariables, wholeNumber } from "../runtime/variables.ts";
import type { ConfiguredRegion } from "../regions/region-settings.ts";
import type { SpendingSettings } from "./write-budget.ts";

const POLICIES = [...POLICY_NAMES, "off"];

/**
 * The variables of this room. Prices default to Cloudflare's for Workers Paid
 * (developers.cloudflare.com/kv/platform/pricing, 2026).
 */
export const CACHE_VARIABLES = {
  CACHE_BYTES: wholeNumber(
    "How many bytes of chunks the PoP keeps in KV at most, and no more than `BUDGET_USD_PER_MONTH` stores.",
    1e9,
    Number.MAX_SAFE_INTEGER,
  ),
  POLICY: choice(
    "The policy that chooses chunks to cache; `off` caches nothing and evicts all chunks.",
    POLICIES,
    "adaptive",
  ),
  KNOWN_OBJECTS: wholeNumber(
    "How many objects the policy distinguishes. Memory and the time of a period grow with it (docs/internals/policies-measured.md): a Worker has 128 MB.",
    SLOTS,
    1_000_000,
  ),
  EXCHANGE_SECONDS: wholeNumber(
    "How often the PoP exchanges the chunks that it keeps in the Cache API between two periods, and 0 for never. Those chunks are " +
      "free, and the Cache API may forget them.",
    5,
    60,
  ),
  FUNCTIONAL: flag("Whether to cache new parity rows (functional chunks) instead of copies of stored chunks.", true),
  RECOVERED: flag(
    "Whether to cache the data chunks of a region that is down instead of parity, so that reads decode less.",
    true,
  ),
  BUDGET_USD_PER_PERIOD: amount(
    "The cost limit of KV operations in one period; the rest waits. Empty: no limit.",
    Infinity,
  ),
  BUDGET_USD_PER_MONTH: amount(
    "The cost limit of KV operations in one calendar month; the rest waits. Empty: no limit.",
    Infinity,
  ),
  FILL_EGRESS_BYTES_PER_DAY: wholeNumber(
    "How many bytes the PoP fetches from the regions to fill its cache on one day, UTC; the rest waits, and useful chunks stay. Reads do not count.",
    20e9,
    Number.MAX_SAFE_INTEGER,
  ),
  KV_WRITE_USD_PER_MILLION: amount("The price of a million KV writes or deletes.", 5),
  KV_READ_USD_PER_MILLION: amount("The price of a million KV reads.", 0.5),
  KV_STORAGE_USD_PER_GB_MONTH: amount("The price of a GB in KV for a month.", 0.5),
  WAITING_USD_PER_HOUR: amount(
    "The worth of an hour of readers' waiting, to weigh milliseconds against the prices above and egress; 0 weighs none.",
    1,
  ),
};

/** The settings of this room. */
export type CacheSettings = ReturnType<typeof parseCacheSettings>;

/** Checks the variables of this room. Throws CONFIG_INVALID. */
export function parseCacheSettings(env: object) {
  const {
    kvWriteUsdPerMillion: writeUsdPerMillion,
    kvReadUsdPerMillion: readUsdPerMillion,
    kvStorageUsdPerGbMonth: storageUsdPerGbMonth,
    budgetUsdPerPeriod: usdPerPeriod,
    budgetUsdPerMonth: usdPerMonth,
    ...settings
  } = parseVariables(CACHE_VARIABLES, env);
  const spending: SpendingSettings = { writeUsdPerMillion, readUsdPerMillion, usdPerPeriod, usdPerMonth };
  return {
    ...settings,
    cacheBytes: Math.min(settings.cacheBytes, bytesFor(usdPerMonth, storageUsdPerGbMonth)),
    knownObjects: Math.max(1, settings.knownObjects),
    spending,
    storageUsdPerGbMonth,
  };
}

/** Returns how many bytes a month's budget stores. */
function bytesFor(usdPerMonth: number, usdPerGbMonth: number): number {
  return usdPerGbMonth === 0 ? Infinity : Math.floor((usdPerMonth / usdPerGbMonth) * 1e9);
}

type PricedRegion = Pick<ConfiguredRegion, "name" | "egressUsdPerGb">;

/** Returns the price of a GB from each region. */
export function egressOf(regions: readonly PricedRegion[]): ReadonlyMap<string, number> {
  return new Map(regions.map(({ name, egressUsdPerGb = 0 }) => [name, egressUsdPerGb]));
}

/** Returns what reads, writes and the cache cost, as milliseconds; undefined where only milliseconds count. */
export function pricesOf(
  { spending, storageUsdPerGbMonth, waitingUsdPerHour }: CacheSettings,
  regions: readonly PricedRegion[],
): MsPrices | undefined {
  if (waitingUsdPerHour === 0) return undefined;
  return pricesInMs({
    waitingPerHour: waitingUsdPerHour,
    writePerMillion: spending.writeUsdPerMillion,
    storagePerGbMonth: storageUsdPerGbMonth,
    egressPerGb: egressOf(regions),
  });
}
