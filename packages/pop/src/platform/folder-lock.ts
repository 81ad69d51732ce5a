/** One process at a time in a folder: the operating system gives back the lock of one that was killed. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AgaroseError } from "@agarose/core";

/**
 * Makes the folder if there is none, and locks it. Returns a function that gives it back. Throws STORE_FAILED where
 * another process has it, and where the disk fails.
 */
export function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "lock");
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    // In a journal mode without files, a lock is all that is left.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    const { message } = error as Error;
    const text = `${folder} cannot be locked (${message}): stop the process that uses it, or give each its own folder`;
    throw new AgaroseError("STORE_FAILED", text, { folder }, error);
  }
  return () => database.close();
}
