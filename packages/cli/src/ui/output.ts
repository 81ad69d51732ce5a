/** The output of a command: its result on stdout, everything else on stderr, and its exit code. */
import { toAgaroseError, type AgaroseError, type ErrorCode } from "@agarose/core";
import type { PutResult } from "@agarose/storage";
import { formatCount } from "@agarose/storage/maintenance/amounts";

export { formatBytes, formatCount } from "@agarose/storage/maintenance/amounts";

/** The command did its work. */
export const EXIT_OK = 0;
/** A check failed, or the command could not do its work. */
export const EXIT_FAILED = 1;
/** The arguments or a file given to the command are wrong. */
export const EXIT_USAGE = 2;
/** The reader of stdout went away, as `head` does. Shells report this code for a program that SIGPIPE ended. */
export const EXIT_OUTPUT_CLOSED = 141;

const USAGE_CODES: ReadonlySet<ErrorCode> = new Set([
  "USAGE",
  "FILE_UNREADABLE",
  "CODING_INVALID",
  "CONFIG_INVALID",
  "KEY_INVALID",
  "KEY_TOO_LONG",
  "CODE_INVALID",
  "KNAPSACK_INVALID",
  "SCENARIO_INVALID",
]);

/** How a command prints: options of all commands. */
export interface OutputOptions {
  /** One JSON document on stdout in place of lines. */
  readonly json?: boolean;
  /** No lines for people and no progress, but errors are still written to stderr. */
  readonly quiet?: boolean;
}

/** Prints a command's result: `value` as one JSON document with --json, else `lines` for people, unless it is quiet. */
export function printResult({ json, quiet }: OutputOptions, value: unknown, lines: readonly string[]): void {
  const text = json ? JSON.stringify(value) : quiet ? "" : lines.map(printableText).join("\n");
  if (text !== "") process.stdout.write(`${text}\n`);
}

/** Whether an error comes from a write to stdout after its reader went away. */
export function isOutputClosed(cause: unknown): boolean {
  return cause instanceof Error && (cause as NodeJS.ErrnoException).code === "EPIPE";
}

/** Prints a line on stderr. */
export function logLine(line: string): void {
  process.stderr.write(`${printableText(line)}\n`);
}

/** Reports `cause` (as JSON on stdout with --json) and returns the exit code for it. */
export function printError(json: boolean, cause: unknown): number {
  const error = toAgaroseError(cause);
  if (json) process.stdout.write(`${JSON.stringify({ error })}\n`);
  else logLine(`${error.code}: ${error.message}`);
  if (error.code === "INTERNAL" && cause instanceof Error) logLine(cause.stack ?? "");
  return exitCodeOf(error.code);
}

/** Returns the exit code for an error code: EXIT_USAGE where the caller must change something, else EXIT_FAILED. */
export function exitCodeOf(code: ErrorCode): number {
  return USAGE_CODES.has(code) ? EXIT_USAGE : EXIT_FAILED;
}

/** The outcome of one key, for people, in columns. */
export function itemLine(outcome: string, key: string, ...rest: readonly string[]): string {
  return [outcome.padEnd(10), printable(key), ...rest].join("  ");
}

/** Why something could not be done to one key, for people. */
export function failedLine(key: string, { code, message }: AgaroseError): string {
  return itemLine("failed", key, `${code}: ${printable(message)}`);
}

/** A key on one line: control characters, line breaks included, as escapes. */
export function printable(key: string): string {
  return key.replace(/\p{Cc}/gu, escapeControl);
}

/** Text of several lines with the control characters that a terminal would obey as escapes. */
export function printableText(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, escapeControl);
}

function escapeControl(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`;
}

/** For the `onLeftover` of functions that write files. */
export function logLeftover(path: string): void {
  logLine(`removed ${path}, which an interrupted run left behind`);
}

/** Says on stderr what of a put could not be stored. */
export function warnOfLacks({
  key,
  regionsWithoutManifest,
  missing,
}: Pick<PutResult, "key" | "regionsWithoutManifest" | "missing">): void {
  for (const { region, problem } of regionsWithoutManifest) {
    logLine(`warning: ${region} did not take the manifest of ${printable(key)}: ${printable(problem)}`);
  }
  if (missing.length === 0) return;
  const chunks = formatCount(missing.length, "chunk");
  logLine(`warning: ${chunks} of ${printable(key)} could not be stored: run \`agarose repair\` later`);
}

/**
 * Returns a line for each row, with cells as wide as their column. Numbers stand at the right: `isNumber` says where.
 */
export function tableLines(
  rows: readonly (readonly string[])[],
  isNumber: (column: number) => boolean = () => false,
): string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)));
  const padded = (cell: string, at: number): string =>
    isNumber(at) ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
  return rows.map((row) => row.map(padded).join("  ").trimEnd());
}
