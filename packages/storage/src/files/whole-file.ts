/** Writes files that are either complete or absent. */
import type { Stats } from "node:fs";
import { lstat, open, realpath, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { AgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { isNoRoom, writeError } from "./file-errors.ts";
import { partialPathOf, type OnLeftover } from "./owned-files.ts";

/** Writes all of `part`. Rejects with DISK_FULL when there is no room for it. */
export type WritePart = (part: Uint8Array) => Promise<void>;

/** The disk writes so many bytes while the next ones come, and has little left to do at the end. */
const FLUSH_BYTES = 64 * 1024 * 1024;

/** How a file is written. */
export interface WholeFileOptions {
  /** Whether to write to what a link leads to, in place of replacing the link. Default: true. */
  readonly follow?: boolean;
  /** Permissions of a file that is not there yet. Default: what the umask leaves of 0666. */
  readonly mode?: number;
  /** Hears of a part that an interrupted run left for this path, and that was removed. */
  readonly onLeftover?: OnLeftover;
}

/**
 * Fills a file under another name, makes its bytes durable, and gives it the name `path` when `fill` has succeeded. It
 * keeps the permissions and, where it may, the owner of the file that was there.
 *
 * @throws USAGE when the file cannot be created, DISK_FULL when there is no room; the file at `path` is then as before.
 */
export async function writeWholeFile<T>(
  named: string,
  fill: (write: WritePart) => Promise<T>,
  { follow = true, mode, onLeftover }: WholeFileOptions = {},
): Promise<T> {
  const path = follow ? await realpath(named).catch(() => named) : named;
  const before = await lstat(path).catch(() => undefined);
  const kept = before?.isFile() ? before : undefined;
  const partial = await partialPathOf(path, onLeftover);
  // Until it has its permissions, nobody else may read it.
  const file = await open(partial, "wx", kept ? 0o600 : mode).catch((error: unknown) => {
    throw writeError(named, error);
  });
  try {
    let bytes = 0;
    let unflushed = 0;
    let flushing: Promise<unknown> = Promise.resolve();
    const result = await fill(async (part) => {
      await writeAll(part, named, (rest) => file.write(rest));
      bytes += part.length;
      unflushed += part.length;
      if (unflushed < FLUSH_BYTES) return;
      unflushed = 0;
      flushing = flushing.then(() => file.datasync());
      // It is reported at the end. Until then it must not count as unhandled.
      flushing.catch(() => {});
    });
    if (kept) await takeAttributes(file, kept);
    await checkAndSync(file, named, bytes, flushing);
    await file.close();
    await rename(partial, path).catch((error: unknown) => {
      throw writeError(named, error);
    });
    await syncFolder(dirname(path));
    return result;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(partial, { force: true });
    throw error;
  }
}

/** Gives a file the permissions of another one, and its owner where this process may. */
async function takeAttributes(file: FileHandle, { mode, uid, gid }: Stats): Promise<void> {
  const own = await file.stat();
  // A group or an owner that cannot be kept must not give others more than they had.
  const isKept = own.uid === uid && own.gid === gid ? true : await succeeds(file.chown(uid, gid));
  await file.chmod(isKept ? mode & 0o7777 : mode & 0o700);
}

/**
 * Writes a new file that only its owner may read, such as a key: all of it, or none. Throws USAGE when the file is
 * there or cannot be written, and DISK_FULL.
 */
export async function writeNewSecret(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600).catch((error: unknown) => {
    throw writeError(path, error);
  });
  try {
    const bytes = Buffer.from(text);
    await writeAll(bytes, path, (rest) => file.write(rest));
    await checkAndSync(file, path, bytes.length, Promise.resolve());
    await file.close();
    await syncFolder(dirname(path));
  } catch (error) {
    await file.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
}

/**
 * Fills what a user has named. A file is replaced as a whole. A device or a pipe, such as `/dev/null`, is written to:
 * another file in its place would end it for every program of the machine.
 *
 * @throws as `writeWholeFile` does. What a device or a pipe has taken stays there.
 */
export async function writeNamed<T>(
  path: string,
  fill: (write: WritePart) => Promise<T>,
  options: Pick<WholeFileOptions, "onLeftover"> = {},
): Promise<T> {
  const found = await stat(path).catch(() => undefined);
  if (!found || found.isFile() || found.isDirectory()) return writeWholeFile(path, fill, options);
  const file = await open(path, "w").catch((error: unknown) => {
    throw writeError(path, error);
  });
  try {
    return await fill((part) => writeAll(part, path, (rest) => file.write(rest)));
  } finally {
    await file.close();
  }
}

/** Calls `write`, which may take less than it is given, until all of `part` is written. */
export async function writeAll(
  part: Uint8Array,
  path: string,
  write: (rest: Uint8Array) => Promise<{ bytesWritten: number }>,
): Promise<void> {
  for (let at = 0; at < part.length;) {
    const { bytesWritten } = await write(part.subarray(at)).catch((error: unknown) => {
      // A pipe that nobody reads any more is for the caller to judge.
      throw isNoRoom(error) ? writeError(path, error) : error;
    });
    at += bytesWritten;
  }
}

async function checkAndSync(file: FileHandle, path: string, bytes: number, flushing: Promise<unknown>): Promise<void> {
  // Some file systems report a full disk only here. The system reports it once, maybe to a flush before.
  await flushing
    .then(() => file.sync())
    .catch((error: unknown) => {
      throw writeError(path, error);
    });
  const { size } = await file.stat();
  if (size === bytes) return;
  throw new AgaroseError("DISK_FULL", `${path} has ${size} of ${bytes} bytes after writing: check the disk`, {
    path,
    expected: bytes,
    actual: size,
  });
}

/** Makes the names in a folder durable, where the system can. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path).catch(() => undefined);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
