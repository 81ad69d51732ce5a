/** Publishing a configuration: a new epoch, and one KV value that all isolates read. */
import { LATENCY_UNKNOWN, type Clock } from "@agarose/core";
import { promise } from "./cache-change.ts";
import { CONFIGURATION_NAME, type Configuration, type RegionEstimate } from "../state/configuration.ts";
import { withTimeout } from "../platform/async.ts";
import type { Settings } from "../http/settings.ts";
import type { LedgerEntry } from "../state/pop-state.ts";

export interface PublishOptions {
  readonly settings: Settings;
  readonly state: { nextEpoch(): Promise<number> };
  readonly kv: KVNamespace;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onPublished: (configuration: Configuration) => void;
  readonly ledger: Iterable<LedgerEntry>;
  readonly estimates: readonly RegionEstimate[];
}

const KV_DEADLINE_MS = 10_000;
/** KV takes one write a second per key, and another publication may just have been. */
const WRITE_INTERVAL_MS = 1_100;

/** Publishes what the ledger allows to promise. Rejects when KV refuses it twice; this isolate reads by it even then. */
export async function publishConfiguration(options: PublishOptions): Promise<Configuration> {
  const { settings, state, kv, clock, now, onPublished, ledger, estimates } = options;
  const configuration: Configuration = {
    epoch: await state.nextEpoch(),
    at: now(),
    cached: promise([...ledger]),
    regions: settings.regions.map(({ name }) => {
      const unknown: RegionEstimate = { name, ...LATENCY_UNKNOWN, down: false };
      const { meanMs, sdMs, msPerByte = 0, down } = estimates.find((region) => region.name === name) ?? unknown;
      return { name, meanMs, sdMs, msPerByte, down };
    }),
  };
  onPublished(configuration);
  const text = JSON.stringify(configuration);
  const put = (): Promise<void> => withTimeout(kv.put(CONFIGURATION_NAME, text), KV_DEADLINE_MS, clock, "a KV write");
  await put().catch(async () => {
    await new Promise<void>((resolve) => clock.after(WRITE_INTERVAL_MS, resolve));
    await put();
  });
  return configuration;
}
