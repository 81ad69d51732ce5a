/** Tables for people. */

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
