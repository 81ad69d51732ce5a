/** The `sh` blocks of a Markdown page, with what the page says of them. Pure. */

/** Commands as a reader would paste them. */
export interface Block {
  readonly page: string;
  readonly code: string;
  /** The HTML comment directly before the block, if any. */
  readonly comment: string | undefined;
  /** The output of the commands by the page: a text block directly behind. */
  readonly shown: string | undefined;
}

/** A block that `e2e/packages` runs from tarballs, in an empty folder. */
export const OUTSIDE = "outside the clone";

/** The blocks of `text`, the page at the path `page`. */
export function blocksOf(page: string, text: string): Block[] {
  return [...text.matchAll(/(?:<!-- ([^\n]+?) -->\s*\n+)?^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)\n```)?/gms)].map(
    ([, comment, code = "", shown]) => ({ page, code, comment, shown }),
  );
}

/** The lines of an output, without the sizes, ids and times that differ from run to run. */
export function withoutFigures(output: string): string[] {
  return output.split("\n").map((line) => line.replace(/\b[\da-f]{16,}\b|\d+(\.\d+)?/g, "#").trimEnd());
}
