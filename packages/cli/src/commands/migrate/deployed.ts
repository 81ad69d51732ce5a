/** Whether the PoPs know the regions that objects are about to move to. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import type { Config } from "@agarose/storage/config/config";
import { regionsByName } from "@agarose/storage/buckets/region-names";
import { PopClient } from "@agarose/storage/pops/pop-client";
import { logLine } from "../../ui/output.ts";

/**
 * Throws USAGE where a PoP answers without one of the regions: its readers would miss the chunks there. A PoP that
 * cannot be asked is a warning.
 */
export async function checkDeployed({ pops, regions }: Pick<Config, "pops" | "regions">): Promise<void> {
  const found = await Promise.all(pops.map(async (pop) => ({ pop: pop.name, known: await knownRegions(pop) })));
  for (const { pop, known } of found) {
    if (typeof known === "string") {
      logLine(`warning: whether ${pop} knows the regions is not known: ${known}`);
      continue;
    }
    const missing = regionsByName(regions).flatMap(({ name }) => (known.includes(name) ? [] : [name]));
    if (missing.length === 0) continue;
    throw new AgaroseError(
      "USAGE",
      `PoP ${pop} knows ${known.length} regions, and not ${missing.join(", ")}: deploy it, wait for its next period, and ` +
        "run --move again",
      { pop, missing },
    );
  }
}

/** The regions that a PoP has measured, or why it cannot be asked. */
async function knownRegions(pop: Config["pops"][number]): Promise<readonly string[] | string> {
  try {
    return (await new PopClient(pop).status()).answer.regions.map(({ name }) => name);
  } catch (error) {
    return toAgaroseError(error, "SOURCE_FAILED").message;
  }
}
