/** Errors of files and folders, with what to do about them. */
import { tmpdir } from "node:os";
import { AgaroseError } from "@agarose/core";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EISDIR: "is a folder",
  EACCES: "cannot be read: permission denied",
};

/** Returns the path with the reason of a failed `readFile` or `stat`, such as "a.json does not exist". */
export function unreadable(path: string, error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return `${path} ${REASONS[code] ?? `cannot be read (${code || message})`}`;
}

/** Errors of the system when a disk, a quota or a limit of the process has no room. */
const NO_ROOM: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Whether an error says that there is no room. */
export function isNoRoom(cause: unknown): boolean {
  return NO_ROOM.has((cause as NodeJS.ErrnoException).code);
}

/** Why a file or a folder cannot be written: DISK_FULL where there is no room, else USAGE. Errors of ours stay. */
export function writeError(path: string, cause: unknown): AgaroseError {
  if (cause instanceof AgaroseError) return cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (!isNoRoom(cause)) {
    // The path of a temporary file in the system's message would be news to the reader.
    const reason = code === "ENOENT" ? "its folder does not exist" : message;
    return new AgaroseError("USAGE", `${path} cannot be written: ${reason}`, { path, error: code }, cause);
  }
  return new AgaroseError(
    "DISK_FULL",
    `${path} cannot be written in full (${code}): free space, raise the quota or the file size limit, or choose ` +
      "another disk",
    { path, error: code },
    cause,
  );
}

/** Why a folder takes no temporary file: it is full, read-only, forbidden or not there. Other errors stay. */
export function tempError(cause: unknown, folder = tmpdir()): unknown {
  const { code, syscall } = cause as NodeJS.ErrnoException;
  if (cause instanceof AgaroseError || code === undefined || syscall === undefined) return cause;
  const next = folder === tmpdir() ? "set TMPDIR to" : "choose";
  const message = `${folder} cannot hold temporary files (${code}): ${next} a folder with room for them`;
  return new AgaroseError("DISK_FULL", message, { folder, error: code }, cause);
}
