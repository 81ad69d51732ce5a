/**
 * The names of regions in manifests. A manifest is signed, so it keeps the name that a region had when it was stored:
 * `formerly` of the configuration says which region that is now.
 */
import { chunkRegions, type Manifest } from "@agarose/core/format";
import type { RegionConfig } from "../config/config.ts";
import type { Store } from "./store.ts";

type NamedRegion = Pick<RegionConfig, "name" | "formerly">;

/** The regions of stores, in their order. */
export function regionsOf(stores: readonly Store[]): RegionConfig[] {
  return stores.map(({ region }) => region);
}

/** The store of the region that has or had this name. Undefined where none is configured. */
export function storeNamed(stores: readonly Store[], name: string): Store | undefined {
  return stores.find(({ region }) => hasName(region, name));
}

/** Names of a manifest as the regions are named now. Those of no region stay. */
export function currentNames(names: readonly string[], regions: readonly NamedRegion[]): string[] {
  return names.map((name) => regions.find((region) => hasName(region, name))?.name ?? name);
}

/** The regions with, for each former name, one more that reads the same bucket: what readers have to know. */
export function regionsByName<R extends NamedRegion>(regions: readonly R[]): R[] {
  return regions.flatMap((region) =>
    region.formerly === undefined ? [region] : [region, { ...region, name: region.formerly }],
  );
}

/** The manifest with the names that its regions have now. */
export function withCurrentNames(manifest: Manifest, regions: readonly NamedRegion[]): Manifest {
  const { placement, leaves, extra } = manifest;
  return {
    ...manifest,
    placement: currentNames(placement, regions),
    ...(extra && { extra: { ...extra, placement: currentNames(extra.placement, regions) } }),
    ...(leaves && { leaves: currentNames(leaves, regions) }),
  };
}

/** Whether a manifest has a name that one of the regions had before. */
export function hasFormerName(manifest: Manifest, regions: readonly NamedRegion[]): boolean {
  const names = [...chunkRegions(manifest), ...(manifest.leaves ?? [])];
  return regions.some(({ formerly }) => formerly !== undefined && names.includes(formerly));
}

function hasName({ name, formerly }: NamedRegion, wanted: string): boolean {
  return name === wanted || formerly === wanted;
}
