/**
 * Which objects are read most, by an access log. EC-Cache gives them more parity, so that their readers have more
 * chunks to choose from (Rashmi et al., OSDI 2016, section 6.1).
 */
import { AgaroseError } from "@agarose/core";
import type { Trace } from "@agarose/solver/traces";
import { withProgress } from "../../ui/progress.ts";
import { readTrace, reportLines } from "../../lib/own-log.ts";
import { logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The keys of the hottest objects. Undefined when nothing is chosen by heat. Throws USAGE or SCENARIO_INVALID. */
export async function hottestKeys({
  hottest,
  log,
  format,
  logPrefix = "",
  ...output
}: Values<typeof args>): Promise<ReadonlySet<string> | undefined> {
  if (hottest === undefined && log.length === 0) return undefined;
  if (hottest === undefined || log.length === 0) {
    throw new AgaroseError("USAGE", "--hottest and --log belong together: give the share, and the log to rank by");
  }
  const how = { format, isStrict: false, perSecond: 1, readsMax: Number.POSITIVE_INFINITY };
  const trace = await withProgress((show) => readTrace(log, how, show), output);
  for (const line of reportLines(log, trace)) logLine(line);
  const ranked = rankedKeys(trace).flatMap((key) => (key.startsWith(logPrefix) ? [key.slice(logPrefix.length)] : []));
  if (ranked.length === 0) {
    const message = `no object of ${log.join(", ")} begins with ${JSON.stringify(logPrefix)}, but ${JSON.stringify(trace.keys[0])} is there: change --log-prefix`;
    throw new AgaroseError("USAGE", message, { logPrefix });
  }
  return new Set(ranked.slice(0, Math.max(1, Math.round(hottest * ranked.length))));
}

/** Keys by their reads, most first. */
function rankedKeys({ keys, object }: Trace): string[] {
  const reads = new Uint32Array(keys.length);
  for (const index of object) reads[index]!++;
  return [...keys.keys()].toSorted((a, b) => reads[b]! - reads[a]!).map((index) => keys[index]!);
}
