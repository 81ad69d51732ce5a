/**
 * What `put` was asked to put: files, folders and stdin, each with its key.
 */
import { createWriteStream } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AgaroseError, parseKey } from "@agarose/core";

export interface InputFile {
  readonly path: string;
  readonly key: string;
}

export interface NamingOptions {
  readonly key?: string;
  readonly prefix?: string;
}

export const STDIN = "-";

/**
 * The files behind `paths`. A file's key is its base name, a file in a folder has the folder's base name and its path in it;
 * `prefix` goes before either, `key` names a single file or the folder.
 *
 * @throws USAGE, KEY_INVALID, KEY_TOO_LONG or FILE_UNREADABLE, before anything is uploaded.
 */
export async function collectInputs(paths: readonly string[], naming: NamingOptions): Promise<InputFile[]> {
  if (naming.key !== undefined && paths.length > 1) {
    throw new AgaroseError("USAGE", `--key names one object, ${paths.length} paths were given: use --prefix`);
  }
  const files: InputFile[] = [];
  for (const path of paths) files.push(...(await filesBelow(path, keyOf(path, naming))));
  for (const { key } of files) parseKey(key);
  refuseDoubledKeys(files);
  return files;
}

/** Takes stdin into a temporary file, because it is read twice. Removed by `remove`. */
export async function spoolStdin(
  stdin: Readable,
  signal: AbortSignal,
): Promise<{ path: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-stdin-"));
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

function keyOf(path: string, { key, prefix = "" }: NamingOptions): string {
  if (key !== undefined) return `${prefix}${key}`;
  if (path === STDIN) throw new AgaroseError("USAGE", "stdin has no name: give it one with --key");
  // A base name of `..` or of the root would be no key; `resolve` gives the name that the folder really has.
  return `${prefix}${basename(resolve(path))}`;
}

async function filesBelow(path: string, key: string): Promise<InputFile[]> {
  if (path === STDIN) return [{ path, key }];
  const status = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new AgaroseError("FILE_UNREADABLE", `${path} cannot be read (${error.code})`, { path }, error);
  });
  if (!status.isDirectory()) return [{ path, key }];
  const files: InputFile[] = [];
  for (const entry of (await readdir(path)).toSorted()) {
    files.push(...(await filesBelow(join(path, entry), `${key}/${entry}`)));
  }
  return files;
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
