/**
 * Which files were equal to which objects, in a file, so that a later run asks neither the disk nor the buckets again.
 *
 * A file counts as unchanged while its length, its times and its inode are those that were noted, as Git's index does
 * it. An object counts as unchanged while the regions list its manifest with the ETag that was noted.
 */
import type { Stats } from "node:fs";
import { readFile } from "node:fs/promises";
import { writeWholeFile } from "../../lib/files/whole-file.ts";

interface Saved {
  /** What was compared: another sync must not use it. */
  readonly sync: string;
  /** By key: the file and the ETag. */
  readonly equal: Readonly<Record<string, readonly [file: string, etag: string]>>;
}

/** What changes with the content of a file. A sync holds it for each file, so it has no more. */
export type FileStatus = Pick<Stats, "size" | "mtimeMs" | "ctimeMs" | "ino">;

/** A file that was written so shortly before may be written again without another time. */
const SETTLED_MS = 2_000;

/** Pairs of files and objects that were equal. Without a path, it knows and keeps nothing. */
export class KnownEqual {
  readonly #path: string | undefined;
  readonly #sync: string;
  readonly #before: ReadonlyMap<string, readonly [string, string]>;
  readonly #now = new Map<string, readonly [string, string]>();

  private constructor(path: string | undefined, sync: string, before: Saved["equal"]) {
    this.#path = path;
    this.#sync = sync;
    this.#before = new Map(Object.entries(before));
  }

  /** Opens the file at `path`. One that is absent, damaged or of another sync is as an empty one. */
  static async open(path: string | undefined, sync: string): Promise<KnownEqual> {
    const text = path === undefined ? "" : await readFile(path, "utf8").catch(() => "");
    return new KnownEqual(path, sync, parse(text, sync));
  }

  /** Whether this file and the object with this ETag were equal. */
  has(key: string, file: FileStatus, etag: string | undefined): boolean {
    const [knownFile, knownEtag] = this.#before.get(key) ?? [];
    if (etag === undefined || etag !== knownEtag || knownFile !== signatureOf(file)) return false;
    this.#now.set(key, [knownFile, etag]);
    return true;
  }

  /** Notes that they are equal. `file` is what was known of the file at `readMs`, before it was read. */
  add(key: string, file: FileStatus, etag: string | undefined, readMs: number): void {
    if (this.#path === undefined) return;
    if (etag === undefined || Math.max(file.mtimeMs, file.ctimeMs) > readMs - SETTLED_MS) return;
    this.#now.set(key, [signatureOf(file), etag]);
  }

  /** Keeps what this run has found. DISK_FULL or USAGE. */
  async save(): Promise<void> {
    if (this.#path === undefined) return;
    const saved: Saved = { sync: this.#sync, equal: Object.fromEntries(this.#now) };
    await writeWholeFile(this.#path, (write) => write(Buffer.from(JSON.stringify(saved))));
  }
}

/** The part of what `stat` returns that a sync holds. */
export function statusOf({ size, mtimeMs, ctimeMs, ino }: Stats): FileStatus {
  return { size, mtimeMs, ctimeMs, ino };
}

/** A status as text, by which two are compared. */
export function signatureOf({ size, mtimeMs, ctimeMs, ino }: FileStatus): string {
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

function parse(text: string, sync: string): Saved["equal"] {
  try {
    const saved = JSON.parse(text) as Partial<Saved>;
    return saved.sync === sync && typeof saved.equal === "object" ? saved.equal : {};
  } catch {
    return {};
  }
}
