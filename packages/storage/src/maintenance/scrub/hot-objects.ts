/**
 * Parity by popularity: the objects that readers ask PoPs for most get extra chunks near these PoPs, as long as all of
 * them together take no more than the storage of `hot` (Rashmi et al., EC-Cache, OSDI 2016, section 6.1).
 */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { chunkBytes, isTombstone, type Manifest, type ManifestRecord } from "@agarose/core/format";
import { PopClient } from "../../pops/pop-client.ts";
import { currentNames } from "../../buckets/region-names.ts";
import { replacedMeanwhile } from "../../commit/commit.ts";
import type { Config } from "../../config/config.ts";
import { keptRegions } from "../../layout/object-layout.ts";
import { mapOrdered } from "../../listing/adaptive-pool.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { extraChunks, findGoneChunks, storedChunks } from "../../objects/chunk-listing.ts";
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
 * Whether `hot` is at work: the configuration names a key where manifests are signed, and the environment has the admin
 * token of a PoP, or no object may have extra chunks any more.
 */
export function heats({ hot, pops, publicKeys, signing }: Config): boolean {
  const maySign = publicKeys === undefined || signing !== undefined;
  return maySign && (hot.storage === 0 || pops.some(mayHaveToken));
}

/** A file that cannot be read may hold a token, and is the reason of a warning once the walk is over. */
function mayHaveToken(pop: Config["pops"][number]): boolean {
  try {
    return new PopClient(pop).hasToken;
  } catch {
    return true;
  }
}

/** The facts of an object that are kept until the choice. Manifests of many would take too much memory. */
interface LookedAt extends HotObject {
  readonly upload: string;
  /** Whether its manifest names extra chunks, also lost ones. */
  readonly namesExtra: boolean;
}

/** Looks at what a walk lists, and stores and removes extra chunks at its end. */
export class HotObjects {
  /** Keys with an upload that has no first chunk, as that of extra chunks. */
  readonly #suspects = new Set<string>();
  #bytes = 0;

  /** Called for each key of the walk. */
  see({ key, chunks }: KeyGroup): void {
    const uploads = new Set<string>();
    const withFirst = new Set<string>();
    for (const { bytes, suffix } of chunks) {
      this.#bytes += bytes;
      const [upload, chunk] = suffix.split("/") as [string, string | undefined];
      uploads.add(upload);
      if (chunk === "0") withFirst.add(upload);
    }
    if (withFirst.size < uploads.size) this.#suspects.add(key);
  }

  /**
   * Stores and removes extra chunks. Undefined, with a warning, while some PoP does not say what is popular there, and
   * where no object may have any and none has. Below a prefix, the share is that of what is stored there. Rejects only
   * when the caller aborts.
   */
  async settle(
    prefix: string,
    context: DeploymentParts,
    { dryRun, item, onWarning }: HotOptions,
  ): Promise<HotTotals | undefined> {
    const { config } = context;
    const isOff = config.hot.storage === 0;
    const { readers, silent } = isOff ? { readers: [], silent: [] } : await askPops(config);
    for (const problem of silent) onWarning(`warning: ${problem}: no object gets or loses extra chunks`);
    if (silent.length > 0) return undefined;
    const popular = readers.flatMap(({ requests }) => [...requests.keys()]);
    const keys = new Set([...this.#suspects, ...popular].filter((key) => key.startsWith(prefix)));
    const objects: LookedAt[] = [];
    for await (const object of mapOrdered(keys, OBJECTS_AT_A_TIME, (key) => lookAt(key, context))) {
      if (object) objects.push(object);
    }
    const places = choosePlaces({
      objects,
      readers,
      regions: keptRegions(config).map(({ name }) => name),
      bytesMax: config.hot.storage * this.#bytes,
    });
    const totals = { hot: places.size, heated: 0, cooled: 0, failed: 0 };
    const changes = objects
      .map((object) => ({ object, placement: places.get(object.key) ?? [] }))
      .filter(
        ({ object: { extra, namesExtra }, placement }) =>
          extra.join() !== placement.join() || (namesExtra && placement.length === 0),
      )
      // Room is made before it is taken.
      .toSorted((a, b) => a.placement.length - b.placement.length);
    if (isOff && changes.length === 0) return undefined;
    const change = async ({ object, placement }: (typeof changes)[number]) => ({
      key: object.key,
      outcome: placement.length > 0 ? ("heated" as const) : ("cooled" as const),
      error: dryRun ? undefined : await stored(object, placement, context),
    });
    for await (const { key, outcome, error } of mapOrdered(changes, CHANGES_AT_A_TIME, change)) {
      // Another writer was here: the next walk looks again.
      if (error?.code === "REPLACED_MEANWHILE") continue;
      totals[error ? "failed" : outcome]++;
      await item(error ? { key, outcome: "failed", error } : { key, outcome });
    }
    return totals;
  }
}

/** The facts of an object for the choice. Undefined for one that has no chunks: a PoP names what it was asked for. */
async function lookAt(key: string, context: DeploymentParts): Promise<LookedAt | undefined> {
  const { newest: manifest } = await checkManifests(key, context);
  if (!manifest || isTombstone(manifest) || storedChunks(manifest).length === 0) return undefined;
  const { k, upload, placement, extra } = manifest;
  const { regions } = context.config;
  // A listing of before would lack those that another walk has stored meanwhile. Lost ones count as none.
  const gone = extra ? await findGoneChunks(manifest, extraChunks(manifest), context) : [];
  return {
    key,
    k,
    chunkBytes: chunkBytes(manifest),
    placement: currentNames(placement, regions),
    extra: gone.length > 0 ? [] : currentNames(extra?.placement ?? [], regions),
    upload,
    namesExtra: extra !== undefined,
  };
}

/**
 * Stores an object's extra chunks. Returns why it could not: REPLACED_MEANWHILE where another version is there, whose
 * writer may have removed the chunks. Rejects only when the caller aborts.
 */
async function stored(
  { key, upload }: LookedAt,
  placement: readonly string[],
  context: DeploymentParts,
): Promise<AgaroseError | undefined> {
  const look = async (): Promise<ManifestRecord | undefined> => (await checkManifests(key, context)).newest;
  const isSame = (record: ManifestRecord): record is Manifest => !isTombstone(record) && record.upload === upload;
  const before = await look();
  if (!before || !isSame(before)) return replacedMeanwhile(key);
  try {
    await storeExtra(before, placement, context);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    const after = await look();
    return after && !isSame(after) ? replacedMeanwhile(key) : toAgaroseError(error);
  }
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
