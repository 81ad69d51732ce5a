/** Publishing a configuration: a new epoch, and one KV value that all isolates read. */
import type { RegionEstimate } from "@agarose/solver/planner";
import { sleep, withTimeout } from "../runtime/async.ts";
import { estimateOf } from "../regions/region-latency.ts";
import { CONFIGURATION_NAME, formatConfiguration, type Configuration } from "./configuration.ts";
import type { LedgerEntry } from "./ledger.ts";
import { promise } from "./cache-change.ts";
import type { PeriodContext } from "./period-context.ts";

const KV_DEADLINE_MS = 10_000;
/** KV takes one write a second per key, and another publication may have preceded this one. */
const WRITE_INTERVAL_MS = 1_100;

/**
 * Publishes what the ledger allows to promise. Rejects with READ_TIMEOUT or KV's error when KV refuses it twice;
 * `onPublished` is called even then.
 */
export async function publishConfiguration(
  { settings, state, cache, system }: Pick<PeriodContext, "settings" | "state" | "cache" | "system">,
  ledger: Iterable<LedgerEntry>,
  estimates: readonly RegionEstimate[],
): Promise<Configuration> {
  const configuration: Configuration = {
    epoch: await state.nextEpoch(),
    at: system.now(),
    cached: promise([...ledger]),
    regions: settings.regions.map((region) => {
      const { name, meanMs, sdMs, msPerByte = 0, down } = estimateOf(region.name, estimates);
      return { name, meanMs, sdMs, msPerByte, down };
    }),
  };
  cache.onPublished(configuration);
  const text = formatConfiguration(configuration);
  const put = (): Promise<void> =>
    withTimeout(cache.kv.kv.put(CONFIGURATION_NAME, text), KV_DEADLINE_MS, system.clock, "a KV write");
  await put().catch(async () => {
    await sleep(WRITE_INTERVAL_MS, system.clock);
    await put();
  });
  return configuration;
}
