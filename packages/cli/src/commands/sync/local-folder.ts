/**
 * The files of a folder that a sync stores.
 */
import { realpath, stat } from "node:fs/promises";
import { relative, sep } from "node:path";
import { AgaroseError, parseKey, toAgaroseError } from "@agarose/core";
import { entriesBelow, type InputFile, type SkippedEntry } from "../../lib/files/folder-entries.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";
import { statusOf, type FileStatus } from "./known-equal.ts";
import type { SyncContext, SyncJob } from "./sync-job.ts";

/** A file, its key, and what was known of it before it was read. */
export interface LocalFile extends InputFile {
  readonly status: FileStatus;
}

/** The files of a folder, by key. */
export interface Folder {
  readonly files: Map<string, LocalFile>;
  readonly skipped: readonly SkippedEntry[];
}

const LOOKED_AT_A_TIME = 32;

/** The files that the sync is about. What cannot be read is reported as failed, and the rest is read. */
export async function readFolder({ folder, prefix, filter, follow }: SyncJob, context: SyncContext): Promise<Folder> {
  const root = await realpath(folder);
  const files = new Map<string, LocalFile>();
  const skipped: SkippedEntry[] = [];
  const below = { path: folder, key: "", real: root, above: [root] };
  const entries = entriesBelow(below, follow ? "/" : root, (path) => filter.leavesOutFolder(path));
  const looked = mapOrdered(entries, LOOKED_AT_A_TIME, async (entry) => {
    if ("reason" in entry || !filter.takes(entry.key)) return { entry };
    return { entry, status: await stat(entry.path).catch((error: unknown) => unreadable(entry.path, error)) };
  });
  for await (const { entry, status } of looked) {
    if ("reason" in entry) {
      const path = pathBelow(folder, entry.path);
      if (entry.error === undefined && (path === "" || filter.takes(path))) skipped.push(entry);
      if (entry.error === undefined) continue;
      await context.report({ key: `${prefix}${path}`, outcome: "failed", error: entry.error });
    } else if (status !== undefined) {
      const key = `${prefix}${entry.key}`;
      try {
        if (status instanceof AgaroseError) throw status;
        parseKey(key);
        files.set(key, { path: entry.path, key, status: statusOf(status) });
      } catch (error) {
        await context.report({ key, outcome: "failed", error: toAgaroseError(error) });
      }
    }
  }
  return { files, skipped };
}

/** A path from the folder on, with `/` between its segments. */
export function pathBelow(folder: string, path: string): string {
  return relative(folder, path).split(sep).join("/");
}

/** The error of a file that cannot be looked at. */
export function unreadable(path: string, cause: unknown): AgaroseError {
  const { code } = cause as NodeJS.ErrnoException;
  return new AgaroseError("FILE_UNREADABLE", `${path} cannot be read (${code})`, { path }, cause);
}
