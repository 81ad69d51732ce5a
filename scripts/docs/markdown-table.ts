/** Tables of the documents, read back: what was measured is on record there. */

/** A table by its rows, each with its cells by column. */
export type TableRows = readonly Readonly<Record<string, string>>[];

/**
 * Returns the first table after `mark`. Of columns with the same name, the second one has ` 2` behind it. Throws where
 * there is none.
 */
export function tableAfter(markdown: string, mark: string): TableRows {
  const from = markdown.indexOf(mark);
  const lines = from < 0 ? [] : markdown.slice(from).split("\n");
  const first = lines.findIndex((line) => line.startsWith("|"));
  if (first < 0) throw new Error(`the document has no table after "${mark}"`);
  const end = lines.findIndex((line, i) => i > first && !line.startsWith("|"));
  const [head = [], , ...rows] = lines.slice(first, end < 0 ? undefined : end).map(cellsOf);
  const columns = head.map((name, i) => (head.indexOf(name) < i ? `${name} 2` : name));
  return rows.map((cells) => Object.fromEntries(columns.map((name, i) => [name, cells[i] ?? ""])));
}

/** The number that a cell begins with, or undefined for `none` and the like. Throws where the column is missing. */
export function numberOf(row: TableRows[number], column: string): number | undefined {
  const cell = row[column];
  if (cell === undefined) throw new Error(`the table has no column "${column}", only ${Object.keys(row).join(", ")}`);
  const value = Number.parseFloat(cell);
  return Number.isNaN(value) ? undefined : value;
}

function cellsOf(line: string): string[] {
  return line
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim());
}
