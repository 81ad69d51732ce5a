/**
 * The files that `put` stores: files, folders and stdin, each with its key.
 */
import { createWriteStream } from "node:fs";
import { readdir, realpath, rm, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AgaroseError, parseKey } from "@agarose/core";
import { makeTempFolder } from "../../lib/files/owned-files.ts";

/** A file to put, and its key. */
export interface InputFile {
  readonly path: string;
  readonly key: string;
}

/** An entry of a folder that is not put, and why. */
export interface SkippedEntry {
  readonly path: string;
  readonly reason: string;
}

/** What `collectInputs` found. */
export interface Inputs {
  readonly files: readonly InputFile[];
  readonly skipped: readonly SkippedEntry[];
  /** Paths of files below folders whose own name, or a folder's, begins with a dot. They are put like others. */
  readonly dotFiles: readonly string[];
}

/** How files get their keys, and which links are followed. */
export interface InputOptions {
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
    if (path === STDIN || (await kindOf(path)) === "file") {
      files.push({ path, key });
      continue;
    }
    const root = await realpath(path);
    for await (const entry of entriesBelow({ path, key, real: root, above: [root] }, options.follow ? "/" : root)) {
      if ("reason" in entry) skipped.push(entry);
      else files.push(entry);
      if (!("reason" in entry) && entry.key.slice(key.length).includes("/.")) dotFiles.push(entry.path);
    }
  }
  for (const { key } of files) parseKey(key);
  refuseDoubledKeys(files);
  return { files, skipped, dotFiles };
}

/** Copies stdin into a temporary file, because a put reads its file twice. `remove` deletes the copy. */
export async function spoolStdin(
  stdin: Readable,
  signal: AbortSignal,
): Promise<{ path: string; remove: () => Promise<void> }> {
  const folder = await makeTempFolder("stdin");
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const path = join(folder, "stdin");
  try {
    await pipeline(stdin, createWriteStream(path), { signal });
    return { path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function keyOf(path: string, { key, prefix = "" }: InputOptions): string {
  if (key !== undefined) return `${prefix}${key}`;
  if (path === STDIN) throw new AgaroseError("USAGE", "stdin has no name: give it one with --key");
  // A base name of `..` or of the root would be no key; `resolve` gives the name that the folder really has.
  return `${prefix}${basename(resolve(path))}`;
}

/** Whether a named path is a file or a folder. Anything else could block for ever when it is opened. */
async function kindOf(path: string): Promise<"file" | "folder"> {
  const status = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new AgaroseError("FILE_UNREADABLE", `${path} cannot be read (${error.code})`, { path }, error);
  });
  if (status.isFile()) return "file";
  if (status.isDirectory()) return "folder";
  throw new AgaroseError("FILE_UNREADABLE", `${path} is not a file: put a file, a folder or - for stdin`, { path });
}

interface Folder extends InputFile {
  /** Its path without links. */
  readonly real: string;
  /** The real paths of the folders above it and of itself. */
  readonly above: readonly string[];
}

/** The files below a folder in order of their names, and what is skipped. Links lead no further than `limit`. */
async function* entriesBelow(folder: Folder, limit: string): AsyncGenerator<InputFile | SkippedEntry> {
  const entries = await readdir(folder.path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new AgaroseError("FILE_UNREADABLE", `${folder.path} cannot be read (${error.code})`, {}, error);
  });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder.path, entry.name);
    const key = `${folder.key}/${entry.name}`;
    if (entry.isFile()) yield { path, key };
    else if (entry.isDirectory()) {
      const real = join(folder.real, entry.name);
      yield* entriesBelow({ path, key, real, above: [...folder.above, real] }, limit);
    } else if (entry.isSymbolicLink()) yield* entriesBehindLink({ path, key }, folder.above, limit);
    else yield { path, reason: "it is neither a file nor a folder" };
  }
}

async function* entriesBehindLink(
  { path, key }: InputFile,
  above: readonly string[],
  limit: string,
): AsyncGenerator<InputFile | SkippedEntry> {
  const real = await realpath(path).catch(() => undefined);
  const status = real === undefined ? undefined : await stat(real).catch(() => undefined);
  if (real === undefined || status === undefined) yield { path, reason: "it is a broken link" };
  else if (!`${real}/`.startsWith(limit === "/" ? "/" : `${limit}/`)) {
    yield { path, reason: `it links to ${real}, outside of the folder: --follow takes it` };
  } else if (status.isFile()) yield { path, key };
  else if (!status.isDirectory()) yield { path, reason: "it links to neither a file nor a folder" };
  else if (above.includes(real)) yield { path, reason: "it links to a folder above it" };
  else yield* entriesBelow({ path, key, real, above: [...above, real] }, limit);
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
