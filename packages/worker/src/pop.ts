/**
 * A PoP inside your own Worker or server. It needs nothing but `fetch`: reads race over the regions and every byte is
 * verified, but nothing counts popularity or fills a chunk cache. The deployed Worker serves the same routes with the
 * same code.
 */
import { createApplication, READ_HANDLERS } from "./http/application.ts";
import type { Env } from "./http/http.ts";
import type { Configuration } from "./cache/configuration.ts";
import { recordHost } from "./read/front-cache.ts";
import { mergeRegion, type RegionProbe, type RegionSample, type RegionState } from "./regions/region-estimates.ts";
import { probeRegions } from "./regions/region-probes.ts";
import { Invocation } from "./runtime/invocation.ts";
import type { RequestContext } from "./runtime/request-context.ts";
import { settingsOf } from "./runtime/settings.ts";

/** The regions to read, and the publishers to trust. */
export interface CreatePopOptions {
  /** The buckets: the `REGIONS` of the Worker configuration. */
  readonly regions: readonly { readonly name: string; readonly url: string; readonly [option: string]: unknown }[];
  /** Only objects that one of these signed are served. */
  readonly publicKeys: readonly string[];
  /** The name in `x-agarose-pop` and in read events. Default: `pop`. */
  readonly name?: string;
  /** More variables and secrets of the Worker configuration, such as `{ READ_TOKEN }`, by name. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** A PoP that keeps no state beyond the memory of this process and, in a Worker, the Cache API. */
export interface EmbeddedPop {
  /**
   * Answers `GET` and `HEAD` of `/o/<key>`, and `/v1/read/<key>`, `/v1/plans` and `/healthz` for service workers. Any
   * other path is answered by 404. It never rejects.
   *
   * @param context that of the request in a Worker, so that its cache is written after the response.
   */
  readonly fetch: (request: Request, context?: RequestContext) => Promise<Response>;
}

const application = createApplication(READ_HANDLERS);

/** Outside a Worker, what a read leaves behind simply runs on. */
const RUNS_ON: RequestContext = { waitUntil: (promise) => void promise.catch(() => {}) };

/** Returns a PoP over these buckets. Throws CONFIG_INVALID, which names the variable that is wrong. */
export function createPop({ regions, publicKeys, name = "pop", variables }: CreatePopOptions): EmbeddedPop {
  const estimates = new OwnEstimates();
  const env = {
    ...variables,
    POP: name,
    REGIONS: JSON.stringify(regions),
    PUBLISHER_KEYS: JSON.stringify(publicKeys),
    CHUNKS: { get: async () => null, put: async () => {}, delete: async () => {} },
    REQUEST_MONITOR: objectsOf({ count: async () => 0 }),
    POP_STATE: objectsOf({
      suspect: async () => {},
      behind: async () => {},
      observe: async (samples: readonly RegionSample[]) => estimates.observe(samples),
    }),
  } as unknown as Env;
  settingsOf(env);
  return {
    async fetch(request, context = RUNS_ON) {
      recordHost(env, new URL(request.url).host);
      const response = await application(request, env, context);
      // After the head of the response, because six requests of a Worker may wait for one at a time.
      context.waitUntil(estimates.refresh(new Invocation(env, context)));
      return response;
    },
  };
}

/** Durable Objects that are one object of this process. */
function objectsOf(object: object): object {
  return { idFromName: (name: string) => name, get: () => object };
}

/** Three GETs of each bucket in ten minutes of use. */
const PROBE_EVERY_MS = 600_000;

/** How far the regions are, as the probes and reads of this process show: a PoP on its own has no periods. */
class OwnEstimates {
  readonly #regions = new Map<string, RegionState>();
  #samples: RegionSample[] = [];
  #probedMs = Number.NEGATIVE_INFINITY;
  #epoch = 0;

  observe(samples: readonly RegionSample[]): void {
    this.#samples.push(...samples);
  }

  /** Gives the isolate new estimates where there is something new. Never rejects. */
  async refresh({ isolate, fetch }: Invocation): Promise<void> {
    const { clock, configuration, settings } = isolate;
    const isDue = clock.now() - this.#probedMs >= PROBE_EVERY_MS;
    if (!isDue && this.#samples.length === 0) return;
    if (isDue) this.#probedMs = clock.now();
    const { regions } = settings;
    const probes: RegionProbe[] = isDue
      ? await probeRegions({ regions, fetch, clock })
      : regions.map(({ name }) => ({ region: name, ms: [] }));
    const samples = Map.groupBy(this.#samples, ({ region }) => region);
    this.#samples = [];
    for (const probe of probes) {
      const { region } = probe;
      const isKnown = this.#regions.has(region) || probe.ms.length > 0;
      if (isKnown) this.#regions.set(region, mergeRegion(this.#regions.get(region), probe, samples.get(region) ?? []));
    }
    const known: Configuration = {
      epoch: ++this.#epoch,
      at: Date.now(),
      cached: new Map(),
      regions: [...this.#regions.values()],
    };
    configuration.set(known);
  }
}
