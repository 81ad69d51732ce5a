/** The variables that a configuration sets for all of its PoPs. Pure. */
import type { Config } from "@agarose/storage/config/config";
import { regionsByName } from "@agarose/storage/buckets/region-names";

/** Where the PoP runs, in the part that its variables depend on. */
interface PopPlatform {
  /** Whether it has R2 bindings, which Cloudflare alone does. */
  readonly hasBindings: boolean;
}

/** Returns REGIONS, PEERS where there are others, the site, the origin, and whose manifests to use. */
export function sharedVariables(
  { regions, pops, publicKeys, site, origin }: Config,
  { hasBindings }: PopPlatform,
): Record<string, string> {
  return {
    REGIONS: JSON.stringify(
      regionsByName(regions).map(({ name, url, popUrl, binding, private: isPrivate, awsRegion, egressUsdPerGb }) => ({
        name,
        url,
        ...(popUrl !== undefined && { popUrl }),
        ...(hasBindings && binding !== undefined && { binding }),
        ...(isPrivate && { private: true, awsRegion }),
        ...(egressUsdPerGb !== undefined && { egressUsdPerGb }),
      })),
    ),
    ...(pops.length > 1 && { PEERS: JSON.stringify(pops.map(({ name, url }) => ({ name, url }))) }),
    SITE: JSON.stringify(site ?? null),
    ORIGIN: JSON.stringify(origin?.url ?? null),
    PUBLISHER_KEYS: JSON.stringify(publicKeys ?? []),
    // Without keys, the configuration is in unsigned mode, or all its buckets are on this machine.
    UNSIGNED: String(publicKeys === undefined),
  };
}
