/**
 * The state of one isolate between invocations. It shares data only: responses, streams and signals belong to the
 * invocation that created them.
 */
import { type Codec, systemClock, systemSha256 } from "@agarose/core";
import { acceptUnsigned, trustPublishers } from "@agarose/core/format";
import { BlockMemory, ByteLru } from "@agarose/core/read";
import { SourceHealth } from "@agarose/core/sources";
import { loadCodec } from "@agarose/ec-wasm";
import { peerState, type PeerStateBinding } from "../peers/cooperation.ts";
import { PEERS } from "../peers/peers-snapshot.ts";
import { RateLimiter, type RateLimitBinding } from "./rate-limiter.ts";
import { Traffic } from "../http/traffic.ts";
import { AccessDenials } from "../regions/access-denials.ts";
import { boundBuckets } from "../regions/buckets/bound-bucket.ts";
import { BucketSigner } from "../regions/buckets/bucket-signer.ts";
import { CircuitBreakers } from "../regions/circuit-breakers.ts";
import { continentOf } from "./continents.ts";
import { monitorShard, type MonitorBinding } from "../popularity/monitor-shards.ts";
import { parseFillClientsMin } from "../popularity/fill-candidates.ts";
import { ClientShares } from "../popularity/client-shares.ts";
import { RequestCounter } from "../popularity/request-counter.ts";
import { CONFIGURATION } from "../cache/configuration.ts";
import { popState, type PopStateBinding } from "../cache/pop-state-stub.ts";
import { KvSnapshot } from "./kv-snapshot.ts";
import type { ValueStore } from "./storage-ports.ts";
import { ChunkCache } from "../read/chunk-cache.ts";
import { parseCacheSettings } from "../cache/cache-settings.ts";
import { FetchedStripes } from "../read/fetched-stripes.ts";
import { FrontCache, hostOf } from "../read/front-cache.ts";
import { ManifestStore } from "../read/manifest-store.ts";
import { MemoryBudget } from "../read/limits/memory-budget.ts";
import { parseReadSettings, type ReadSettings } from "../read/read-settings.ts";
import { StripeCoalescing } from "../read/stripe-coalescing.ts";

/** The bindings of the Worker (wrangler.toml). */
export interface Bindings extends MonitorBinding, PopStateBinding, PeerStateBinding {
  /** Chunk cache and configuration. */
  readonly CHUNKS: ValueStore;
  /** Limits lookups of keys that do not exist, by client address; without it, each isolate has its own limit. */
  readonly MISS_LIMIT?: RateLimitBinding;
  /** Which deployment of the Worker this is. */
  readonly VERSION?: { readonly id: string };
}

/** The memory of one isolate. */
export type Isolate = Readonly<ReturnType<typeof createIsolate>>;

/** A page may have a few dead links; a flood of unknown keys costs the owner of the buckets money. */
const MISSES = { burst: 60, perSecond: 1 };

/** Memory for small objects and for blocks of small ranges, beside what reads and the chunk cache hold. */
const BLOCKS_BYTES_MAX = 8 * 1024 * 1024;

/** The same for objects of the origin where no Cache API keeps them. */
const ORIGIN_BYTES_MAX = 64 * 1024 * 1024;

const isolates = new WeakMap<Bindings, Isolate>();

/** Returns the isolate's memory for the PoP that `env` describes. Throws CONFIG_INVALID. */
export function isolateOf(env: Bindings): Isolate {
  let isolate = isolates.get(env);
  if (!isolate) isolates.set(env, (isolate = createIsolate(env)));
  return isolate;
}

function createIsolate(env: Bindings) {
  const settings = parseReadSettings(env);
  const clock = systemClock;
  const { publisherKeys } = settings;
  const trust = publisherKeys.length > 0 ? trustPublishers(publisherKeys) : acceptUnsigned;
  const frontCache = new FrontCache({ pop: frontName(env, settings), host: () => hostOf(env) }, clock);
  const manifests = new ManifestStore({
    ttlSeconds: settings.manifestTtlSeconds,
    regions: new Set(settings.regions.map(({ name }) => name)),
    frontCache,
    clock,
    now: Date.now,
    trust,
    sha256: systemSha256,
  });
  const peers = new KvSnapshot(clock, PEERS);
  const counter = new RequestCounter(
    clock,
    {
      count: async (shard, entries) => monitorShard(env, shard).count(entries),
      suspect: async (versions) => popState(env).suspect(versions),
      observe: async (samples, cacheTimes) => popState(env).observe(samples, cacheTimes),
      notePeers: (epoch) => peers.update(epoch, async () => peerState(env).inForce()),
    },
    parseFillClientsMin(env),
  );
  return {
    settings,
    clock,
    /** Origins that the PoP may fetch from. */
    origins: originsOf(settings),
    trust,
    frontCache,
    /** By key, until a time of the clock. */
    originCopies: new ByteLru<{ bytes: number; copy: Uint8Array; untilMs: number }>(
      FrontCache.isHere ? 0 : ORIGIN_BYTES_MAX,
    ),
    manifests,
    configuration: new KvSnapshot(clock, CONFIGURATION),
    peers,
    cache: new ChunkCache(frontCache, clock, settings.memoryBytes),
    /** Chunks in the Cache API that reads or exchanges have just fetched. */
    fetched: new FetchedStripes(
      frontCache,
      clock,
      Date.now,
      FrontCache.isHere && parseCacheSettings(env).exchangeSeconds > 0,
    ),
    counter,
    traffic: new Traffic(),
    /** Blocks that small reads have verified. */
    blocks: new BlockMemory(BLOCKS_BYTES_MAX, clock),
    coalescing: new StripeCoalescing(clock),
    breakers: new CircuitBreakers(clock),
    signer: new BucketSigner(settings.regions, settings.bucketCredentials ?? {}, Date.now),
    /** By the base URL of their regions. */
    boundBuckets: boundBuckets(settings.regions, env),
    laggards: new SourceHealth(clock),
    memory: new MemoryBudget(clock),
    /** Lookups of keys that do not exist, by client. */
    misses: new RateLimiter(clock, MISSES),
    /** The share that each client may add to popularity. */
    shares: new ClientShares(Date.now),
    denials: new AccessDenials(),
    codec: (): Promise<Codec> => loadCodec(),
  };
}

/** Data centers on the border of two continents have entries of both. */
function frontName(env: Bindings, { pop }: ReadSettings): string {
  const continent = continentOf(env);
  return continent === undefined ? pop : `${pop}:${continent}`;
}

function originsOf({ regions, peers, origin }: ReadSettings): Set<string> {
  const urls = [
    ...regions.map(({ popUrl }) => popUrl),
    ...(peers?.pops ?? []).map(({ url }) => url),
    origin ?? [],
  ].flat();
  return new Set(urls.map((url) => new URL(url).origin));
}
