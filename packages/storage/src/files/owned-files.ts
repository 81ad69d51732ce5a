/**
 * Temporary files and folders whose names say which process made them, so that a later run removes what a killed one
 * left behind.
 *
 * The number of a process comes again: in a container, it is 1 after each restart. So a name also has the beginning of
 * its process, and the container that the number is of. Of a process in another container or on another machine nothing
 * is known but when it last wrote, so a folder is kept young for as long as its process lives.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, readdir, rm, stat, utimes } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { tempError } from "./file-errors.ts";

/** Hears of a path that was removed because the process that made it has ended. */
export type OnLeftover = (path: string) => void;

const TAG = String.raw`([\da-f]{8})-(\d+)-([\da-f]{8})-`;
const OWNER = new RegExp(`^${TAG}`);
const PARTIAL = new RegExp(String.raw`^\..+\.${TAG}[\da-f]{8}\.part$`);
const NAME_BYTES_MAX = 200;
/** Where the system does not say when a process began. */
const NO_START = "0".repeat(8);
const YOUNG_EVERY_MS = 600_000;
/** A file without a write for this long, in another container, is from a process that has ended. */
const YOUNG_MS_MAX = 7_200_000;

/** Machines may share a folder, and so may containers, each of which numbers its own processes. */
const HOST = digestOf(`${hostname()} ${textOr("", () => readlinkSync("/proc/self/ns/pid"))}`);
const SELF = `${HOST}-${process.pid}-${startOf(process.pid)}-`;

interface TempFolderOptions {
  /** Default: the folder of the system. */
  readonly below?: string | undefined;
  /** Whether no other process makes such a folder there, so that each that is there was left behind. Default: false. */
  readonly isSole?: boolean;
  readonly onLeftover?: OnLeftover | undefined;
}

/**
 * Makes a temporary folder for `kind`, and removes those that killed processes left. Readable by its owner only.
 *
 * @throws DISK_FULL where none can be made.
 */
export async function makeTempFolder(
  kind: string,
  { below = tmpdir(), isSole = false, onLeftover }: TempFolderOptions = {},
): Promise<string> {
  const prefix = `agarose-${kind}-`;
  await removeLeftovers(below, { prefix, suffix: "", isSole }, onLeftover);
  const folder = await mkdtemp(join(below, `${prefix}${SELF}`)).catch((error: unknown) => {
    throw tempError(error, below);
  });
  const timer = setInterval(() => void keepYoung(folder).catch(() => clearInterval(timer)), YOUNG_EVERY_MS);
  timer.unref();
  return folder;
}

async function keepYoung(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now);
}

/** A name beside `path` for writing it in parts. Removes those that killed processes left for the same path. */
export async function partialPathOf(path: string, onLeftover?: OnLeftover): Promise<string> {
  const name = basename(path);
  // A file system takes 255 bytes, of which the rest of the name needs some.
  const short = Buffer.byteLength(name) <= NAME_BYTES_MAX ? name : createHash("sha256").update(name).digest("hex");
  const prefix = `.${short}.`;
  await removeLeftovers(dirname(path), { prefix, suffix: ".part" }, onLeftover);
  return join(dirname(path), `${prefix}${SELF}${randomUUID().slice(0, 8)}.part`);
}

/** Whether a command may be writing this file now. */
export async function isBeingWritten(path: string): Promise<boolean> {
  const owner = PARTIAL.exec(basename(path));
  return owner !== null && (await mayBeUsed(owner, path));
}

/** Removes what carries the name of a process that has ended. */
async function removeLeftovers(
  folder: string,
  { prefix, suffix, isSole = false }: { readonly prefix: string; readonly suffix: string; readonly isSole?: boolean },
  onLeftover: OnLeftover = () => {},
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith(suffix)) continue;
    const path = join(folder, name);
    const owner = OWNER.exec(name.slice(prefix.length));
    if (!isSole && (owner === null || (await mayBeUsed(owner, path)))) continue;
    await rm(path, { recursive: true, force: true }).then(
      () => onLeftover(path),
      // Another user's, most likely.
      () => {},
    );
  }
}

/** Whether the process that a name is of may be alive. */
async function mayBeUsed([, host, pid, start]: RegExpExecArray, path: string): Promise<boolean> {
  if (host === HOST) return isAlive(Number(pid), start!);
  const touchedMs = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.NEGATIVE_INFINITY,
  );
  return Date.now() - touchedMs < YOUNG_MS_MAX;
}

/** Whether a process runs, of this user or of another, and is the one that began then. */
function isAlive(pid: number, start: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const begun = startOf(pid);
  return begun === start || begun === NO_START || start === NO_START;
}

/** When a process began, counted from the boot of its machine. */
function startOf(pid: number): string {
  return textOr(NO_START, () => {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1");
    const status = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Its second field is a name, which may have spaces.
    return digestOf(`${boot} ${status.slice(status.lastIndexOf(")")).split(" ")[20]}`);
  });
}

function textOr(other: string, read: () => string): string {
  try {
    return read();
  } catch {
    return other;
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
