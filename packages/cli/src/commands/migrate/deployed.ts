/** Whether the PoPs know the regions that objects are about to move to. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import * as v from "valibot";
import { ADMIN_TOKEN_VARIABLE, adminTokenOf } from "@agarose/storage/pops/admin-token";
import type { Config } from "@agarose/storage/config/config";
import { logLine } from "../../ui/output.ts";
import { regionsByName } from "@agarose/storage/buckets/region-names";
import { POP_ANSWER_BYTES_MAX, readRecordText } from "@agarose/storage/buckets/small-record";

const TIMEOUT_MS = 10_000;
/** Of an answer to `/v1/status`. */
const REGIONS_KNOWN = v.object({ regions: v.array(v.object({ name: v.string() })) });

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
async function knownRegions({ name, url }: Config["pops"][number]): Promise<readonly string[] | string> {
  const token = adminTokenOf(name);
  if (token === undefined) return `set ${ADMIN_TOKEN_VARIABLE}`;
  try {
    const response = await fetch(`${url}/v1/status`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) {
      // Where a server closes the connection of an answer that nobody reads, Node's client ends the process.
      await response.body?.cancel();
      return `it answered ${response.status}`;
    }
    const status = v.safeParse(REGIONS_KNOWN, JSON.parse(await readRecordText(response, url, POP_ANSWER_BYTES_MAX)));
    if (!status.success) return `${url}/v1/status is not what a PoP answers`;
    return status.output.regions.map((region) => region.name);
  } catch (error) {
    return toAgaroseError(error, "SOURCE_FAILED").message;
  }
}
