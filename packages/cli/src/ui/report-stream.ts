/** The results of a walk over many objects, printed as they come, so that memory does not grow with them. */
import { toAgaroseError } from "@agarose/core";
import { exitCodeOf, printableText, type OutputOptions } from "./output.ts";

/** Options that choose a format: lines for people, one JSON document, or one JSON document a line. */
export interface ReportOptions extends OutputOptions {
  readonly jsonLines?: boolean;
}

/**
 * Runs a walk that reports its results as they come, and returns its exit code. `name` is the property of the results
 * in a JSON document. An error ends that document; before the first result, and for people, the walk rejects with it.
 */
export async function reportWalk(
  options: ReportOptions,
  walk: (report: ReportStream) => Promise<number>,
  name?: string,
): Promise<number> {
  const report = new ReportStream(options, name);
  try {
    return await walk(report);
  } catch (error) {
    return report.fail(error);
  }
}

/**
 * Prints results that are all known as `ReportStream` prints those that come one by one. `lines` are those of all of
 * them for people, `name` as in `reportWalk`; `summary` has no property of that name.
 */
export async function printResults(
  options: ReportOptions,
  results: readonly object[],
  summary: object,
  lines: readonly string[],
  name?: string,
): Promise<void> {
  const report = new ReportStream(options, name);
  for (const result of results) await report.item(result, []);
  await report.end(summary, lines);
}

/** A document has one property of each name, and the results of a walk have one of these. */
type Summary<T> = T & { readonly objects?: never; readonly uploads?: never };

/** Prints one result after another on stdout. Each method resolves when there is room for more. */
export class ReportStream {
  readonly #format: "text" | "json" | "json-lines" | "quiet";
  /** The first properties of a JSON document. */
  readonly #open: string;
  #items = 0;

  constructor({ json, jsonLines, quiet }: ReportOptions, name = "objects") {
    this.#open = `{"${name}":[`;
    this.#format = jsonLines ? "json-lines" : json ? "json" : quiet ? "quiet" : "text";
  }

  /** A result: `value` in JSON, `lines` for people. */
  async item(value: object, lines: readonly string[]): Promise<void> {
    const comma = this.#items++ > 0 ? "," : this.#open;
    if (this.#format === "json") await write(`${comma}${JSON.stringify(value)}`);
    else if (this.#format === "json-lines") await write(`${JSON.stringify(value)}\n`);
    else if (this.#format === "text") await writeLines(lines);
  }

  /** The summary of all results. In JSON, `summary` follows them, as further properties or as the last line. */
  async end<T extends object>(summary: Summary<T>, lines: readonly string[]): Promise<void> {
    if (this.#format === "json-lines") await write(`${JSON.stringify({ summary })}\n`);
    else if (this.#format === "json") await this.#close(summary);
    else if (this.#format === "text") await writeLines(lines);
  }

  /** Prints the error of a walk that ended early, and returns its exit code. Throws it again when it is the first. */
  async fail(cause: unknown): Promise<number> {
    if (this.#items === 0 || this.#format === "text" || this.#format === "quiet") throw cause;
    const error = toAgaroseError(cause);
    if (this.#format === "json") await this.#close({ error });
    else await write(`${JSON.stringify({ error })}\n`);
    return exitCodeOf(error.code);
  }

  #close(rest: object): Promise<void> {
    const open = this.#items > 0 ? "" : this.#open;
    const properties = JSON.stringify(rest).slice(1);
    return write(`${open}]${properties === "}" ? "" : ","}${properties}\n`);
  }
}

function writeLines(lines: readonly string[]): Promise<void> {
  return lines.length === 0 ? Promise.resolve() : write(`${lines.map(printableText).join("\n")}\n`);
}

function write(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
