/**
 * Temporary files and folders whose names say which process made them, so that a later run removes what a killed one
 * left behind.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

/** Hears of a path that was removed because the process that made it has ended. */
export type OnLeftover = (path: string) => void;

/** Machines may share a folder, and process ids are those of one machine. */
const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
const NAME_BYTES_MAX = 200;
const OWNER = /([\da-f]{8})-(\d+)/;
const PARTIAL = /^\..+\.([\da-f]{8})-(\d+)-[\da-f]{8}\.part$/;

/** Makes a temporary folder for `kind`, and removes those that killed processes left. Readable by its owner only. */
export async function makeTempFolder(kind: string, onLeftover?: OnLeftover): Promise<string> {
  const prefix = `agarose-${kind}-`;
  await removeLeftovers(tmpdir(), prefix, "", onLeftover);
  return mkdtemp(join(tmpdir(), `${prefix}${HOST}-${process.pid}-`));
}

/** A name beside `path` for writing it in parts. Removes those that killed processes left for the same path. */
export async function partialPathOf(path: string, onLeftover?: OnLeftover): Promise<string> {
  const name = basename(path);
  // A file system takes 255 bytes, of which the rest of the name needs some.
  const short = Buffer.byteLength(name) <= NAME_BYTES_MAX ? name : createHash("sha256").update(name).digest("hex");
  const prefix = `.${short}.`;
  await removeLeftovers(dirname(path), prefix, ".part", onLeftover);
  return join(dirname(path), `${prefix}${HOST}-${process.pid}-${randomUUID().slice(0, 8)}.part`);
}

/** Whether a command may be writing the file of this name now. Of processes of other machines nothing is known. */
export function isBeingWritten(name: string): boolean {
  const [, host, pid] = PARTIAL.exec(name) ?? [];
  return host !== undefined && (host !== HOST || isAlive(Number(pid)));
}

/** Removes what carries the name of a process of this machine that has ended. */
async function removeLeftovers(
  folder: string,
  prefix: string,
  suffix: string,
  onLeftover: OnLeftover = () => {},
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !name.endsWith(suffix)) continue;
    const [tag, host, pid] = OWNER.exec(name.slice(prefix.length)) ?? [];
    if (tag === undefined || !name.startsWith(`${prefix}${tag}-`) || host !== HOST || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    await rm(path, { recursive: true, force: true }).then(
      () => onLeftover(path),
      // Another user's, most likely.
      () => {},
    );
  }
}

/** Whether a process runs, of this user or of another. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
