/**
 * The drop-in files as an app serves them. The published package brings them in `files/`; in the repository, which
 * keeps nothing that is built, they are built when asked for.
 */
import { readdir, readFile } from "node:fs/promises";

export { REMOVING_FILE, WORKER_FILES, type WorkerFile } from "./src/common/worker-files.ts";

const BUILT = new URL("files/", import.meta.url);

/** A process builds its sources once. */
let fromSource: Promise<Map<string, Uint8Array>> | undefined;

/** The files of `build.ts` by name, and beside it, where it was built before, `agarose.d.ts`. */
export async function dropInFiles(): Promise<Map<string, Uint8Array>> {
  const names = await readdir(BUILT).catch(() => undefined);
  // Loaded late: the bundlers behind it are no dependencies of the published package.
  if (!names) return (fromSource ??= import("./build.ts").then(({ builtFiles }) => builtFiles()));
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(new URL(name, BUILT))] as const)));
}
