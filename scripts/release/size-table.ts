/**
 * The table of package sizes in docs/reference/versions.md. `npm run pack -- --sizes` rewrites it, and `e2e/packages`
 * compares it with what is packed. Pure.
 */
/** The page with the table, from the root of the repository. */
export const SIZES_PAGE = "docs/reference/versions.md";
const ROW = /^\| `((?:@agarose\/)?[a-z0-9-]+)` +\|([^|\n]+)\| +(\d+) kB \| +(\d+) kB \|$/gm;

/** A row of the table. Sizes are in kB of 1,000 bytes. */
export interface SizeRow {
  readonly name: string;
  readonly packedKb: number;
  readonly unpackedKb: number;
}

/** Sizes of a package in bytes. */
export interface PackageSize {
  readonly name: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
}

/** The rows of the table in `page`. */
export function sizeRows(page: string): SizeRow[] {
  return [...page.matchAll(ROW)].map(([, name, , packed, unpacked]) => ({
    name: name!,
    packedKb: Number(packed),
    unpackedKb: Number(unpacked),
  }));
}

/** `page` with the sizes of `packed` in its table. */
export function withSizes(page: string, packed: readonly PackageSize[]): string {
  return page.replaceAll(ROW, (row, name: string) => {
    const found = packed.find((one) => one.name === name);
    if (!found) return row;
    const kb = (bytes: number): string => `${Math.round(bytes / 1000)} kB`.padStart(7);
    return row.replace(/[ \d]+ kB \|[ \d]+ kB \|$/, ` ${kb(found.packedBytes)} | ${kb(found.unpackedBytes)} |`);
  });
}
