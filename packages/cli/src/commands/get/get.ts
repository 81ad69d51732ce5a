/** `agarose get`: reads an object into a file or to stdout. */
import { fstatSync, writeSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import { shownBytes } from "@agarose/core/content";
import { parseKey, type Manifest } from "@agarose/core/format";
import { parseRange, type ByteRange } from "@agarose/core/http";
import { readKind, type ReadReport } from "@agarose/core/read";
import { READING, withContext, type CommandContext } from "../../lib/context.ts";
import { writeAll, writeNamed } from "@agarose/storage/files/whole-file";
import { shownManifest } from "@agarose/storage/encryption/secrets-of";
import { EarlyRead, getObject } from "@agarose/storage/objects/get-object";
import { KnownRegions } from "@agarose/storage/regions/known-regions";
import { readOrAdopt } from "@agarose/storage/origin/read-through";
import { formatBytes, logLeftover, printResult } from "../../ui/output.ts";
import { startProgress } from "../../ui/progress.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

type Options = Values<typeof args>;

const STDOUT = "-";

/** Runs `agarose get KEY [FILE]`. A read that cannot be completed rejects, and FILE is as it was. */
export async function get({ key, file, recursive, ...options }: Options): Promise<number | void> {
  if (recursive) return getFolder(key, file, options);
  if (file === STDOUT && options.json) throw new AgaroseError("USAGE", "stdout cannot take both the object and --json");
  if (file === STDOUT && options.dryRun) throw new AgaroseError("USAGE", "--dry-run is for files: name one");
  parseKey(key);
  await withContext(options, READING, async (context) => {
    const { consistency } = options;
    const knownRegions = new KnownRegions(context, false);
    const early = new EarlyRead();
    const onFirst = (first: Manifest): void =>
      early.begin(
        first,
        () => (options.range === undefined ? undefined : rangeOf(options.range, shownBytes(first))),
        context,
      );
    try {
      const manifest = await readOrAdopt(key, context, { consistency, knownRegions, onFirst });
      await show(key, file, manifest, options, context, early);
    } finally {
      early.stop();
    }
    await knownRegions.flush();
  });
}

/** Brings all objects below a prefix into a folder, in which other files stay. */
async function getFolder(
  prefix: string,
  folder: string | undefined,
  { range, ...options }: Omit<Options, "key" | "file" | "recursive">,
): Promise<number> {
  if (range !== undefined) throw new AgaroseError("USAGE", "--range is for one object: leave it or --recursive out");
  if (folder === STDOUT) throw new AgaroseError("USAGE", "stdout takes one object: name a folder for --recursive");
  const { sync } = await import("../sync/sync.ts");
  const target = folder ?? ownName(prefix.replace(/\/$/, ""));
  return sync({ ...options, source: prefix, target, get: true, include: [], exclude: [], header: [], purge: false });
}

async function show(
  key: string,
  file: string | undefined,
  manifest: Manifest,
  options: Pick<Options, "range" | "dryRun">,
  context: CommandContext,
  early: EarlyRead,
): Promise<void> {
  const shown = await shownManifest(manifest, context.config);
  const range = options.range === undefined ? undefined : rangeOf(options.range, shown.bytes);
  const startedMs = performance.now();
  if (file === STDOUT) {
    await read(manifest, range, writeStdout, context, early);
    return;
  }
  const path = await targetPath(key, file);
  const { version } = manifest;
  const { contentType } = shown;
  const bytes = range ? range.end - range.start : shown.bytes;
  const found = { key, file: path, version, bytes, contentType };
  const line = `${path}  ${formatBytes(bytes)}  ${contentType}`;
  if (options.dryRun) return printResult(context, found, [`would write ${line}`]);
  const report = await writeNamed(path, (write) => read(manifest, range, write, context, early), {
    onLeftover: logLeftover,
  });
  const result = { ...found, read: readKind(report), ms: Math.round(performance.now() - startedMs) };
  printResult(context, result, [`${line}  ${result.read}`]);
}

async function read(
  manifest: Manifest,
  range: ByteRange | undefined,
  write: (part: Uint8Array) => Promise<unknown>,
  context: CommandContext,
  early: EarlyRead,
): Promise<ReadReport> {
  const progress = startProgress("get", context);
  progress.addTotal(range ? range.end - range.start : shownBytes(manifest));
  try {
    return await getObject(manifest, range, write, context, { onBytes: (bytes) => progress.add(bytes), early });
  } finally {
    progress.stop();
  }
}

/** Writes to stdout. A file takes all of the part or fails; a pipe is waited for, and one that closes ends the read. */
async function writeStdout(part: Uint8Array): Promise<void> {
  // Node writes to a file with one call, which may take less than it is given.
  if (fstatSync(process.stdout.fd).isFile()) {
    return writeAll(part, "stdout", async (rest) => ({ bytesWritten: writeSync(process.stdout.fd, rest) }));
  }
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
  if (file === undefined) return ownName(key);
  const isFolder = await stat(file).then(
    (status) => status.isDirectory(),
    () => file.endsWith("/"),
  );
  return isFolder ? join(file, ownName(key)) : file;
}

function ownName(key: string): string {
  const name = key.slice(key.lastIndexOf("/") + 1);
  if (!/^\.{0,2}$/.test(name)) return name;
  throw new AgaroseError("USAGE", `${JSON.stringify(key)} gives a file no name: name the file, or - for stdout`, {
    key,
  });
}

function rangeOf(text: string, bytes: number): ByteRange {
  const range = parseRange(text.includes("=") ? text : `bytes=${text}`, bytes);
  if (range) return range;
  throw new AgaroseError("USAGE", `--range ${text} is not FIRST-LAST, FIRST- or -COUNT`, { range: text });
}
