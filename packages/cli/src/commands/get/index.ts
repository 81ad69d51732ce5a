/**
 * `agarose get`: reads an object into a file or to stdout.
 */
import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Command } from "commander";
import {
  AgaroseError,
  parseKey,
  parseRange,
  readKind,
  type ByteRange,
  type Manifest,
  type ReadReport,
} from "@agarose/core";
import { READING, withContext, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { getObject } from "../../lib/objects/get-object.ts";
import { readManifest } from "../../lib/objects/manifests.ts";
import { formatBytes, printResult } from "../../lib/output.ts";
import { startProgress } from "../../lib/progress.ts";

interface GetOptions extends GlobalOptions {
  readonly range?: string;
}

const STDOUT = "-";

export function register(program: Command): void {
  program
    .command("get")
    .description("read an object into a file, or to stdout (-)")
    .argument("<key>", "key of the object")
    .argument("[file]", "file or folder to write to, or - for stdout; default is the key's base name")
    .option("--range <range>", "bytes FIRST-LAST, FIRST- or -COUNT")
    .action((key: string, file: string | undefined, _options: unknown, command: Command) =>
      get(key, file, command.optsWithGlobals<GetOptions>()),
    );
}

async function get(key: string, file: string | undefined, options: GetOptions): Promise<void> {
  if (file === STDOUT && options.json) throw new AgaroseError("USAGE", "stdout cannot take both the object and --json");
  parseKey(key);
  await withContext(options, READING, async (context) => {
    const manifest = await readManifest(key, context.stores, context.signal);
    const range = options.range === undefined ? undefined : rangeOf(options.range, manifest.bytes);
    const startedMs = performance.now();
    if (file === STDOUT) {
      await read(manifest, range, writeStdout, context);
      return;
    }
    const path = await targetPath(key, file);
    const report = await writeFileWhole(path, (write) => read(manifest, range, write, context));
    const bytes = range ? range.end - range.start : manifest.bytes;
    const result = {
      key,
      file: path,
      version: manifest.version,
      bytes,
      contentType: manifest.contentType,
      read: readKind(report),
      ms: Math.round(performance.now() - startedMs),
    };
    printResult(context.json, result, [`${path}  ${formatBytes(bytes)}  ${manifest.contentType}  ${result.read}`]);
  });
}

async function read(
  manifest: Manifest,
  range: ByteRange | undefined,
  write: (part: Uint8Array) => Promise<unknown>,
  context: CommandContext,
): Promise<ReadReport> {
  const progress = startProgress("get", context.json);
  progress.addTotal(range ? range.end - range.start : manifest.bytes);
  try {
    return await getObject(manifest, range, write, { ...context, onBytes: (bytes) => progress.add(bytes) });
  } finally {
    progress.stop();
  }
}

/** Writes a file that is either complete or not there: under another name first, renamed when `fill` succeeds. */
async function writeFileWhole<T>(
  path: string,
  fill: (write: (part: Uint8Array) => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const partial = join(dirname(path), `.${basename(path)}.${randomUUID()}.part`);
  const file = await open(partial, "wx").catch((error: Error) => {
    throw new AgaroseError("USAGE", `${path} cannot be written: ${error.message}`, { path }, error);
  });
  try {
    const result = await fill((part) => file.write(part));
    await file.close();
    await rename(partial, path);
    return result;
  } catch (error) {
    await file.close();
    await rm(partial, { force: true });
    throw error;
  }
}

/** Waits until the reader of stdout has taken the part; one that is gone ends the read. */
function writeStdout(part: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void =>
      reject(new AgaroseError("ABORTED", `stdout was closed before the end: ${error.message}`, {}, error));
    process.stdout.once("error", onError);
    process.stdout.write(part, (error) => {
      if (error) return;
      process.stdout.removeListener("error", onError);
      resolve();
    });
  });
}

async function targetPath(key: string, file: string | undefined): Promise<string> {
  const name = key.slice(key.lastIndexOf("/") + 1);
  if (file === undefined) return name;
  const isFolder = await stat(file).then(
    (status) => status.isDirectory(),
    () => file.endsWith("/"),
  );
  return isFolder ? join(file, name) : file;
}

function rangeOf(text: string, bytes: number): ByteRange {
  const range = parseRange(text.includes("=") ? text : `bytes=${text}`, bytes);
  if (range) return range;
  throw new AgaroseError("USAGE", `--range ${text} is not FIRST-LAST, FIRST- or -COUNT`, { range: text });
}
