/**
 * A period among peers: tell them how things look from here, wait for the turn, plan by what they hold, and tell them what
 * came of it. Whatever fails here leaves the PoP as it would be on its own.
 */
import type { Clock, FetchPort } from "@agarose/core";
import type { Configuration } from "../state/configuration.ts";
import { withTimeout } from "../platform/async.ts";
import { EDGE_LATENCY } from "../read/edge-source.ts";
import type { Env } from "../http/settings.ts";
import { isolateOf, type Invocation } from "../read/isolate.ts";
import { log } from "../platform/log.ts";
import type { RegionProbe } from "../region-manager/region-estimates.ts";
import { PROBES_PER_PERIOD } from "../region-manager/region-probes.ts";
import { MONITOR_SHARDS, monitorShard, popState } from "../request-monitor/request-counter.ts";
import { peerState } from "../request-monitor/monitor-shards.ts";
import { POPULAR_MAX, type Outlook } from "./peer-message.ts";
import type { Peer } from "./peer-settings.ts";
import type { PeerView } from "./peer-view.ts";
import { peerView } from "./saved-at-peers.ts";

export interface OwnTurn {
  /** What to plan by. */
  readonly peers?: PeerView;
  /** Whether this period may change what others depend on. */
  readonly mayChange: boolean;
}

/** Three PoPs come round within one period when each needs half of it; one that waits longer has its turn in the next. */
const TURN_WAIT_MS = 25_000;
const PROBE_TIMEOUT_MS = 3_000;
const ALONE: OwnTurn = { mayChange: true };

/** Never rejects. */
export async function takeTurn({ env, fetch, isolate }: Invocation): Promise<OwnTurn> {
  const { settings, clock } = isolate;
  if (!settings.peers) return ALONE;
  try {
    const [probes, popular, { regions }] = await Promise.all([
      Promise.all(settings.peers.pops.map((peer) => probe(peer, fetch, clock))),
      popularKeys(env),
      popState(env).snapshot(),
    ]);
    const request = { popular, regions, probes, waitMs: TURN_WAIT_MS };
    const { isOurs, peers, inForce } = await peerState(env).beginTurn(request);
    // What is filled in this period is asked of peers as they are, not as KV last said.
    isolate.peers.set(inForce);
    const { pop, delta } = settings;
    return { peers: peerView({ pop, peers, cacheMs: EDGE_LATENCY.meanMs, delta }), mayChange: isOurs };
  } catch (error) {
    log("warn", "a period without its peers", { pop: settings.pop, error });
    return ALONE;
  }
}

/** Tells peers what `published` promises. Never rejects: the digest of the next period says it again. */
export async function tellPeers(env: Env, { epoch, cached }: Configuration, endsTurn: boolean): Promise<void> {
  const { settings } = isolateOf(env);
  if (!settings.peers) return;
  const held = Object.entries(cached).map(([version, { chunks }]) => [version, chunks] as const);
  try {
    await peerState(env).published({ epoch, held, endsTurn });
  } catch (error) {
    log("warn", "peers were not told", { pop: settings.pop, error });
  }
}

/** As of the period that ended last, most popular first. */
async function popularKeys(env: Env): Promise<Outlook["popular"]> {
  const shards = Array.from({ length: MONITOR_SHARDS }, (_, shard) => monitorShard(env, shard).popular(POPULAR_MAX));
  const popular = (await Promise.all(shards)).flat().toSorted((a, b) => b.popularity - a.popularity);
  return popular.slice(0, POPULAR_MAX).map(({ key, popularity }) => [key, popularity] as const);
}

/** Round trips to a peer, one after the other. One more before them opens the connection and wakes who sleeps there. */
async function probe({ name, url }: Peer, fetch: FetchPort, clock: Clock): Promise<RegionProbe> {
  const tripMs: number[] = [];
  for (let trip = 0; trip <= PROBES_PER_PERIOD; trip++) tripMs.push(await tripTo(`${url}/healthz`, fetch, clock));
  return { region: name, ms: tripMs.slice(1) };
}

async function tripTo(url: string, fetch: FetchPort, clock: Clock): Promise<number> {
  const abort = new AbortController();
  const startMs = clock.now();
  try {
    const answer = fetch(url, { signal: abort.signal });
    const { status, body } = await withTimeout(answer, PROBE_TIMEOUT_MS, clock, `a probe of ${url}`);
    await body?.cancel();
    return status === 200 ? clock.now() - startMs : Number.POSITIVE_INFINITY;
  } catch {
    abort.abort();
    return Number.POSITIVE_INFINITY;
  }
}
