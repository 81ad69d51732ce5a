/**
 * Plots as HTML tables whose last column has a bar: they read well aloud, on paper and in a narrow window.
 */

/** A row of `bars`. */
export interface Bar {
  readonly name: string;
  /** Length of the bar, in the unit of all rows; without one the row has none. */
  readonly value?: number;
  /** What a full bar means. Default: the largest value of all rows. */
  readonly max?: number;
  /** The value for people. */
  readonly text: string;
  readonly isBad?: boolean;
}

/** A row of `spans`. */
export interface Span {
  readonly name: string;
  /** Null while unknown. */
  readonly from: number | null;
  readonly to: number | null;
  readonly note: string;
}

/** Text that is safe in an element or an attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** A table of text. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[]): string => row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join("");
  return `<table>${headOf(head)}<tbody>${rows.map((row) => `<tr>${cells(row)}</tr>`).join("")}</tbody></table>`;
}

/** A horizontal bar for each row, with its value beside it. */
export function bars(head: readonly [string, string], rows: readonly Bar[]): string {
  const largest = Math.max(0, ...rows.map(({ value = 0 }) => value));
  const lines = rows.map(({ name, value, max = largest, text, isBad = false }) => {
    const share = value === undefined || max <= 0 ? 0 : Math.min(1, value / max);
    const bar = value === undefined ? "" : barOf(0, share, isBad);
    return `<tr><th scope="row">${escapeHtml(name)}</th><td>${bar}<span>${escapeHtml(text)}</span></td></tr>`;
  });
  return `<table class="plot">${headOf(head)}<tbody>${lines.join("")}</tbody></table>`;
}

/** A bar from one value to another for each row, on one logarithmic scale. */
export function spans(head: readonly [string, string], rows: readonly Span[]): string {
  const values = rows.flatMap(({ from, to }) => [from, to]).filter((value) => value !== null && value > 0) as number[];
  const [low, high] = [Math.min(1, ...values), Math.max(10, ...values)];
  const at = (value: number): number => Math.log(Math.max(low, value) / low) / Math.log(high / low);
  const lines = rows.map(({ name, from, to, note }) => {
    const isKnown = from !== null && to !== null;
    const bar = isKnown ? barOf(at(from), at(to), note !== "") : "";
    const text = [isKnown ? `${from.toFixed(0)} to ${to.toFixed(0)} ms` : "unknown", note].filter(Boolean).join(", ");
    return `<tr><th scope="row">${escapeHtml(name)}</th><td>${bar}<span>${escapeHtml(text)}</span></td></tr>`;
  });
  return `<table class="plot">${headOf(head)}<tbody>${lines.join("")}</tbody></table>`;
}

function headOf(names: readonly string[]): string {
  return `<thead><tr>${names.map((name) => `<th scope="col">${escapeHtml(name)}</th>`).join("")}</tr></thead>`;
}

/** `from` and `to` are shares of the column. */
function barOf(from: number, to: number, isBad: boolean): string {
  const place = `margin-left:${(100 * from).toFixed(1)}%;width:${(100 * Math.max(0, to - from)).toFixed(1)}%`;
  return `<i class="${isBad ? "bar bad" : "bar"}" style="${place}"></i>`;
}
