/**
 * What one isolate keeps between requests, and what one invocation adds to it. Data only is shared: whatever does I/O
 * (responses, signals) belongs to the invocation that made it.
 */
import {
  AgaroseError,
  findManifest,
  LATENCY_UNKNOWN,
  systemClock,
  type Clock,
  type Codec,
  type FetchPort,
  type LatencyEstimate,
  type Manifest,
} from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";
import codecModule from "@agarose/ec-wasm/relaxed.wasm";
import { Budget, OPERATIONS_MAX } from "../platform/operation-budget.ts";
import { BucketSigner, isBelow } from "../region-manager/bucket-signer.ts";
import { CircuitBreakers } from "../region-manager/circuit-breakers.ts";
import { ChunkCache, type CacheContext } from "./chunk-cache.ts";
import { ConfigurationStore, deliveryMs, type Configuration } from "../state/configuration.ts";
import { Connections, regionFetch } from "../platform/connections.ts";
import { withTimeout } from "../platform/async.ts";
import { parseSettings, type Env, type Settings } from "../http/settings.ts";
import { FrontCache } from "./front-cache.ts";
import { ManifestStore } from "./manifest-store.ts";
import { peerState } from "../request-monitor/monitor-shards.ts";
import { PEERS_EMPTY, PeersBroadcast, type PeersInForce } from "../peers/peers-snapshot.ts";
import { RegionLimits } from "../region-manager/region-limits.ts";
import { ReadMemory } from "./memory-budget.ts";
import { RequestCounter } from "../request-monitor/request-counter.ts";
import { StripeFlights } from "./stripe-coalescing.ts";
import { TelemetryBuffer } from "../request-monitor/telemetry-buffer.ts";
import { TelemetryTokens } from "../request-monitor/telemetry-token.ts";
import { Traffic } from "../platform/traffic.ts";

export interface Isolate {
  readonly settings: Settings;
  readonly clock: Clock;
  /** Origins that the PoP may fetch from. */
  readonly origins: ReadonlySet<string>;
  readonly manifests: ManifestStore;
  readonly configuration: ConfigurationStore;
  readonly peers: PeersBroadcast;
  readonly cache: ChunkCache;
  readonly counter: RequestCounter;
  readonly telemetry: TelemetryBuffer;
  readonly tokens: TelemetryTokens;
  readonly flights: StripeFlights;
  readonly traffic: Traffic;
  readonly breakers: CircuitBreakers;
  readonly limits: RegionLimits;
  readonly signer: BucketSigner;
  readonly memory: ReadMemory;
  readonly codec: () => Promise<Codec>;
}

/** Of an invocation's subrequests, kept for the counts that it hands on and the manifests that it looks up. */
const SUBREQUESTS_RESERVED = 20;
/** Regions that hang must not hang a read: late ones have been replaced by then, if others answer at all. */
const FIND_MANIFEST_MS = 8_000;

const isolates = new WeakMap<Env, Isolate>();

/** The isolate's memory for the PoP that `env` describes. Throws CONFIG_INVALID. */
export function isolateOf(env: Env): Isolate {
  let isolate = isolates.get(env);
  if (!isolate) {
    const settings = parseSettings(env);
    const clock = systemClock;
    const frontCache = new FrontCache(settings.pop, clock);
    const peers = new PeersBroadcast(clock);
    const counter = new RequestCounter(clock, (epoch) => peers.hear(epoch, async () => peerState(env).inForce()));
    isolate = {
      settings,
      clock,
      origins: new Set(
        [...settings.regions.map(({ popUrl }) => popUrl), ...(settings.peers?.pops ?? []).map(({ url }) => url)].map(
          (url) => new URL(url).origin,
        ),
      ),
      manifests: new ManifestStore({
        ttlSeconds: settings.manifestTtlSeconds,
        regions: new Set(settings.regions.map(({ name }) => name)),
        frontCache,
        clock,
        now: Date.now,
      }),
      configuration: new ConfigurationStore(clock),
      peers,
      cache: new ChunkCache(frontCache, clock),
      counter,
      telemetry: new TelemetryBuffer(counter, clock),
      tokens: new TelemetryTokens(settings.pop, Date.now),
      traffic: new Traffic(),
      flights: new StripeFlights(clock),
      breakers: new CircuitBreakers(clock),
      limits: new RegionLimits(clock, settings.regionRequestsMax ?? 0),
      signer: new BucketSigner(settings.regions, settings.bucketCredentials ?? {}, Date.now),
      memory: new ReadMemory(clock),
      codec: () => loadCodec(codecModule),
    };
    isolates.set(env, isolate);
  }
  return isolate;
}

/** One invocation: a request or a period. */
export class Invocation {
  readonly env: Env;
  readonly isolate: Isolate;
  readonly fetch: FetchPort;
  readonly cacheContext: CacheContext;
  readonly waitUntil: (promise: Promise<unknown>) => void;
  /** Everything that the platform counts: beyond it, it would refuse at random. */
  readonly subrequests: Budget;

  /** @param onFetch told of every request to a bucket. */
  constructor(env: Env, context: { waitUntil(promise: Promise<unknown>): void }, onFetch = (): void => {}) {
    this.env = env;
    this.isolate = isolateOf(env);
    this.waitUntil = (promise) => context.waitUntil(promise);
    this.subrequests = new Budget(Math.max(1, this.isolate.settings.subrequestsMax - SUBREQUESTS_RESERVED));
    const connections = new Connections();
    const services = new Budget(OPERATIONS_MAX);
    const { limits, origins, settings, signer } = this.isolate;
    const fetchWithin = regionFetch(connections, origins, (url, init) => {
      onFetch();
      if (!this.subrequests.take(1)) throw outOfSubrequests(settings);
      return signer.fetch(url, init, fetch);
    });
    this.fetch = (url, init) => limits.run(regionOf(url, settings), () => fetchWithin(url, init), init.signal);
    this.cacheContext = {
      kv: env.CHUNKS,
      connections,
      waitUntil: this.waitUntil,
      spend: (operations) => services.take(operations) && this.subrequests.take(operations),
      onSuspect: (version) => this.isolate.counter.suspect(version, env, this.waitUntil),
    };
  }

  configuration(): Promise<Configuration> {
    return this.isolate.configuration.get(this.env.CHUNKS, this.waitUntil);
  }

  /** What the peers hold; nothing for a PoP on its own. */
  async peers(): Promise<PeersInForce> {
    const { settings, peers } = this.isolate;
    return settings.peers ? peers.get(this.env.CHUNKS, this.waitUntil) : PEERS_EMPTY;
  }

  async manifest(key: string, options: { refetch?: boolean } = {}): Promise<Manifest> {
    const context = { find: (wanted: string) => this.#findManifest(wanted), waitUntil: this.waitUntil };
    const { manifests } = this.isolate;
    // Both ways of the Cache API; the fetches count themselves.
    this.subrequests.spend(2);
    return options.refetch ? manifests.refetch(key, context) : manifests.get(key, context);
  }

  count(key: string): void {
    this.isolate.counter.count(key, this.env, this.waitUntil);
  }

  async #findManifest(key: string): Promise<Manifest> {
    const configuration = await this.configuration();
    const regions = this.isolate.settings.regions.map(({ name, popUrl }) => ({
      name,
      url: popUrl,
      latency: latencyOf(configuration, name),
    }));
    const abort = new AbortController();
    const { clock } = this.isolate;
    const finding = findManifest(key, { regions, fetch: this.fetch, clock, signal: abort.signal });
    try {
      return await withTimeout(finding, FIND_MANIFEST_MS, clock, `finding the manifest of ${JSON.stringify(key)}`);
    } finally {
      abort.abort();
    }
  }
}

/** The name of the region that `url` is below; "" for one that is none's, which `regionFetch` refuses. */
function regionOf(url: string, { regions }: Settings): string {
  return regions.find(({ popUrl }) => isBelow(url, popUrl))?.name ?? "";
}

function outOfSubrequests({ subrequestsMax }: Settings): AgaroseError {
  return new AgaroseError(
    "SOURCE_FAILED",
    `this invocation has made the ${subrequestsMax} subrequests that SUBREQUESTS_MAX allows: ask for a smaller range`,
    { subrequestsMax },
  );
}

/** What is known of a region's time to deliver `bytes`; one that is down, or whose breaker is open, comes last. */
export function latencyOf(configuration: Configuration, region: string, isOpen = false, bytes = 0): LatencyEstimate {
  const estimate = configuration.regions.find(({ name }) => name === region);
  const { sdMs } = estimate ?? LATENCY_UNKNOWN;
  const meanMs = deliveryMs(estimate ?? LATENCY_UNKNOWN, bytes);
  return estimate?.down || isOpen ? { meanMs: Math.max(60_000, meanMs), sdMs } : { meanMs, sdMs };
}
