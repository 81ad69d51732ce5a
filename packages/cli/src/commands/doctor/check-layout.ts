/**
 * What the configured layout survives, against what the configuration promises.
 */
import { chunkBytes, checkSurvival, roundRobin, survives, toAgaroseError } from "@agarose/core";
import { formatCount } from "../../lib/output.ts";
import type { Config } from "../../lib/config.ts";
import type { Check } from "./check.ts";

export function checkLayout({ code, regions, survive, stripeBytes }: Config): Check[] {
  const placement = roundRobin(code, regions, "");
  const actual = survives(code, placement, regions);
  const overhead = ((code.k + code.m) / code.k).toFixed(2);
  const shard = chunkBytes({ bytes: stripeBytes, stripeBytes, k: code.k });
  const found =
    `${code.k}+${code.m} over ${formatCount(regions.length, "region")} takes ${overhead}x storage (shards of ${shard} bytes) and survives ` +
    `the loss of ${formatCount(actual.regions, "region")}, or of ${formatCount(actual.providers, "provider")}`;
  try {
    checkSurvival(code, placement, regions, survive);
    return [{ subject: "layout", name: "survival", state: "ok", message: found }];
  } catch (error) {
    return [{ subject: "layout", name: "survival", state: "fail", message: toAgaroseError(error).message }];
  }
}
