/** The one object that holds what a PoP knows of its peers. */
import type { Env } from "../http/settings.ts";
import { MONITOR_SHARDS, monitorShard } from "./request-counter.ts";

const NAME = "peers";

export function peerState(env: Env): ReturnType<Env["PEER_STATE"]["get"]> {
  return env.PEER_STATE.get(env.PEER_STATE.idFromName(NAME));
}

/** Has every isolate that hands on its counts, every two seconds while it is asked, hear that there is publication `epoch`. */
export async function tellIsolates(env: Env, epoch: number): Promise<void> {
  const shards = Array.from({ length: MONITOR_SHARDS }, (_, shard) => monitorShard(env, shard));
  await Promise.all(shards.map(async (shard) => shard.notePeers(epoch)));
}
