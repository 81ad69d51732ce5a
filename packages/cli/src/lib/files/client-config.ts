/** The client configuration `agarose.json`, as the configuration of the command line implies it. */
import type { Config } from "@agarose/storage/config/config";
import { regionsByName } from "@agarose/storage/buckets/region-names";

/** The configuration of the web app. */
export interface ClientConfig {
  readonly pops: readonly { readonly name: string; readonly url: string }[];
  readonly regions: readonly { readonly name: string; readonly url: string }[];
  readonly publicKeys?: readonly string[];
  readonly unsigned?: true;
}

/** Returns the PoPs, public buckets and public keys of `config`. Empty lists without one. */
export function clientConfigOf(config: Config | undefined): ClientConfig {
  if (config === undefined) return { pops: [], regions: [] };
  // A private bucket is read by URLs that a PoP signs, so clients need not know it.
  const regions = regionsByName(config.regions).filter((region) => !region.private);
  return {
    pops: config.pops.map(({ name, url }) => ({ name, url })),
    regions: regions.map(({ name, url }) => ({ name, url })),
    ...(config.publicKeys && { publicKeys: config.publicKeys }),
    ...(config.unsigned && { unsigned: true }),
  };
}
