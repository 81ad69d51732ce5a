/** `agarose recode`: stores objects again under the code and the placement that the configuration says now. */
import { AgaroseError } from "@agarose/core";
import { checkCode, type Code } from "@agarose/core/format";
import type { Trace } from "@agarose/solver/traces";
import type { Config } from "@agarose/storage/config/config";
import { layoutOf } from "@agarose/storage/layout/object-layout";
import { withContext, WRITING } from "../../lib/context.ts";
import type { Values } from "../../command.ts";
import { readTrace, reportLines } from "../../lib/own-log.ts";
import { logLine } from "../../ui/output.ts";
import { withProgress } from "../../ui/progress.ts";
import { reportRecode, type RecodeReportOptions } from "./recode-report.ts";
import type { args } from "./index.ts";

/** Runs `agarose recode [PREFIX]`. The command exits with 1 when an object could not be rewritten. */
export async function recode(options: Values<typeof args>): Promise<number> {
  const { code, prefix } = options;
  checkRate(options);
  if (code === undefined && options.hottest !== undefined) {
    throw new AgaroseError("USAGE", "--hottest needs the code of the hottest objects: add --code");
  }
  const hot = await hottestKeys(options);
  return withContext(options, WRITING, async (command) => {
    const { config } = command;
    if (code === undefined) return reportRecode({ ...options, name: "recode" }, command);
    if (code !== "auto") checkCode({ ...code, stripeBytes: config.stripeBytes });
    const coded: Config = { ...config, code, codes: [] };
    if (!hot) return reportRecode({ ...options, name: "recode" }, { ...command, config: coded });
    // Refuses a code that is unsafe before anything happens.
    layoutOf(coded, prefix, 0);
    const configOf = (key: string): Config => (hot.has(key) ? coded : config);
    return reportRecode({ ...options, name: `recode hottest ${codeName(code)}`, configOf }, command);
  });
}

function codeName(code: Code | "auto"): string {
  return code === "auto" ? code : `${code.k}+${code.m}`;
}

/** Throws USAGE for a rate without --dry-run. */
export function checkRate({ rate, dryRun }: Pick<RecodeReportOptions, "rate" | "dryRun">): void {
  if (rate === undefined || dryRun) return;
  throw new AgaroseError("USAGE", "--rate is for --dry-run: add it, or leave --rate out");
}

/**
 * The keys of the objects that are read most, by an access log: EC-Cache gives them more parity (Rashmi et al., OSDI
 * 2016, section 6.1). Undefined when nothing is chosen by heat. Throws USAGE or SCENARIO_INVALID.
 */
async function hottestKeys({
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
