/** Writes a project into a folder: all of it or nothing. */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { AgaroseError } from "@agarose/core";

/**
 * Writes the files into `folder`, which is made when it is absent. Throws USAGE when the folder is not empty or cannot
 * be made. A run that is killed leaves a folder beside it, and nothing in it.
 */
export async function writeProject(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  const target = resolve(folder);
  const staged = `${target}.${randomUUID()}.tmp`;
  try {
    await refuseUsed(folder);
    for (const [path, text] of files) {
      const file = join(staged, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    // Fails when somebody has put a file there in the meantime.
    await rmdir(target).catch(refuseUnlessAbsent);
    await rename(staged, target);
  } catch (error) {
    await rm(staged, { recursive: true, force: true }).catch(() => {});
    if (error instanceof AgaroseError) throw error;
    throw new AgaroseError("USAGE", `${folder} cannot be written: ${(error as Error).message}`, { folder }, error);
  }
}

async function refuseUsed(folder: string): Promise<void> {
  const entries = await readdir(folder).catch(refuseUnlessAbsent);
  if (!entries || entries.length === 0) return;
  const message = `${folder} has files, such as ${entries[0]}: name a folder that is empty or new`;
  throw new AgaroseError("USAGE", message, { folder });
}

function refuseUnlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
