/**
 * Which code an object gets, and where its chunks go: what the configuration says for its key and size, or what the
 * rule of `codesBySize` chooses.
 */
import {
  checkSurvival,
  CHUNKS_MAX,
  INLINE_BYTES_MAX,
  roundRobin,
  spread,
  survives,
  type Code,
  type Manifest,
  type PlacementRegion,
  type Survival,
} from "@agarose/core/format";
import { codesBySize, type CodeLayout, type CodesBySize } from "@agarose/solver/codes-by-size";
import type { Config } from "../config/config.ts";
import { currentNames } from "../buckets/region-names.ts";
import { formatBytes } from "../maintenance/amounts.ts";

/** The code of one object and the region of each of its chunks, by name. An inline object has no chunks. */
export interface ObjectLayout extends Code {
  readonly inline: boolean;
  readonly placement: readonly string[];
}

/** The inputs for the choice of a code. */
export interface CodeChoice {
  /** As `CodesRequest` has them. */
  readonly connections?: number | undefined;
  readonly storageMax?: number | undefined;
  readonly regions: readonly PlacementRegion[];
  readonly survive: Survival;
}

/** More data chunks help no read that we have measured, and each is a request. */
const K_MAX = 10;
/** Latency of a region whose configuration says nothing of it. */
const LATENCY_MS_DEFAULT = 100;

/**
 * The layout of an object of `bytes` bytes under `key`. Equal configurations, keys and lengths have equal layouts.
 *
 * @throws LAYOUT_UNSAFE when it does not survive what the configuration promises.
 */
export function layoutOf(config: Config, key: string, bytes: number): ObjectLayout {
  const { survive, stripeBytes } = config;
  const regions = keptRegions(config);
  const code = codeOf(config, key, bytes);
  if (code !== "auto") {
    const placement = roundRobin(code, regions, key);
    checkSurvival(code, placement, regions, survive);
    return { k: code.k, m: code.m, inline: false, placement };
  }
  const { codes } = autoCodes(config);
  const { k, m, inline } = codes.find(({ bytesMax = Infinity }) => bytes <= bytesMax)!;
  if (inline && bytes <= stripeBytes) return { k, m, inline: true, placement: [] };
  // Tiny stripes keep a tiny object from being inline: it is a whole copy then.
  const coded = inline ? codes.find((other) => !other.inline)! : { k, m };
  const placement = spread(coded, regions, key);
  checkSurvival(coded, placement, regions, survive);
  return { k: coded.k, m: coded.m, inline: false, placement };
}

/** The regions that chunks are put in: those that are not being emptied. */
export function keptRegions({ regions }: Config): Config["regions"] {
  return regions.filter(({ drain }) => drain !== true);
}

/**
 * Whether the manifest names a leaf list or an extra chunk in a region that is being emptied. `layoutOf` decides on its
 * other chunks.
 */
export function namesDrained({ leaves = [], extra }: Pick<Manifest, "leaves" | "extra">, { regions }: Config): boolean {
  const names = currentNames([...leaves, ...(extra?.placement ?? [])], regions);
  return regions.some(({ name, drain }) => drain === true && names.includes(name));
}

/** The configured code of a key and a length: the first of `codes` that fits, else `code`. */
export function codeOf({ code, codes }: Config, key: string, bytes: number): Config["code"] {
  const rule = codes.find(({ prefix = "", bytesMax = Infinity }) => key.startsWith(prefix) && bytes <= bytesMax);
  return rule?.code ?? code;
}

const chosen = new WeakMap<Config, CodesBySize>();

/** The codes by which `"auto"` stores objects under this configuration. Throws as `chooseCodes` does. */
export function autoCodes(config: Config): CodesBySize {
  let codes = chosen.get(config);
  if (!codes) chosen.set(config, (codes = chooseCodes({ ...config, ...config.auto, regions: keptRegions(config) })));
  return codes;
}

/** The codes for regions and a promise. Throws LAYOUT_UNSAFE when no code over these regions keeps the promise. */
export function chooseCodes({ regions, survive, connections, storageMax }: CodeChoice): CodesBySize {
  const layouts = Array.from({ length: K_MAX }, (_, i) => keptLayout(i + 1, regions, survive)).filter(
    (layout) => layout !== undefined,
  );
  if (layouts.length === 0) checkSurvival({ k: 1, m: 0 }, spread({ k: 1, m: 0 }, regions, ""), regions, survive);
  return codesBySize({
    layouts,
    latenciesMs: regions.map(({ latencyMs = LATENCY_MS_DEFAULT }) => latencyMs),
    inlineBytesMax: INLINE_BYTES_MAX,
    ...(connections !== undefined && { connections }),
    ...(storageMax !== undefined && { storageMax }),
  });
}

/** The layout of least parity with k data chunks that survives the promised losses. */
function keptLayout(k: number, regions: readonly PlacementRegion[], promised: Survival): CodeLayout | undefined {
  const names = regions.map(({ name }) => name);
  for (let m = 0; m <= CHUNKS_MAX - 2 * k && m <= k * regions.length; m++) {
    const placement = spread({ k, m }, regions, "");
    const actual = survives({ k, m }, placement, regions);
    if (actual.regions < promised.regions || actual.providers < promised.providers) continue;
    return { k, m, regions: placement.map((name) => names.indexOf(name)) };
  }
  return undefined;
}

/** Such as "auto: up to 16 KiB inline, up to 46 KiB 1+1, above 5+1 (1.44x storage for images and some video)". */
export function codesLine({ codes, storage }: CodesBySize): string {
  const parts = codes.map(({ bytesMax, k, m, inline }) => {
    const size = bytesMax === undefined ? "above" : `up to ${formatBytes(bytesMax)}`;
    return `${size} ${inline ? "inline" : `${k}+${m}`}`;
  });
  return `auto: ${parts.join(", ")} (${storage.toFixed(2)}x storage for images and some video)`;
}
