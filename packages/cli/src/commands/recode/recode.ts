/** `agarose recode`: stores objects again under the code and the placement that the configuration says now. */
import { AgaroseError } from "@agarose/core";
import { checkCode, type Code } from "@agarose/core/format";
import type { Config } from "@agarose/storage/config/config";
import { withContext, WRITING } from "../../lib/context.ts";
import { layoutOf } from "@agarose/storage/layout/object-layout";
import { hottestKeys } from "./hottest.ts";
import { reportRecode, type RecodeReportOptions } from "./recode-report.ts";
import type { Values } from "../../command.ts";
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
