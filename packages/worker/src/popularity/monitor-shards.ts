/** The shards of the request monitor: which one counts a key, and calls to all of them. */
import { durableObject, type PlaceBinding } from "../runtime/durable-objects.ts";
import { fnv1a } from "./frequency-sketch.ts";
import type { KeyPopularity, KeyRequests, RequestMonitor } from "./request-monitor.ts";

/** The binding of `RequestMonitor` (wrangler.toml). */
export interface MonitorBinding extends PlaceBinding {
  /** Request counts and popularity, sharded by key. */
  readonly REQUEST_MONITOR: DurableObjectNamespace<RequestMonitor>;
}

/** Durable Objects that share the keys among them. */
export const MONITOR_SHARDS = 4;

/** Returns the shard that counts `key`: 0 to `MONITOR_SHARDS` - 1. */
export function shardOf(key: string): number {
  return fnv1a(key) % MONITOR_SHARDS;
}

/** Returns the stub of one shard. A stub belongs to the invocation that asked for it. */
export function monitorShard(env: MonitorBinding, shard: number): DurableObjectStub<RequestMonitor> {
  return durableObject(env.REQUEST_MONITOR, `shard-${shard}`, env);
}

/** Ends the period in every shard. Resolves to the `limit` most popular keys of each, most popular first. */
export async function closePeriod(env: MonitorBinding, limit: number): Promise<KeyRequests[]> {
  return fromAll(env, async (shard) => shard.closePeriod(limit));
}

/** Resolves to the `limit` most popular keys of each shard with requests since the last exchange or period. */
export async function exchangeRequests(env: MonitorBinding, limit: number): Promise<KeyRequests[]> {
  return fromAll(env, async (shard) => shard.exchange(limit));
}

/** Resolves to the `limit` most popular keys as of the last closed period, most popular first. */
export async function popularKeys(env: MonitorBinding, limit: number): Promise<KeyPopularity[]> {
  return (await fromAll(env, async (shard) => shard.popular(limit))).slice(0, limit);
}

/** Removes keys from the popularity. */
export async function forgetKeys(env: MonitorBinding, keys: readonly string[]): Promise<void> {
  const byShard = Map.groupBy(keys, shardOf);
  await Promise.all([...byShard].map(async ([shard, ofShard]) => monitorShard(env, shard).forget(ofShard)));
}

/**
 * Announces publication `epoch` of `PeerState` to all isolates: they learn of it when they next hand on their counts.
 */
export async function announcePeers(env: MonitorBinding, epoch: number): Promise<void> {
  await Promise.all(shards(env).map(async (shard) => shard.notePeers(epoch)));
}

/** Resolves to the data center of each shard, as `findColo` finds it. */
export async function monitorColos(env: MonitorBinding): Promise<(string | null)[]> {
  return Promise.all(shards(env).map(async (shard) => shard.colo()));
}

/** Resolves to the keys of all shards, most popular first. */
async function fromAll<T extends KeyPopularity>(
  env: MonitorBinding,
  ask: (shard: DurableObjectStub<RequestMonitor>) => Promise<readonly T[]>,
): Promise<T[]> {
  const answers = await Promise.all(shards(env).map(ask));
  return answers.flat().toSorted((a, b) => b.popularity - a.popularity);
}

function shards(env: MonitorBinding): DurableObjectStub<RequestMonitor>[] {
  return Array.from({ length: MONITOR_SHARDS }, (_, shard) => monitorShard(env, shard));
}
