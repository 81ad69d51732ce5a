/** Tells people what is left behind: by an interrupted run, or to be repaired. */
import type { PutResult } from "@agarose/storage";
import { formatCount, logLine, printable } from "./output.ts";

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
