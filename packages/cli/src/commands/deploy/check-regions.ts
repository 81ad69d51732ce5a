/** Whether the PoPs read from the buckets that the command line writes to. Pure. */
import { isRecord, isText } from "@agarose/core/format";
import type { Config } from "@agarose/storage/config/config";
import { regionsByName } from "@agarose/storage/buckets/region-names";
import type { PopEnvironment } from "./deployment.ts";

/** A bucket of the wrangler.toml that comes with Agarose. */
const EXAMPLE_URL = "https://agarose-frankfurt.s3.eu-central-1.amazonaws.com";

/**
 * Warnings about PoPs whose REGIONS are the example's or differ from the configuration.
 *
 * @param config undefined where there is no configuration file to compare with.
 */
export function regionWarnings(pops: readonly PopEnvironment[], config: Config | undefined): string[] {
  return pops.flatMap(({ name, vars }) => {
    const regions = regionsOf(vars["REGIONS"]);
    const where = `REGIONS of [env.${name}]`;
    if (regions.some(({ url }) => url === EXAMPLE_URL) && !config?.regions.some(({ url }) => url === EXAMPLE_URL)) {
      return [`${where} still names the example's buckets: replace them with yours`];
    }
    if (config === undefined) return [];
    const configured = new Map(regionsByName(config.regions).map((region) => [region.name, region.url]));
    const served = new Map(regions.map((region) => [region.name, region.url]));
    const missing = [...configured.keys()].filter((region) => !served.has(region));
    const unknown = [...served.keys()].filter((region) => !configured.has(region));
    const moved = [...configured].filter(([region, url]) => served.has(region) && served.get(region) !== url);
    return [
      ...(missing.length > 0 ? [`${where} lacks ${missing.join(", ")} of the configuration`] : []),
      ...(unknown.length > 0 ? [`${where} names ${unknown.join(", ")}, which the configuration does not have`] : []),
      ...moved.map(([region, url]) => `${where} has ${served.get(region)} for ${region}, the configuration ${url}`),
    ];
  });
}

/** The regions in REGIONS that can be read. The Worker refuses the others. */
function regionsOf(text: unknown): { name: string; url: string }[] {
  try {
    const list: unknown = JSON.parse(String(text));
    if (!Array.isArray(list)) return [];
    return list.flatMap((region: unknown) => {
      if (!isRecord(region) || !isText(region["name"]) || !isText(region["url"])) return [];
      return [{ name: region["name"], url: region["url"].replace(/\/+$/, "") }];
    });
  } catch {
    return [];
  }
}
