/**
 * Parity by popularity: the objects that readers ask PoPs for most get extra chunks near these PoPs, as long as all of
 * them together take no more than the storage of `hot` (Rashmi et al., EC-Cache, OSDI 2016, section 6.1).
 */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { chunkBytes, type Manifest } from "@agarose/core/format";
import { PopClient } from "../../pops/pop-client.ts";
import { currentNames } from "../../buckets/region-names.ts";
import type { Config } from "../../config/config.ts";
import { keptRegions } from "../../layout/object-layout.ts";
import { mapOrdered } from "../../listing/adaptive-pool.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { storedChunks } from "../../objects/chunk-listing.ts";
import { checkManifests } from "../../objects/verify-object.ts";
import type { DeploymentParts } from "../../parts.ts";
import { choosePlaces, type HotObject, type Reader } from "@agarose/solver/extra-places";
import { storeExtra } from "./store-extra.ts";

/** The work of a walk for `hot`. */
export interface HotTotals {
  /** Objects that have extra chunks now. */
  readonly hot: number;
  /** Objects that got some, or others, and objects that lost theirs. With a dry run: that would. */
  readonly heated: number;
  readonly cooled: number;
  readonly failed: number;
}

/** One object that got extra chunks, lost them, or could not get them. */
export type HotOutcome = { readonly key: string } & (
  { readonly outcome: "heated" | "cooled" } | { readonly outcome: "failed"; readonly error: AgaroseError }
);

interface HotOptions {
  /** Whether to tell what would be done in place of doing it. */
  readonly dryRun: boolean;
  readonly item: (object: HotOutcome) => Promise<void>;
  readonly onWarning: (line: string) => void;
}

/** Keys that a PoP may name. Each takes a look at every region. */
const POPULAR_MAX = 1_000;
/** Most of the time they wait for far regions. */
const OBJECTS_AT_A_TIME = 16;
const CHANGES_AT_A_TIME = 8;
/** Milliseconds to a region that neither the PoP nor the configuration knows. */
const LATENCY_MS_DEFAULT = 100;

/**
 * Whether `hot` is at work: its storage is not 0, the configuration names a key where manifests are signed, and the
 * environment has the admin token of a PoP.
 */
export function heats({ hot, pops, publicKeys, signing }: Config): boolean {
  const maySign = publicKeys === undefined || signing !== undefined;
  return hot.storage > 0 && maySign && pops.some((pop) => new PopClient(pop).hasToken);
}

/** Looks at what a walk lists, and stores and removes extra chunks at its end. */
export class HotObjects {
  /** Of keys with several uploads, which may be extra chunks: each chunk as `<region> <upload>/<chunk>`. */
  readonly #suspects = new Map<string, ReadonlySet<string>>();
  #bytes = 0;

  /** Called for each key of the walk. */
  see({ key, chunks }: KeyGroup): void {
    for (const { bytes } of chunks) this.#bytes += bytes;
    const uploads = new Set(chunks.map(({ suffix }) => suffix.slice(0, suffix.indexOf("/"))));
    if (uploads.size < 2) return;
    this.#suspects.set(key, new Set(chunks.map(({ store, suffix }) => `${store.region.name} ${suffix}`)));
  }

  /**
   * Stores and removes extra chunks. Undefined, with a warning, while some PoP does not say what is popular there.
   * Rejects only when the caller aborts.
   */
  async settle(
    prefix: string,
    context: DeploymentParts,
    { dryRun, item, onWarning }: HotOptions,
  ): Promise<HotTotals | undefined> {
    const { config } = context;
    const { readers, silent } = await askPops(config);
    for (const problem of silent) onWarning(`warning: ${problem}: no object gets or loses extra chunks`);
    if (silent.length > 0) return undefined;
    const popular = readers.flatMap(({ requests }) => [...requests.keys()]);
    const keys = [...new Set([...this.#suspects.keys(), ...popular])].filter((key) => key.startsWith(prefix));
    const manifests: Manifest[] = [];
    for await (const manifest of mapOrdered(keys, OBJECTS_AT_A_TIME, (key) => manifestOf(key, context))) {
      // An inline object has no chunks to add to.
      if (manifest && storedChunks(manifest).length > 0) manifests.push(manifest);
    }
    const places = choosePlaces({
      objects: manifests.map((manifest) => this.#hotObject(manifest, config)),
      readers,
      regions: keptRegions(config).map(({ name }) => name),
      bytesMax: config.hot.storage * this.#bytes,
    });
    const totals = { hot: places.size, heated: 0, cooled: 0, failed: 0 };
    const changes = manifests.flatMap((manifest) => {
      const placement = places.get(manifest.key) ?? [];
      const { extra } = this.#hotObject(manifest, config);
      // Lost ones count as none, and the manifest must not continue naming them.
      const isAsChosen = extra.join() === placement.join() && (placement.length > 0 || !manifest.extra);
      return isAsChosen ? [] : [{ manifest, placement }];
    });
    const change = async ({ manifest, placement }: (typeof changes)[number]) => ({
      key: manifest.key,
      outcome: placement.length > 0 ? ("heated" as const) : ("cooled" as const),
      error: dryRun ? undefined : await stored(manifest, placement, context),
    });
    for await (const { key, outcome, error } of mapOrdered(changes, CHANGES_AT_A_TIME, change)) {
      // Another writer was here: the next walk looks again.
      if (error?.code === "REPLACED_MEANWHILE") continue;
      totals[error ? "failed" : outcome]++;
      await item(error ? { key, outcome: "failed", error } : { key, outcome });
    }
    return totals;
  }

  /** The facts of an object for the choice. Extra chunks of which one is not listed count as none. */
  #hotObject(manifest: Manifest, { regions }: Config): HotObject {
    const { key, k, placement, extra } = manifest;
    const listed = this.#suspects.get(key);
    const places = currentNames(extra?.placement ?? [], regions);
    const isListed = places.every((region, i) => listed?.has(`${region} ${extra!.upload}/${placement.length + i}`));
    return {
      key,
      k,
      chunkBytes: chunkBytes(manifest),
      placement: currentNames(placement, regions),
      extra: isListed ? places : [],
    };
  }
}

/** Stores an object's extra chunks. Returns why it could not. Rejects only when the caller aborts. */
async function stored(
  manifest: Manifest,
  placement: readonly string[],
  context: DeploymentParts,
): Promise<AgaroseError | undefined> {
  try {
    await storeExtra(manifest, placement, context);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    return toAgaroseError(error);
  }
}

/** Undefined for what is not an object: a PoP names what it was asked for. */
async function manifestOf(key: string, context: DeploymentParts): Promise<Manifest | undefined> {
  const { newest } = await checkManifests(key, context);
  return newest && "placement" in newest ? newest : undefined;
}

/** The requests and region distances of each PoP, and why some do not report them. */
async function askPops({ pops, regions }: Config): Promise<{ readers: readonly Reader[]; silent: readonly string[] }> {
  const silent: string[] = [];
  const ask = async (pop: Config["pops"][number]): Promise<Reader[]> => {
    try {
      const { cache, lastPeriod, regions: seen } = (await new PopClient(pop).status()).answer;
      const popular = lastPeriod?.popular?.slice(0, POPULAR_MAX) ?? [];
      const requests = new Map(popular.map(({ key, popularity }) => [key, popularity]));
      const latencies = regions.map(({ name, latencyMs = LATENCY_MS_DEFAULT }) => {
        const { meanMs = latencyMs, sdMs = 0 } = seen.find((region) => region.name === name) ?? {};
        return [name, { meanMs, sdMs }] as const;
      });
      const cached = new Map(cache.objects.map(({ key, chunks }) => [key, chunks.length]));
      return [{ requests, cached, latencies: new Map(latencies) }];
    } catch (error) {
      silent.push(`PoP ${pop.name} does not say what is popular (${toAgaroseError(error, "SOURCE_FAILED").message})`);
      return [];
    }
  };
  return { readers: (await Promise.all(pops.map(ask))).flat(), silent };
}
