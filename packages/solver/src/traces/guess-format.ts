/** Guesses the format of a log from its first lines. */

import { LOG_FORMATS, parseLogLine } from "./log-formats.ts";
import type { LogFormat } from "./log-formats.ts";

/** Returns the format that fits the most lines, if it fits at least half of them, and undefined otherwise. */
export function guessLogFormat(lines: readonly string[]): LogFormat | undefined {
  const given = lines.filter((line) => line.trim() !== "");
  let best: LogFormat | undefined;
  let most = given.length / 2;
  for (const format of LOG_FORMATS) {
    const columns = given[0]?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
    const parsed = given.slice(format === "csv" ? 1 : 0).map((line) => parseLogLine(format, line, columns));
    // YCSB prints much besides its operations, so any line could be its own: only reads count as evidence.
    const counted = parsed.filter(({ kind }) => kind === "read" || (kind === "other" && format !== "ycsb")).length;
    const fitting = format === "csv" && counted > 0 ? counted + 1 : counted;
    if (fitting > most || (fitting === most && best === undefined && fitting > 0)) {
      best = format;
      most = fitting;
    }
  }
  return best;
}
