/** Which format a log has, told by its first lines. */

import { LOG_FORMATS, parseLogLine } from "./log-formats.ts";
import type { LogFormat } from "./log-formats.ts";

/** The format of which most lines are, and at least half of them; undefined when there is none. */
export function guessLogFormat(lines: readonly string[]): LogFormat | undefined {
  const given = lines.filter((line) => line.trim() !== "");
  let best: LogFormat | undefined;
  let most = given.length / 2;
  for (const format of LOG_FORMATS) {
    const columns = given[0]?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
    const parsed = given.slice(format === "csv" ? 1 : 0).map((line) => parseLogLine(format, line, columns));
    // YCSB prints much besides its operations, so anything could be a line of it: only reads tell.
    const counted = parsed.filter(({ kind }) => kind === "read" || (kind === "other" && format !== "ycsb")).length;
    const told = format === "csv" && counted > 0 ? counted + 1 : counted;
    if (told > most || (told === most && best === undefined && told > 0)) {
      best = format;
      most = told;
    }
  }
  return best;
}
