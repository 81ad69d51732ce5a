/**
 * Minifies once more, what every visitor loads: Terser sees what Rolldown's own minifier has left, and makes a worker
 * 1% smaller. Alone it makes it 1% larger. More passes give 0.2%, and are not worth their time.
 *
 * Half a second a file is long where each process of a test run builds them. So the last output of each file is kept in
 * `node_modules/.cache`, with a hash of all that it depends on.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { minify as terser, type MinifyOptions } from "terser";
import terserPackage from "terser/package.json" with { type: "json" };

/** A script with its source map as JSON. */
export interface Bundled {
  readonly code: string;
  readonly map: string;
}

const OPTIONS: MinifyOptions = {
  ecma: 2020,
  module: true,
  compress: { passes: 1 },
  format: { comments: false },
};

const KEPT = new URL("../../node_modules/.cache/agarose-minified/", import.meta.url);

/** What is kept of a file. */
interface Kept extends Bundled {
  readonly hash: string;
}

/** Returns the script of this name minified, as it was kept or by Terser; by Terser alone with `fresh`. */
export async function minifyAgain(name: string, bundled: Bundled, { fresh = false } = {}): Promise<Bundled> {
  if (fresh) return minified(bundled);
  const parts = [terserPackage.version, OPTIONS, bundled];
  const hash = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  const path = fileURLToPath(new URL(`${name}.json`, KEPT));
  // A file that is absent or damaged is as none.
  const kept = await readFile(path, "utf8")
    .then((text) => JSON.parse(text) as Kept)
    .catch(() => undefined);
  if (kept?.hash === hash) return kept;
  const result = await minified(bundled);
  await keep(path, JSON.stringify({ ...result, hash } satisfies Kept));
  return result;
}

async function minified({ code, map }: Bundled): Promise<Bundled> {
  const result = await terser(code, { ...OPTIONS, sourceMap: { content: map, includeSources: true } });
  return { code: `${result.code}\n`, map: String(result.map) };
}

/** Writes a file that another process reads whole or not at all. A folder that cannot be written keeps nothing. */
async function keep(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await mkdir(KEPT, { recursive: true });
    await writeFile(unfinished, text);
    await rename(unfinished, path);
  } catch {
    // The next build takes half a second longer.
  }
}
