/**
 * The part of one invocation, a request or a period, in addition to its isolate: connections, budgets and its own
 * `waitUntil`.
 */
import { AgaroseError, systemSha256, toAgaroseError, type FetchPort } from "@agarose/core";
import { Limiter } from "@agarose/core/async";
import type { Manifest } from "@agarose/core/format";
import type { ChunkSource } from "@agarose/core/sources";
import { peerSources } from "../peers/peer-reading.ts";
import { PEERS_EMPTY, type PeersInForce } from "../peers/peers-snapshot.ts";
import type { WaitUntil } from "./batch-flusher.ts";
import { Connections, regionFetch } from "./connections.ts";
import type { Trace } from "./trace.ts";
import { Budget, OPERATIONS_MAX } from "./budget.ts";
import { fetchBound } from "../regions/buckets/bound-bucket.ts";
import { isBelow } from "../regions/buckets/bucket-signer.ts";
import { clientNetwork } from "./client-address.ts";
import { weighedRead, type NoteTaken } from "../popularity/weighed-read.ts";
import type { Configuration } from "../cache/configuration.ts";
import { popState } from "../cache/pop-state-stub.ts";
import type { CacheContext } from "../read/chunk-cache.ts";
import { isolateOf, type Bindings, type Isolate } from "./isolate.ts";
import type { FoundManifest, LookupContext } from "../read/manifest-store.ts";
import { lookUp } from "../read/region-look-up.ts";
import type { ReadSettings } from "../read/read-settings.ts";

/**
 * How long a task that no read waits for is put off. By then, most pages have what they wait for: to find a new key
 * takes one request, and a majority of six regions takes four more, which would hold up the next batches of the page.
 */
const LATER_MS = 2_000;
/** Subrequests of an invocation that are kept for handing on counts and finding manifests. */
const SUBREQUESTS_RESERVED = 20;

interface InvocationOptions {
  /** Called for every request to a bucket or peer. */
  readonly onFetch?: () => void;
  /** The client's address; undefined for a period, and outside Cloudflare. */
  readonly client?: string | undefined;
  /** The trace of the request, which requests to peers continue. */
  readonly trace?: Trace | undefined;
}

/** The arguments of a look-up in the buckets. */
type Wanted = Parameters<LookupContext["find"]>;

/** One invocation. */
export class Invocation {
  readonly env: Bindings;
  readonly isolate: Isolate;
  /** Fetches from buckets and peers within the limits of the invocation. */
  readonly fetch: FetchPort;
  readonly cacheContext: CacheContext;
  readonly waitUntil: WaitUntil;
  /** Everything that the platform counts. Beyond its limit the platform would refuse operations at random. */
  readonly subrequests: Budget;

  readonly trace: Trace | undefined;
  readonly #client: string | undefined;
  /** One at a time, because a region whose request waits for a connection would count as late. */
  readonly #later = new Limiter(1);
  /** The versions whose chunks this invocation takes from the Cache API alone. */
  readonly #probable = new Set<string>();

  /** Throws CONFIG_INVALID. */
  constructor(env: Bindings, context: { waitUntil(promise: Promise<unknown>): void }, options: InvocationOptions = {}) {
    const { onFetch = () => {}, client, trace } = options;
    this.env = env;
    this.#client = client;
    this.trace = trace;
    this.isolate = isolateOf(env);
    this.waitUntil = (promise) => context.waitUntil(promise);
    this.subrequests = new Budget(Math.max(1, this.isolate.settings.subrequestsMax - SUBREQUESTS_RESERVED));
    const connections = new Connections();
    const services = new Budget(OPERATIONS_MAX);
    const { boundBuckets, denials, origins, settings, signer } = this.isolate;
    const fetchWithin = regionFetch(connections, origins, (url, init) => {
      onFetch();
      if (!this.subrequests.take(1)) throw outOfSubrequests(settings);
      return fetchBound(url, init, boundBuckets) ?? signer.fetch(url, init, fetch);
    });
    this.fetch = async (url, init) => {
      const region = regionOf(url, settings);
      const response = await fetchWithin(url, init);
      if (region) denials.note(region, response.status);
      return response;
    };
    this.cacheContext = {
      kv: env.CHUNKS,
      connections,
      waitUntil: this.waitUntil,
      spend: (operations) => services.take(operations) && this.subrequests.take(operations),
      onSuspect: (version) => {
        // KV never had what the Cache API may forget.
        if (this.#probable.has(version)) this.isolate.fetched.forget(version);
        else this.isolate.counter.suspect(version, this.waitUntil);
      },
      onTimed: (ms, isFirst) => this.isolate.counter.noteCacheRead(ms, isFirst),
    };
  }

  /** Resolves to the configuration in force. Never rejects. */
  configuration(): Promise<Configuration> {
    return this.isolate.configuration.get(this.env.CHUNKS, this.waitUntil);
  }

  /** Resolves to the chunks of an object that reads find here, and whether they may be gone. Never rejects. */
  async cachedChunks(manifest: Manifest): Promise<{ chunks: readonly number[]; areProbable: boolean }> {
    const { cached } = await this.configuration();
    const own = cached.get(manifest.version)?.chunks ?? [];
    const probable = own.length < manifest.k ? this.isolate.fetched.probable(manifest, this.cacheContext) : undefined;
    if (probable) this.#probable.add(manifest.version);
    return { chunks: probable ?? own, areProbable: probable !== undefined };
  }

  /** Resolves to what the peers hold: nothing for a PoP on its own. Never rejects. */
  async peers(): Promise<PeersInForce> {
    const { settings, peers } = this.isolate;
    return settings.peers ? peers.get(this.env.CHUNKS, this.waitUntil) : PEERS_EMPTY;
  }

  /** Resolves to the peers that hold chunks of an object beside those `cached` here, as sources. */
  async peerSources(manifest: Manifest, cached: readonly number[]): Promise<ChunkSource[]> {
    const { settings, breakers } = this.isolate;
    const context = { settings, breakers, fetch: this.fetch, now: Date.now, trace: this.trace };
    return peerSources(context, await this.peers(), manifest, cached);
  }

  /** Resolves to the manifest of `key`. Rejects as `ManifestStore.get` does, and with RATE_LIMITED. */
  async manifest(key: string, options: { refetch?: boolean } = {}): Promise<Manifest> {
    const context = {
      find: (...wanted: Wanted) => this.#findManifest(...wanted),
      waitUntil: this.waitUntil,
      later: (task: () => Promise<unknown>) => this.#runLater(task),
    };
    const { manifests } = this.isolate;
    // A get and a put of the Cache API; the fetches count themselves.
    this.subrequests.spend(2);
    return options.refetch ? manifests.refetch(key, context) : manifests.get(key, context);
  }

  /**
   * Counts a read of the object of `key`, within the client's share.
   *
   * @param token by which the client may read a private key; it counts by its network without one.
   */
  count(key: string, token: string | undefined): void {
    const { counter, shares } = this.isolate;
    if (!shares.admits(this.#client, key)) return;
    counter.count(key, this.waitUntil, [token ?? clientNetwork(this.#client)]);
  }

  /** Returns where to note what the client takes of the object of `key`: its read counts by the share that it takes. */
  weigh(key: string, objectBytes: number, token: string | undefined): NoteTaken {
    return weighedRead(objectBytes, () => this.count(key, token), Math.random());
  }

  #runLater(task: () => Promise<unknown>): void {
    const { clock } = this.isolate;
    const run = async (): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(LATER_MS, resolve));
      await this.#later.run(task);
    };
    this.waitUntil(run().catch(() => {}));
  }

  async #findManifest(...wanted: Wanted): Promise<FoundManifest> {
    const { misses, settings } = this.isolate;
    if (misses.isBlocked(this.#client)) {
      throw new AgaroseError("RATE_LIMITED", "this client has requested too many missing keys: retry later");
    }
    try {
      return await this.#askRegions(...wanted);
    } catch (error) {
      const { code } = toAgaroseError(error);
      // The origin may have it.
      if (code === "OBJECT_NOT_FOUND" && settings.origin === undefined) this.noteMiss();
      throw error;
    }
  }

  /** Counts a look-up of a key that does not exist, of which a client may make a few. */
  noteMiss(): void {
    this.waitUntil(this.isolate.misses.spend(this.#client, this.env.MISS_LIMIT));
  }

  async #askRegions(...[key, generationMin, consistency, known]: Wanted): Promise<FoundManifest> {
    const { regions: estimates } = await this.configuration();
    const { settings, clock, traffic, breakers, laggards, trust } = this.isolate;
    const options = {
      regions: settings.regions,
      estimates,
      fetch: this.fetch,
      clock,
      sha256: systemSha256,
      trust,
      breakers,
      laggards,
      traffic,
      onBehind: (behind: readonly string[]) => {
        const reported = popState(this.env).behind([{ key, regions: behind }]);
        this.waitUntil(Promise.resolve(reported).catch(() => {}));
      },
    };
    return lookUp(key, generationMin, consistency, options, known);
  }
}

/** Returns the name of the region that `url` is below, or "" for another URL, which `regionFetch` refuses. */
function regionOf(url: string, { regions }: ReadSettings): string {
  return regions.find(({ popUrl }) => isBelow(url, popUrl))?.name ?? "";
}

function outOfSubrequests({ subrequestsMax }: ReadSettings): AgaroseError {
  return new AgaroseError(
    "SOURCE_FAILED",
    `this invocation has made the ${subrequestsMax} subrequests that SUBREQUESTS_MAX allows: ask for a smaller range`,
    { subrequestsMax },
  );
}
