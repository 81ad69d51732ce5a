/**
 * Parity by popularity: the objects that readers ask PoPs for most are stored with the code of `hot`, as long as all of
 * them together take no more than its storage (Rashmi et al., EC-Cache, OSDI 2016, section 6.1).
 *
 * Another code is another version: a put, and caches that begin again. So an object keeps the code until others have
 * twice its requests.
 */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { chunkBytes, LEAF_LIST, type Manifest } from "@agarose/core/format";
import { PopClient } from "../../pops/pop-client.ts";
import type { Config } from "../../config/config.ts";
import { hotConfig, layoutOf, type ObjectLayout } from "../../layout/object-layout.ts";
import { checkManifests } from "../../objects/verify-object.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import type { DeploymentParts } from "../../parts.ts";
import { recodeObject } from "../recode-object.ts";

/** What a walk has done for `hot`. */
export interface HotTotals {
  /** Objects that have the code now. */
  readonly hot: number;
  /** Objects that got it, and objects that lost it. With a dry run: that would. */
  readonly heated: number;
  readonly cooled: number;
  readonly failed: number;
}

/** One object that got the code, lost it, or could not be stored again. */
export type HotOutcome = { readonly key: string } & (
  { readonly outcome: "heated" | "cooled" } | { readonly outcome: "failed"; readonly error: AgaroseError }
);

/** How `settle` works, and what it tells. */
export interface HotOptions {
  /** Whether to tell what would be done in place of doing it. */
  readonly dryRun: boolean;
  readonly item: (object: HotOutcome) => Promise<void>;
  readonly onWarning: (line: string) => void;
}

/** Requests per period, by key. */
type Popularity = ReadonlyMap<string, number>;

/** An object that has the code counts for so many times its requests. */
const KEPT_FACTOR = 2;
/** Keys that a PoP may name. Each takes a look at every region. */
const POPULAR_MAX = 1_000;

/** Looks at what a walk lists, and gives and takes the code at its end. */
export class HotObjects {
  readonly #config: Config;
  /** Keys with as many chunks as the code has. */
  readonly #suspects = new Set<string>();
  #bytes = 0;

  /** Throws LAYOUT_UNSAFE for a code that does not survive what the configuration promises. */
  constructor(config: Config) {
    layoutOf(hotConfig(config)!, "", 0);
    this.#config = config;
  }

  /** Called for each key of the walk. */
  see({ key, chunks }: KeyGroup): void {
    const { k, m } = this.#config.hot!.code;
    const counts = new Map<string, number>();
    for (const { suffix, bytes } of chunks) {
      this.#bytes += bytes;
      const [upload = "", chunk] = suffix.split("/");
      if (Number(chunk) !== LEAF_LIST) counts.set(upload, (counts.get(upload) ?? 0) + 1);
    }
    if ([...counts.values()].includes(k + m)) this.#suspects.add(key);
  }

  /**
   * Stores again what has become hot, or has cooled. Undefined, with a warning, while some PoP does not say what is
   * popular there. Rejects only when the caller aborts.
   */
  async settle(
    prefix: string,
    context: DeploymentParts,
    { dryRun, item, onWarning }: HotOptions,
  ): Promise<HotTotals | undefined> {
    const config = this.#config;
    const { popularity, silent } = await askPops(config.pops);
    for (const problem of silent) onWarning(`warning: ${problem}: no object gets or loses the code of \`hot\``);
    if (silent.length > 0) return undefined;
    const manifests = new Map<string, Manifest>();
    for (const key of new Set([...this.#suspects, ...popularity.keys()])) {
      if (!key.startsWith(prefix)) continue;
      const manifest = await manifestOf(key, context);
      if (manifest) manifests.set(key, manifest);
    }
    const isHot = (key: string): boolean => hasCode(manifests.get(key)!, config);
    const chosen = choose({ manifests, popularity, isHot, bytesMax: config.hot!.storage * this.#bytes, config });
    const [warm, cold] = [hotConfig(config)!, { ...config, hot: undefined }];
    const totals = { hot: chosen.size, heated: 0, cooled: 0, failed: 0 };
    for (const key of manifests.keys()) {
      const outcome = chosen.has(key) ? "heated" : "cooled";
      if (isHot(key) === chosen.has(key)) continue;
      const own = { ...context, config: outcome === "heated" ? warm : cold };
      const error = dryRun ? undefined : await recoded(key, own);
      // Another writer was here: the next walk looks again.
      if (error?.code === "REPLACED_MEANWHILE") continue;
      totals[error ? "failed" : outcome]++;
      await item(error ? { key, outcome: "failed", error } : { key, outcome });
    }
    return totals;
  }
}

/** Stores an object again. Returns why it could not be. Rejects only when the caller aborts. */
async function recoded(key: string, context: DeploymentParts): Promise<AgaroseError | undefined> {
  try {
    await recodeObject(key, context);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    return toAgaroseError(error);
  }
}

/** What to choose from. */
interface Choice {
  readonly manifests: ReadonlyMap<string, Manifest>;
  readonly popularity: Popularity;
  readonly isHot: (key: string) => boolean;
  /** Bytes that the chosen objects may take more, all together. */
  readonly bytesMax: number;
  readonly config: Config;
}

/** The most popular objects whose additional bytes fit. One that does not fit leaves its room to the next. */
export function choose({ manifests, popularity, isHot, bytesMax, config }: Choice): ReadonlySet<string> {
  const valueOf = (key: string): number => (popularity.get(key) ?? 0) * (isHot(key) ? KEPT_FACTOR : 1);
  // What has the code keeps it while there is room.
  const ranked = [...manifests.keys()]
    .filter((key) => valueOf(key) > 0 || isHot(key))
    .toSorted((a, b) => valueOf(b) - valueOf(a));
  const chosen = new Set<string>();
  let free = bytesMax;
  for (const key of ranked) {
    const { bytes } = manifests.get(key)!;
    const usual = layoutOf(config, key, bytes);
    // What travels in its manifest has no chunks to add to.
    if (usual.inline || bytes === 0) continue;
    const more =
      storedBytes(layoutOf(hotConfig(config)!, key, bytes), bytes, config) - storedBytes(usual, bytes, config);
    if (more > free) continue;
    free -= more;
    chosen.add(key);
  }
  return chosen;
}

function storedBytes({ k, placement }: ObjectLayout, bytes: number, { stripeBytes }: Config): number {
  return placement.length * chunkBytes({ k, bytes, stripeBytes });
}

function hasCode({ k, m }: Manifest, { hot }: Config): boolean {
  return hot!.code.k === k && hot!.code.m === m;
}

/** Undefined for what is no object: a PoP names what it was asked for. */
async function manifestOf(key: string, context: DeploymentParts): Promise<Manifest | undefined> {
  const { newest } = await checkManifests(key, context);
  return newest && "placement" in newest ? newest : undefined;
}

/** What readers ask for, over all PoPs, and why some do not say it. */
async function askPops(pops: Config["pops"]): Promise<{ popularity: Popularity; silent: readonly string[] }> {
  const popularity = new Map<string, number>();
  const silent: string[] = [];
  const ask = async (pop: Config["pops"][number]): Promise<void> => {
    try {
      const { lastPeriod } = (await new PopClient(pop).status()).answer;
      for (const { key, popularity: requests } of lastPeriod?.popular?.slice(0, POPULAR_MAX) ?? []) {
        popularity.set(key, (popularity.get(key) ?? 0) + requests);
      }
    } catch (error) {
      silent.push(`PoP ${pop.name} does not say what is popular (${toAgaroseError(error, "SOURCE_FAILED").message})`);
    }
  };
  await Promise.all(pops.map(ask));
  return { popularity, silent };
}
