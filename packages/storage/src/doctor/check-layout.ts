/** Compares the losses that the configured layouts survive with the promise of the configuration. */
import { toAgaroseError } from "@agarose/core";
import { chunkBytes, checkSurvival, roundRobin, spread, survives, type Code } from "@agarose/core/format";
import { codesLine } from "../layout/codes-line.ts";
import { autoCodes, keptRegions } from "../layout/object-layout.ts";
import { formatCount } from "../maintenance/amounts.ts";
import type { Config } from "../config/config.ts";
import type { Check } from "./check.ts";

/** Checks whether every code of the configuration survives what `survive` promises. One check per code. Pure. */
export function checkLayout(config: Config): Check[] {
  const fixed = [config.code, ...config.codes.map(({ code }) => code)];
  const codes = new Map(fixed.flatMap((code) => (code === "auto" ? [] : [[`${code.k}+${code.m}`, code]])));
  return [
    ...(fixed.includes("auto") ? [checkAuto(config)] : []),
    ...[...codes.values()].map((code) => checkCode(code, config)),
  ];
}

function checkCode(code: Code, config: Config): Check {
  const { survive, stripeBytes } = config;
  const regions = keptRegions(config);
  const placement = roundRobin(code, regions, "");
  const actual = survives(code, placement, regions);
  const overhead = ((code.k + code.m) / code.k).toFixed(2);
  const shard = chunkBytes({ bytes: stripeBytes, stripeBytes, k: code.k });
  const found =
    `${code.k}+${code.m} over ${formatCount(regions.length, "region")} takes ${overhead}x storage (shards of ${shard} bytes) and survives ` +
    `the loss of ${formatCount(actual.regions, "region")}, or of ${formatCount(actual.providers, "provider")}`;
  return survival(() => {
    checkSurvival(code, placement, regions, survive);
    return found;
  });
}

function checkAuto(config: Config): Check {
  const { survive } = config;
  const regions = keptRegions(config);
  return survival(() => {
    const chosen = autoCodes(config);
    for (const { k, m, inline } of chosen.codes) {
      if (!inline) checkSurvival({ k, m }, spread({ k, m }, regions, ""), regions, survive);
    }
    return codesLine(chosen);
  });
}

/** @param check returns what was found, or throws. */
function survival(check: () => string): Check {
  try {
    return { subject: "layout", name: "survival", state: "ok", message: check() };
  } catch (error) {
    return { subject: "layout", name: "survival", state: "fail", message: toAgaroseError(error).message };
  }
}
