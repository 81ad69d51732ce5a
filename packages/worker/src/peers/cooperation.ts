/**
 * A period among peers: describe this PoP to them, wait for its turn, plan by what they hold, and report what changed.
 * After any failure the PoP continues as if it were on its own.
 */
import type { Clock, FetchPort } from "@agarose/core";
import { NEAREST_MAX, peerView, type PeerView } from "@agarose/solver/cooperation";
import { timedMs, withTimeout } from "../runtime/async.ts";
import type { KvSnapshot } from "../runtime/kv-snapshot.ts";
import { log } from "../runtime/log.ts";
import { durableObject, OBJECT_DEADLINE_MS, type PlaceBinding } from "../runtime/durable-objects.ts";
import type { RegionProbe, RegionState } from "../regions/region-estimates.ts";
import { EDGE_LATENCY } from "../regions/region-latency.ts";
import { PROBES_PER_PERIOD } from "../regions/region-probes.ts";
import { popularKeys, type MonitorBinding } from "../popularity/monitor-shards.ts";
import type { Configuration } from "../cache/configuration.ts";
import { POPULAR_MAX } from "./peer-message.ts";
import type { Peer, PopSettings } from "./peer-settings.ts";
import type { PeerState, Turn } from "./peer-state.ts";
import type { PeersInForce } from "./peers-snapshot.ts";

/** The binding of `PeerState` (wrangler.toml). */
export interface PeerStateBinding extends PlaceBinding {
  /** One object per PoP: what is known of the other PoPs, and what to say to them. */
  readonly PEER_STATE: DurableObjectNamespace<PeerState>;
}

/** The permissions of a period about its peers. */
export interface OwnTurn {
  /** The peers to plan by. */
  readonly peers?: PeerView;
  /** Whether this period may change what others depend on. */
  readonly mayChange: boolean;
  /** How much of the period has passed. Default: 0. */
  readonly waitedMs?: number;
}

interface TurnOptions {
  readonly env: MonitorBinding & PeerStateBinding;
  /** `delta`: requests beyond k that readers make. */
  readonly settings: PopSettings & { readonly delta: number };
  readonly clock: Clock;
  readonly fetch: FetchPort;
  /** Returns what this PoP has measured of the regions. */
  readonly regions: () => readonly RegionState[];
  /** The peers in this isolate's memory, which the turn updates. */
  readonly snapshot: KvSnapshot<PeersInForce>;
  /** The price of a byte by region, as milliseconds of a reader's waiting. Default: all are free. */
  readonly costMsPerByte?: ReadonlyMap<string, number> | undefined;
}

/**
 * Within one period three PoPs take their turn if each needs half of it; a PoP that waits longer goes in the next one.
 */
const TURN_WAIT_MS = 25_000;
const PROBE_TIMEOUT_MS = 3_000;
const ALONE: OwnTurn = { mayChange: true };
const NAME = "peers";

/** Returns the stub of this PoP's `PeerState`. A stub belongs to the invocation that asked for it. */
export function peerState(env: PeerStateBinding): DurableObjectStub<PeerState> {
  return durableObject(env.PEER_STATE, NAME, env);
}

/** Waits for this PoP's turn, up to 25 s. Never rejects. */
export async function takeTurn(options: TurnOptions): Promise<OwnTurn> {
  const { env, settings, clock, fetch, regions, snapshot, costMsPerByte } = options;
  const { pop, peers: configured, delta } = settings;
  if (!configured) return ALONE;
  const startMs = clock.now();
  try {
    const measured = await toMeasure(env, configured.pops, clock);
    const [probes, popular] = await Promise.all([
      Promise.all(measured.map((peer) => probe(peer, fetch, clock))),
      withTimeout(popularKeys(env, POPULAR_MAX), OBJECT_DEADLINE_MS, clock, "counting the popular keys"),
    ]);
    const begun: Promise<Turn> = peerState(env).beginTurn({
      // A peer may not fill for a single client, so it must not fill for a single client of another PoP either.
      popular: popular.flatMap(({ key, popularity, mayFill }) => (mayFill ? [[key, popularity] as const] : [])),
      regions: regions(),
      probes,
      waitMs: TURN_WAIT_MS,
    });
    const { isOurs, peers, inForce } = await withTimeout(begun, TURN_WAIT_MS + OBJECT_DEADLINE_MS, clock, "the turn");
    // Fills of this period ask peers for what they hold now, not for what KV showed last.
    snapshot.set(inForce);
    return {
      peers: peerView({ pop, peers, cacheMs: EDGE_LATENCY.meanMs, delta, costMsPerByte }),
      mayChange: isOurs,
      waitedMs: clock.now() - startMs,
    };
  } catch (error) {
    log("warn", "period without peers", { pop, error });
    return { ...ALONE, waitedMs: clock.now() - startMs };
  }
}

/** Sends the peers what `published` promises. Never rejects: the digest of the next period repeats it. */
export async function notifyPeers(
  env: PeerStateBinding,
  { pop, peers }: PopSettings,
  { epoch, cached }: Configuration,
  endsTurn: boolean,
  clock: Clock,
): Promise<void> {
  if (!peers) return;
  const held = new Map([...cached].map(([version, { chunks }]) => [version, chunks]));
  try {
    const noted = peerState(env).published({ epoch, held, endsTurn });
    await withTimeout(noted, OBJECT_DEADLINE_MS, clock, "the message to the peers");
  } catch (error) {
    log("warn", "notifying peers failed", { pop, error });
  }
}

/** All peers, as long as all are neighbours. */
async function toMeasure(env: PeerStateBinding, pops: readonly Peer[], clock: Clock): Promise<readonly Peer[]> {
  if (pops.length <= NEAREST_MAX) return pops;
  const asked: Promise<string[]> = peerState(env).toMeasure();
  const names = new Set(await withTimeout(asked, OBJECT_DEADLINE_MS, clock, "choosing the peers to measure"));
  return pops.filter(({ name }) => names.has(name));
}

/**
 * Measures round trips to a peer, one after the other. One more before them opens the connection and wakes the peer.
 */
async function probe({ name, url }: Peer, fetch: FetchPort, clock: Clock): Promise<RegionProbe> {
  const tripMs: number[] = [];
  for (let trip = 0; trip <= PROBES_PER_PERIOD; trip++) tripMs.push(await roundTripMs(`${url}/healthz`, fetch, clock));
  return { region: name, ms: tripMs.slice(1) };
}

function roundTripMs(url: string, fetch: FetchPort, clock: Clock): Promise<number> {
  const ask = async (signal: AbortSignal): Promise<boolean> => {
    const { status, body } = await fetch(url, { signal });
    await body?.cancel();
    return status === 200;
  };
  return timedMs(ask, PROBE_TIMEOUT_MS, clock);
}
