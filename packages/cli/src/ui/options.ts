/**
 * Options that several commands have. Every help loads this module, so it imports nothing that does the work.
 */
import { Option } from "commander";
import { AgaroseError } from "@agarose/core";
import { HEADERS_ALLOWED } from "@agarose/core/format";
import { LOG_FORMATS, type LogFormat } from "@agarose/solver/traces";

/** The option that answers the question of `confirm` beforehand, for `Command.option`. */
export const YES = ["-y, --yes", "do not ask before it begins, as for scripts"] as const;

/** The option by which a command says what it would do, for `Command.option`. */
export const DRY_RUN = ["--dry-run", "say what would be done, and do nothing"] as const;

/** The option that chooses JSON lines, for `Command.option`. */
export const JSON_LINES = [
  "--json-lines",
  "print one JSON document for each object, then one with the summary",
] as const;

/** The option that names a cursor file, for `Command.option`. */
export const CURSOR = [
  "--cursor <file>",
  "keep the last key that is done in this file, and continue after it when the file is there",
] as const;

/**
 * `--consistency`, by which a command reads from what is left when most regions do not answer, for
 * `Command.addOption`.
 */
export function consistencyOption(): Option {
  const text =
    "strong reads what a majority of the regions holds; eventual takes the first sound copy, which may be an old " +
    "version, and needs one region and k chunks";
  return new Option("--consistency <word>", text).choices(["strong", "eventual"]).default("strong");
}

/** `--header`, for `Command.addOption`. `parseHeaders` takes its value. */
export function headerOption(): Option {
  const names = [...HEADERS_ALLOWED].join(", ");
  return new Option("--header <line>", `response header "name: value", repeatable: ${names}`)
    .argParser(collect)
    .default([]);
}

/** `--jobs`, for `Command.addOption`. `widthOf` takes its value. */
export function jobsOption(): Option {
  return new Option("--jobs <count>", "objects stored at a time; default: as many as the stores take").argParser(
    jobCount,
  );
}

/** Adds the value of an option that may be repeated to those before it. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** The format of an access log by its name. Throws USAGE for any other. */
export function parseFormat(text: string): LogFormat {
  const format = LOG_FORMATS.find((name) => name === text);
  if (format) return format;
  throw new AgaroseError("USAGE", `--format must be one of ${LOG_FORMATS.join(", ")}, got ${text}`, { text });
}

function jobCount(value: string): number {
  const jobs = Number(value);
  if (Number.isInteger(jobs) && jobs >= 1 && jobs <= 64) return jobs;
  throw new AgaroseError("USAGE", `--jobs ${value} is not a whole number from 1 to 64`);
}
