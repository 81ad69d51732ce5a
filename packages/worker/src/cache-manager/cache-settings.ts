/** How a PoP caches, as its variables say. */
import { POLICY_NAMES } from "@agarose/solver";
import { amount, choice, flag, parseVariables, wholeNumber } from "../platform/variables.ts";
import type { SpendingSettings } from "./write-budget.ts";

/** The settings of this room. */
export interface CacheSettings {
  /** Capacity of the chunk cache. */
  readonly cacheBytes: number;
  /** One of the solver's policies, or `off`: cache nothing, and evict what is cached. */
  readonly policy: string;
  /** Whether the cache holds parity rows that no region has, instead of copies of stored chunks. */
  readonly functional: boolean;
  /** Whether the cache holds data chunks of regions that are down instead of parity. */
  readonly recovered: boolean;
  readonly spending: SpendingSettings;
}

/** `clairvoyant` needs to know the future; `backend` caches nothing and evicts nothing. */
const NOT_FOR_POPS: ReadonlySet<string> = new Set(["clairvoyant", "backend"]);
const POLICIES = [...POLICY_NAMES.filter((name) => !NOT_FOR_POPS.has(name)), "off"];

/**
 * The variables of this room. Prices default to Cloudflare's for Workers Paid
 * (developers.cloudflare.com/kv/platform/pricing, 2026).
 */
export const CACHE_VARIABLES = {
  CACHE_BYTES: wholeNumber("How many bytes of chunks the PoP keeps in KV.", 1e9, Number.MAX_SAFE_INTEGER),
  POLICY: choice(
    "The policy that decides what to cache; `off` caches nothing and evicts what is cached.",
    POLICIES,
    "adaptive",
  ),
  FUNCTIONAL: flag("Whether to cache new parity rows (functional chunks) instead of copies of stored chunks.", true),
  RECOVERED: flag(
    "Whether to cache the data chunks of a region that is down instead of parity, so that reads decode less.",
    true,
  ),
  BUDGET_USD_PER_PERIOD: amount(
    "What KV operations of one period may cost; the rest waits. Empty: no limit.",
    Infinity,
  ),
  BUDGET_USD_PER_MONTH: amount(
    "What KV operations of one calendar month may cost; the rest waits. Empty: no limit.",
    Infinity,
  ),
  KV_WRITE_USD_PER_MILLION: amount("The price of a million KV writes or deletes.", 5),
  KV_READ_USD_PER_MILLION: amount("The price of a million KV reads.", 0.5),
};

/** Checks the variables of this room. Throws CONFIG_INVALID. */
export function parseCacheSettings(env: object): CacheSettings {
  const variables = parseVariables(CACHE_VARIABLES, env);
  return {
    cacheBytes: variables.CACHE_BYTES,
    policy: variables.POLICY,
    functional: variables.FUNCTIONAL,
    recovered: variables.RECOVERED,
    spending: {
      writeUsdPerMillion: variables.KV_WRITE_USD_PER_MILLION,
      readUsdPerMillion: variables.KV_READ_USD_PER_MILLION,
      usdPerPeriod: variables.BUDGET_USD_PER_PERIOD,
      usdPerMonth: variables.BUDGET_USD_PER_MONTH,
    },
  };
}
