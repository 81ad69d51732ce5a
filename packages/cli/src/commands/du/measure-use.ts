/**
 * What all keys below a prefix take, in one walk over the listings of all regions.
 */
import type { Config } from "@agarose/storage/config/config";
import type { CommandContext } from "../../lib/context.ts";
import type { Breaker } from "@agarose/storage/regions/ask-regions";
import { logLine, printable } from "../../ui/output.ts";
import { keyGroups, type KeyGroup } from "@agarose/storage/listing/key-groups";
import { mapOrdered } from "@agarose/storage/listing/ordered-pool";
import { addBytes, measureKey, NO_BYTES, type KeyUse, type RegionBytes } from "./measure-key.ts";

/** What one region holds. */
export interface RegionUse extends RegionBytes {
  readonly region: string;
  /** All of it. */
  readonly bytes: number;
  /** With `--cost`; absent when the region has no price. */
  readonly usdPerMonth?: number;
  /** Why it could not be listed. */
  readonly problem?: string;
}

/** What all regions hold. */
export interface Use {
  readonly objects: number;
  /** Of the objects as readers see them. */
  readonly objectBytes: number;
  readonly storedBytes: number;
  /** Of versions that were replaced and that `keep` keeps. */
  readonly keptBytes: number;
  readonly orphanedBytes: number;
  /** Stored bytes for each byte of an object; absent when there is none. */
  readonly overhead?: number;
  readonly usdPerMonth?: number;
  readonly orphanedUsdPerMonth?: number;
  readonly regions: readonly RegionUse[];
}

const KINDS = ["chunks", "manifests", "claims", "marks", "repairs", "history"] as const;
const KEYS_AT_A_TIME = 32;
const GB = 1e9;

/** What a walk over all keys that begin with a prefix has measured. */
export interface Measured {
  readonly use: Use;
  /** Keys whose chunks count as named because it is not known whether they are. */
  readonly unknown: number;
  /** Why a region could not be listed, by its name. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Measures all keys that begin with `prefix`. `look` sees each while it is listed, with what its manifests say. */
export async function measureUse(
  prefix: string,
  options: { readonly cost?: boolean },
  context: CommandContext & { readonly breaker: Breaker },
  look: (group: KeyGroup, use: KeyUse) => Promise<void> = async () => {},
): Promise<Measured> {
  const problems = new Map<string, string>();
  const groups = keyGroups(context.stores, prefix, context.signal, {
    kinds: KINDS,
    onFailure: ({ region: { name } }, error) => {
      context.breaker.open(name);
      problems.set(name, error.message);
    },
  });
  const totals = new Map<string, RegionBytes>();
  let [objects, objectBytes, unknown] = [0, 0, 0];
  const measured = mapOrdered(groups, KEYS_AT_A_TIME, async (group) => {
    const stores = context.stores.filter(({ region }) => !problems.has(region.name));
    const use = await measureKey(group, { ...context, stores });
    await look(group, use);
    return { key: group.key, ...use };
  });
  for await (const use of measured) {
    if (use.objectBytes !== undefined) objects++;
    objectBytes += use.objectBytes ?? 0;
    addTo(totals, use);
    if (use.problem === undefined) continue;
    if (unknown++ === 0) logLine(`warning: chunks of ${printable(use.key)} count as named: ${use.problem}`);
  }
  const regions = context.config.regions.map((region) => {
    const problem = problems.get(region.name);
    return { ...regionUse(region, totals.get(region.name) ?? NO_BYTES, options), ...(problem && { problem }) };
  });
  return { use: useOf({ objects, objectBytes, regions }), unknown, problems };
}

function addTo(totals: Map<string, RegionBytes>, { regions }: KeyUse): void {
  for (const [name, bytes] of regions) totals.set(name, addBytes(totals.get(name) ?? NO_BYTES, bytes));
}

function regionUse(
  { name, storageUsdPerGbMonth }: Config["regions"][number],
  use: RegionBytes,
  { cost = false }: { readonly cost?: boolean },
): RegionUse {
  const bytes = use.chunks + use.manifests + use.kept + use.orphaned + use.other;
  const usdPerMonth = storageUsdPerGbMonth === undefined ? undefined : (bytes / GB) * storageUsdPerGbMonth;
  return { region: name, ...use, bytes, ...(cost && usdPerMonth !== undefined && { usdPerMonth }) };
}

function useOf({ objects, objectBytes, regions }: Pick<Use, "objects" | "objectBytes" | "regions">): Use {
  const sum = (of: (region: RegionUse) => number): number => regions.reduce((all, region) => all + of(region), 0);
  const storedBytes = sum(({ bytes }) => bytes);
  const isPriced = regions.some(({ usdPerMonth }) => usdPerMonth !== undefined);
  const orphanedUsd = ({ usdPerMonth = 0, bytes, orphaned }: RegionUse): number =>
    bytes === 0 ? 0 : (usdPerMonth * orphaned) / bytes;
  return {
    objects,
    objectBytes,
    storedBytes,
    keptBytes: sum(({ kept }) => kept),
    orphanedBytes: sum(({ orphaned }) => orphaned),
    ...(objectBytes > 0 && { overhead: storedBytes / objectBytes }),
    ...(isPriced && { usdPerMonth: sum(({ usdPerMonth = 0 }) => usdPerMonth), orphanedUsdPerMonth: sum(orphanedUsd) }),
    regions,
  };
}
