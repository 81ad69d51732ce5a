import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { buildServiceWorker } from "@agarose/sw/build";
import { expect, test } from "vitest";

test("README states the compressed size of every file that a browser loads, within 0.3 kB", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const stated = [...readme.matchAll(/^\| `([\w.-]+\.js)` +\|[^|]+\| +([\d.]+) kB \| +([\d.]+) kB \|$/gm)];
  expect(stated.length).toBe(5);
  const folder = await mkdtemp(join(tmpdir(), "agarose-sizes-"));
  try {
    await buildServiceWorker(folder);
    for (const [, name, gzipKb, brotliKb] of stated) {
      const bytes = await readFile(join(folder, name!));
      const gzipped = await promisify(gzip)(bytes, { level: 9 });
      const brotli = await promisify(brotliCompress)(bytes);
      expect(Math.abs(gzipped.length / 1000 - Number(gzipKb)), `${name} gzip ${gzipped.length}`).toBeLessThan(0.3);
      expect(Math.abs(brotli.length / 1000 - Number(brotliKb)), `${name} brotli ${brotli.length}`).toBeLessThan(0.3);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
