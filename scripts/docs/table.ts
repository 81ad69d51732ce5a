/** Returns a Markdown table, with bars in its cells escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("");
}

/** Returns `text` as code. */
export function code(text: string): string {
  return `\`${text}\``;
}
