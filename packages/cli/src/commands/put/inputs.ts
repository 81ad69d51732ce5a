/** The files that `put` stores: files, folders and stdin, each with its key. */
import { createWriteStream } from "node:fs";
import { realpath, rm, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { entriesBelow, type InputFile, type SkippedEntry } from "@agarose/storage/files/folder-entries";
import { tempError, unreadable } from "@agarose/storage/files/file-errors";
import { makeTempFolder } from "@agarose/storage/files/owned-files";
import { inFlags } from "../../command.ts";
import { logLeftover } from "../../ui/output.ts";
import { args } from "./index.ts";

/** The result of `collectInputs`. */
export interface Inputs {
  readonly files: readonly InputFile[];
  readonly skipped: readonly SkippedEntry[];
  /** Paths of files below folders whose own name, or a folder's, begins with a dot. They are put like others. */
  readonly dotFiles: readonly string[];
}

interface InputOptions {
  readonly key?: string;
  readonly prefix?: string;
  /** Whether to follow links that lead out of the folder. */
  readonly follow?: boolean;
}

/** The path that names stdin. */
export const STDIN = "-";

/**
 * The files behind `paths`. The key of a file is its base name; in a folder, the folder's base name and the path in it.
 * `prefix` goes before either, `key` names a single file or the folder.
 *
 * Entries of folders that are neither files nor folders are skipped, and so are links that are broken, lead out of the
 * folder (unless `follow`), or back to a folder above them.
 *
 * @throws USAGE, KEY_INVALID, KEY_TOO_LONG or FILE_UNREADABLE, before anything is uploaded.
 */
export async function collectInputs(paths: readonly string[], options: InputOptions): Promise<Inputs> {
  if (options.key !== undefined && paths.length > 1) {
    throw new AgaroseError("USAGE", `--key names one object, ${paths.length} paths were given: use --prefix`);
  }
  const files: InputFile[] = [];
  const skipped: SkippedEntry[] = [];
  const dotFiles: string[] = [];
  for (const path of paths) {
    const key = keyOf(path, options);
    if (path === STDIN || (await kindOf(path, paths)) === "file") {
      refuseFolder(key);
      files.push({ path, key });
      continue;
    }
    const root = await realpath(path);
    for await (const entry of entriesBelow({ path, key, real: root, above: [root] }, options.follow ? "/" : root)) {
      if ("reason" in entry && entry.error) throw entry.error;
      if ("reason" in entry) skipped.push({ ...entry, reason: inFlags(entry.reason, args) });
      else files.push(entry);
      if (!("reason" in entry) && entry.key.slice(key.length).includes("/.")) dotFiles.push(entry.path);
    }
  }
  for (const { key } of files) parseKey(key);
  refuseDoubledKeys(files);
  return { files, skipped, dotFiles };
}

/** Copies stdin into a temporary file, because a put may read its file again. `remove` deletes the copy. */
export async function spoolStdin(
  stdin: Readable,
  signal: AbortSignal,
): Promise<{ path: string; remove: () => Promise<void> }> {
  const folder = await makeTempFolder("stdin", { onLeftover: logLeftover });
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const path = join(folder, "stdin");
  try {
    await pipeline(stdin, createWriteStream(path), { signal });
    return { path, remove };
  } catch (error) {
    await remove();
    throw tempError(error);
  }
}

function keyOf(path: string, { key, prefix = "" }: InputOptions): string {
  if (key !== undefined) return `${prefix}${key}`;
  if (path === STDIN) throw new AgaroseError("USAGE", "stdin has no name: give it one with --key");
  // A base name of `..` or of the root would be no key; `resolve` gives the name that the folder really has.
  return `${prefix}${basename(resolve(path))}`;
}

/** Whether a named path is a file or a folder. Anything else could block for ever when it is opened. */
async function kindOf(path: string, paths: readonly string[]): Promise<"file" | "folder"> {
  const status = await stat(path).catch((error: NodeJS.ErrnoException) => {
    const message = `${unreadable(path, error)}${hintOfKey(path, paths)}`;
    throw new AgaroseError("FILE_UNREADABLE", message, { path }, error);
  });
  if (status.isFile()) return "file";
  if (status.isDirectory()) return "folder";
  throw new AgaroseError("FILE_UNREADABLE", `${path} is not a file: put a file, a folder or - for stdin`, { path });
}

/** Other tools take the last path for the place to copy to: `aws s3 cp FILE KEY`, `mc cp FILE… FOLDER/`. */
function hintOfKey(path: string, paths: readonly string[]): string {
  if (paths.length < 2 || path !== paths.at(-1)) return "";
  const sources = paths.slice(0, -1).join(" ");
  const option = paths.length > 2 || path.endsWith("/") ? "--prefix" : "--key";
  return `: every path is a file to store; to store it under this name, use \`agarose put ${sources} ${option} ${path}\``;
}

/** A key may end with a slash, but who gives a file such a one means the folder, as for `cp`. */
function refuseFolder(key: string): void {
  if (!key.endsWith("/")) return;
  const message = `${JSON.stringify(key)} is the name of a folder: give the file's own name too, or --prefix ${key}`;
  throw new AgaroseError("USAGE", message, { key });
}

function refuseDoubledKeys(files: readonly InputFile[]): void {
  const pathOf = new Map<string, string>();
  for (const { key, path } of files) {
    const other = pathOf.get(key);
    if (other !== undefined) {
      throw new AgaroseError(
        "USAGE",
        `${other} and ${path} would both become ${JSON.stringify(key)}: use --key or --prefix`,
      );
    }
    pathOf.set(key, path);
  }
}
