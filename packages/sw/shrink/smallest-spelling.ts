/** The spelling of a script that compresses best, looked for in a thread of its own and kept. */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Search } from "./search.ts";

/** What was found is kept: a search takes minutes and is always the same. */
const KEPT = fileURLToPath(new URL("../../../.cache/spellings/", import.meta.url));
/** How many spellings a search tries, in about a millisecond each. What more of them would give is in the README. */
const CHANGES = 300_000;
const HERE = new URL("./", import.meta.url);

/**
 * @param script a minified ES module.
 * @param internal its properties that only it reads.
 * @param searches whether to look for it where it is not known; else `script` comes back as it is.
 */
export async function smallestSpelling(
  script: string,
  internal: ReadonlySet<string>,
  searches: boolean,
): Promise<string> {
  const search: Search = { script, internal: [...internal], changes: CHANGES };
  const path = join(KEPT, `${await nameOf(search)}.js`);
  const kept = await readFile(path, "utf8").catch(() => undefined);
  if (kept !== undefined || !searches) return kept ?? script;
  // Not on stdout, which may be read by a program.
  console.error("looking for the smallest spelling of a worker: minutes, this once");
  const found = await searched(search);
  await mkdir(KEPT, { recursive: true });
  // Another process may be looking for the same one, or reading it.
  const own = `${path}.${process.pid}`;
  await writeFile(own, found);
  await rename(own, path);
  return found;
}

/** What is found depends on what is looked for, on how, and on the compressor. */
async function nameOf(search: Search): Promise<string> {
  const sources = (await readdir(HERE)).toSorted().map((name) => readFile(new URL(name, HERE), "utf8"));
  const how = [process.version, process.arch, ...(await Promise.all(sources))];
  return createHash("sha256")
    .update(JSON.stringify([search, how]))
    .digest("hex");
}

function searched(search: Search): Promise<string> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("search.worker.ts", HERE), { workerData: search });
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the search for a spelling ended with ${code}`)));
  });
}
