/**
 * Rewrites the sizes in README's table of files: `node scripts/docs/readme-sizes.ts`, part of `npm run docs:reference`.
 */
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { builtFiles } from "@agarose/sw/build";

export const README = new URL("../../README.md", import.meta.url);
/** A row of the table: file, purpose, and both sizes in kB. */
export const ROW = /^\| `([\w.-]+\.js)` +\|([^|]+)\| +([\d.]+) kB \| +([\d.]+) kB \|$/gm;

export interface CompressedKb {
  readonly gzip: number;
  readonly brotli: number;
}

/** The compressed size of every file that a browser loads, in kB of 1,000 bytes, at the highest levels. */
export async function compressedSizes(): Promise<Map<string, CompressedKb>> {
  const sizes = new Map<string, CompressedKb>();
  for (const [name, bytes] of await builtFiles()) {
    const gzipped = await promisify(gzip)(bytes, { level: 9 });
    const brotli = await promisify(brotliCompress)(bytes);
    sizes.set(name, { gzip: gzipped.length / 1000, brotli: brotli.length / 1000 });
  }
  return sizes;
}

/** As wide as the widest of the table, so that Prettier finds nothing to align. */
const cell = (kb: number): string => `${kb.toFixed(1)} kB`.padStart("00.0 kB".length);

if (import.meta.main) {
  const sizes = await compressedSizes();
  const readme = await readFile(README, "utf8");
  const text = readme.replaceAll(ROW, (row, name: string) => {
    const size = sizes.get(name);
    return size ? row.replace(/ +[\d.]+ kB \| +[\d.]+ kB \|$/, ` ${cell(size.gzip)} | ${cell(size.brotli)} |`) : row;
  });
  if (text !== readme) await writeFile(README, text);
}
