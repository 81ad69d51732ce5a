import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { compressedSizes, README, ROW } from "./readme-sizes.ts";

test("README states the compressed size of every file within 0.3 kB: run npm run docs:reference", async () => {
  const rows = [...(await readFile(README, "utf8")).matchAll(ROW)];
  expect(rows.length).toBe(8);
  const sizes = await compressedSizes();
  for (const [, name = "", , gzipKb, brotliKb] of rows) {
    const { gzip, brotli } = sizes.get(name)!;
    expect(Math.abs(gzip - Number(gzipKb)), `${name} is ${gzip} kB gzipped`).toBeLessThan(0.3);
    expect(Math.abs(brotli - Number(brotliKb)), `${name} is ${brotli} kB in Brotli`).toBeLessThan(0.3);
  }
});
