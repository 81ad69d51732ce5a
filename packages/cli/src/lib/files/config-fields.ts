/** Changes of `agarose.config.json` by commands. Its other fields stay as they are written. */
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, relative } from "node:path";
import { AgaroseError } from "@agarose/core";
import { isModule, parseConfig } from "@agarose/storage/config/config";
import { writeWholeFile } from "@agarose/storage/files/whole-file";
import type { ConfigFields } from "@agarose/storage/maintenance/migrate/transition";

/**
 * The fields of the file at `path`; undefined where there is none. Throws USAGE for a module, and a SyntaxError when it
 * is not JSON.
 */
export async function readFields(path: string): Promise<ConfigFields | undefined> {
  if (isModule(path)) {
    throw new AgaroseError("USAGE", `${path} is a module, which no command changes: give a JSON file by --config`);
  }
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? undefined : (JSON.parse(text.replace(/^\uFEFF/, "")) as ConfigFields);
}

/**
 * Replaces the file, in one step; a link, its owner and its permissions stay. Throws DISK_FULL, or CONFIG_INVALID when
 * `fields` are not sound, and changes nothing then.
 */
export async function writeFields(path: string, fields: ConfigFields): Promise<void> {
  const text = `${JSON.stringify(fields, undefined, 2)}\n`;
  parseConfig(text, path);
  await writeWholeFile(path, (write) => write(Buffer.from(text)));
}

/** `signing` of the configuration at `path` for a key in `file`, which is relative to the working directory. */
export function signingWith(file: string, path: string): { readonly keyFile: string } {
  return { keyFile: isAbsolute(file) ? file : relative(dirname(path), file) };
}
