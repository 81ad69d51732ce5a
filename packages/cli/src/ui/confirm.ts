/**
 * The question before a command deletes or replaces much at once.
 *
 * On a terminal it is asked, with a summary of what would go. A script answers it with `--yes`. Without either, most
 * commands continue, because nobody is there to ask; what would take everything refuses.
 */
import { createInterface } from "node:readline/promises";
import { AgaroseError } from "@agarose/core";
import { printableText } from "./output.ts";

interface ConfirmOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** The action that a command is about to take. */
export interface Danger {
  /** The losses, in whole sentences. The question follows them on the terminal. */
  readonly summary: readonly string[];
  /** Ends in a question mark. */
  readonly question: string;
  /** Whether it takes everything there is. Without a terminal and without `--yes` it is refused then. */
  readonly isTotal?: boolean;
}

/**
 * Resolves when the command may continue.
 *
 * @throws ABORTED when the answer is no, USAGE when nobody can be asked about what takes everything.
 */
export async function confirm(
  { summary, question, isTotal = false }: Danger,
  { yes = false, dryRun = false }: ConfirmOptions,
  signal?: AbortSignal,
): Promise<void> {
  if (yes || dryRun) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    if (!isTotal) return;
    const message = `${summary.join(" ")} Nobody is at a terminal to confirm it: look with --dry-run, then add --yes`;
    throw new AgaroseError("USAGE", message);
  }
  for (const line of summary) process.stderr.write(`${printableText(line)}\n`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // The end of the input, as by Ctrl-D, is not an answer. Without this, the question would wait for ever.
  const closed = Promise.withResolvers<string>();
  terminal.once("close", () => closed.resolve(""));
  try {
    const asked = terminal.question(`${question} [y/N] `, signal ? { signal } : {});
    const answer = await Promise.race([asked, closed.promise]);
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    terminal.close();
  }
  signal?.throwIfAborted();
  throw new AgaroseError("ABORTED", "it was not confirmed, so nothing was done");
}

/** Some of many names, for a summary: `"a", "b", "c" and 4 others`. */
export function sampleOf(names: readonly string[], shown = 3): string {
  const some = names.slice(0, shown).map((name) => JSON.stringify(name));
  const rest = names.length - some.length;
  return some.join(", ") + (rest > 0 ? ` and ${rest} others` : "");
}
