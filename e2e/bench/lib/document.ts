/**
 * docs/internals/benchmarks.md: every measurement owns the section between its two marks and rewrites nothing else, so
 * that text around them, and sections of other programs, stay as they are.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";

const PATH = fileURLToPath(new URL("../../../docs/internals/benchmarks.md", import.meta.url));

/** Puts `section` in the place of the one named `name`, or at the end. Rejects when more than a section would go. */
export async function writeSection(name: string, section: string): Promise<void> {
  const [begin, end] = [`<!-- bench: ${name} -->`, `<!-- end: ${name} -->`];
  const text = await readFile(PATH, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (text.slice(from, to).split("\n## ").length > 2) {
    throw new Error(`${PATH} has another section between the marks of ${name}: move it out of them`);
  }
  const marked = `${begin}\n\n${section}\n\n${end}`;
  const next =
    from >= 0 && to > from ? text.slice(0, from) + marked + text.slice(to + end.length) : `${text}\n${marked}\n`;
  await writeFile(PATH, await format(next, { ...(await resolveConfig(PATH)), filepath: PATH }));
}
