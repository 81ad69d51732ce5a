/**
 * The pages with figures: every measurement owns the section between its two marks and rewrites nothing else, so
 * that text around them, and sections of other programs, stay as they are.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import type { Bench } from "../bench.ts";

const DOCS = new URL("../../../docs/", import.meta.url);

/** Puts `section` in the place of the one named `name`, or at the end. Rejects when more than a section would go. */
export async function writeSection(
  { name, page = "internals/benchmarks.md" }: Pick<Bench, "name" | "page">,
  section: string,
): Promise<void> {
  const path = fileURLToPath(new URL(page, DOCS));
  const [begin, end] = [`<!-- bench: ${name} -->`, `<!-- end: ${name} -->`];
  const text = await readFile(path, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (text.slice(from, to).split("\n## ").length > 2) {
    throw new Error(`${path} has another section between the marks of ${name}: move it out of them`);
  }
  const marked = `${begin}\n\n${section}\n\n${end}`;
  const next =
    from >= 0 && to > from ? text.slice(0, from) + marked + text.slice(to + end.length) : `${text}\n${marked}\n`;
  await writeFile(path, await format(next, { ...(await resolveConfig(path)), filepath: path }));
}
