/** Guesses the format of a log from its first lines. */
import { LOG_FORMATS, lineParser, parseCsvRecord, type LogFormat, type LogRecord } from "./log-formats.ts";

/**
 * Returns the format that fits the most lines, if it fits at least half of them, and undefined otherwise. `records`:
 * the same text read as CSV with a header.
 */
export function guessLogFormat(lines: readonly string[], records: readonly LogRecord[] = []): LogFormat | undefined {
  const given = lines.filter((line) => line.trim() !== "");
  let best: LogFormat | undefined;
  let most = given.length / 2;
  for (const format of LOG_FORMATS) {
    const parsed = format === "csv" ? records.map(parseCsvRecord) : given.map(lineParser(format));
    const reads = parsed.filter(({ kind }) => kind === "read").length;
    // YCSB prints much besides its operations, so any line could be its own: only reads count as evidence.
    const counted = format === "ycsb" ? reads : parsed.filter(({ kind }) => kind !== "malformed").length;
    const fitting = format === "csv" && reads > 0 ? counted + 1 : counted;
    if (fitting > most || (fitting === most && best === undefined && fitting > 0)) {
      best = format;
      most = fitting;
    }
  }
  return best;
}
