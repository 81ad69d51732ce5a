/**
 * The files of a folder, as they are stored.
 */
import { isUtf8 } from "node:buffer";
import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import { keyName } from "@agarose/core/format";
import { withDescriptors } from "./descriptors.ts";
import { unreadable } from "./file-errors.ts";
import { isBeingWritten } from "./owned-files.ts";

/** A file, and its key. */
export interface InputFile {
  readonly path: string;
  readonly key: string;
}

/** An entry of a folder that is omitted, and why. */
export interface SkippedEntry {
  readonly path: string;
  readonly reason: string;
  /** Of a folder that cannot be read: nothing is known of what is in it. */
  readonly error?: AgaroseError;
}

/** A folder below which to look. */
export interface Folder extends InputFile {
  /** Its path without links. */
  readonly real: string;
  /** The real paths of the folders above it and of itself. */
  readonly above: readonly string[];
}

/**
 * The files below a folder in the order in which buckets list their keys, and what is skipped. Links lead no further
 * than `limit`. Entries of which `isLeftOut` says so, by the key that they would have, are passed over.
 */
export async function* entriesBelow(
  folder: Folder,
  limit: string,
  isLeftOut: (key: string) => boolean = () => false,
): AsyncGenerator<InputFile | SkippedEntry> {
  let entries: Dirent[];
  try {
    entries = await withDescriptors(() => readdir(folder.path, { withFileTypes: true }));
    if (entries.some(({ name }) => name.includes(REPLACED))) {
      const names = await withDescriptors(() => readdir(folder.path, { encoding: "buffer" }));
      for (const name of names.filter((bytes) => !isUtf8(bytes))) {
        const index = entries.findIndex((entry) => entry.name === name.toString());
        if (index >= 0) entries.splice(index, 1);
        yield {
          path: join(folder.path, inBytes(name)),
          reason: "its name is not UTF-8, so it cannot be a key: rename it",
        };
      }
    }
  } catch (cause) {
    const reason = unreadable(folder.path, cause);
    yield { path: folder.path, reason, error: new AgaroseError("FILE_UNREADABLE", reason, {}, cause) };
    return;
  }
  for (const entry of await inOrderOfKeys(entries, folder.path)) {
    const path = join(folder.path, entry.name);
    const key = folder.key === "" ? entry.name : `${folder.key}/${entry.name}`;
    if (isLeftOut(key)) continue;
    if (await isBeingWritten(path)) yield { path, reason: "another command is writing it" };
    else if (entry.isFile()) yield { path, key };
    else if (entry.isDirectory()) {
      const real = join(folder.real, entry.name);
      yield* entriesBelow({ path, key, real, above: [...folder.above, real] }, limit, isLeftOut);
    } else if (entry.isSymbolicLink()) yield* entriesBehindLink({ path, key }, folder.above, limit, isLeftOut);
    else yield { path, reason: "it is neither a file nor a folder" };
  }
}

/** Node puts it in place of bytes that are not UTF-8, and can then open no such file. A name may also contain it. */
const REPLACED = "\ufffd";

/** A name as text, with what is not ASCII as bytes, such as `caf\\xe9`. */
function inBytes(name: Buffer): string {
  const shown = (byte: number): string =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  return [...name].map(shown).join("");
}

/** In keys, `/` follows the name of a folder. */
async function inOrderOfKeys(entries: readonly Dirent[], folder: string): Promise<Dirent[]> {
  const placed: { readonly entry: Dirent; readonly place: string }[] = [];
  for (const entry of entries) {
    const leadsToFolder = entry.isSymbolicLink() && (await isFolder(join(folder, entry.name)));
    // The runtime makes names of bytes that are not UTF-8, and Windows has names that are not Unicode.
    const name = entry.name.toWellFormed();
    placed.push({ entry, place: keyName(entry.isDirectory() || leadsToFolder ? `${name}/` : name) });
  }
  return placed.toSorted((a, b) => (a.place < b.place ? -1 : 1)).map(({ entry }) => entry);
}

async function isFolder(path: string): Promise<boolean> {
  const status = await stat(path).catch(() => undefined);
  return status?.isDirectory() === true;
}

async function* entriesBehindLink(
  { path, key }: InputFile,
  above: readonly string[],
  limit: string,
  isLeftOut: (key: string) => boolean,
): AsyncGenerator<InputFile | SkippedEntry> {
  const real = await realpath(path).catch(() => undefined);
  const status = real === undefined ? undefined : await stat(real).catch(() => undefined);
  if (real === undefined || status === undefined) yield { path, reason: "it is a broken link" };
  else if (!`${real}/`.startsWith(limit === "/" ? "/" : `${limit}/`)) {
    yield { path, reason: `it links to ${real}, outside of the folder: \`follow\` takes it` };
  } else if (status.isFile()) yield { path, key };
  else if (!status.isDirectory()) yield { path, reason: "it links to neither a file nor a folder" };
  else if (above.includes(real)) yield { path, reason: "it links to a folder above it" };
  else yield* entriesBelow({ path, key, real, above: [...above, real] }, limit, isLeftOut);
}
