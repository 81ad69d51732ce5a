/** The files of a folder that a sync stores. */
import { realpath, stat } from "node:fs/promises";
import { relative, sep } from "node:path";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";
import { keyName, parseKey } from "@agarose/core/format";
import { entriesBelow, type InputFile, type SkippedEntry } from "../files/folder-entries.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";
import { statusOf, type FileStatus, type Known, type KnownEqual } from "./known-equal.ts";
import type { SyncContext, SyncJob } from "./sync-job.ts";

/** A file, its key, and what was known of it before it was read. */
export interface LocalFile extends InputFile {
  readonly status: FileStatus;
}

const LOOKED_AT_A_TIME = 32;

/** The files that a sync is about, in constant memory. */
export class LocalFolder {
  /** Keys of what was omitted so far. */
  readonly skipped: string[] = [];
  /** Files so far. */
  count = 0;
  readonly #job: SyncJob;
  readonly #context: SyncContext;

  constructor(job: SyncJob, context: SyncContext) {
    this.#job = job;
    this.#context = context;
  }

  /** In order of their keys. What cannot be read is reported as failed, and the rest is read. */
  async *files(): AsyncGenerator<LocalFile> {
    const { folder, prefix, filter, follow } = this.#job;
    const root = await realpath(folder);
    const below = { path: folder, key: "", real: root, above: [root] };
    const entries = entriesBelow(below, follow ? "/" : root, (path) => filter.leavesOutFolder(path));
    const looked = mapOrdered(entries, LOOKED_AT_A_TIME, async (entry) => {
      if ("reason" in entry || !filter.takes(entry.key)) return { entry };
      return { entry, status: await stat(entry.path).catch((error: unknown) => unreadable(entry.path, error)) };
    });
    for await (const { entry, status } of looked) {
      if ("reason" in entry) await this.#skip(entry);
      else if (status !== undefined) {
        const key = `${prefix}${entry.key}`;
        try {
          if (status instanceof AgaroseError) throw status;
          parseKey(key);
        } catch (error) {
          await this.#context.report({ key, outcome: "failed", error: toAgaroseError(error) });
          continue;
        }
        this.count++;
        yield { path: entry.path, key, status: statusOf(status) };
      }
    }
  }

  async #skip(entry: SkippedEntry): Promise<void> {
    const { folder, prefix, filter } = this.#job;
    const { path, reason, error } = entry;
    const below = pathBelow(folder, path);
    const key = `${prefix}${below}`;
    if (error) return this.#context.report({ key, outcome: "failed", error });
    if (below !== "" && !filter.takes(below)) return;
    this.skipped.push(key);
    await this.#context.report({ key, outcome: "skipped", path, reason });
  }
}

/** A path from the folder on, with `/` between its segments. */
export function pathBelow(folder: string, path: string): string {
  return relative(folder, path).split(sep).join("/");
}

/** The error of a file that cannot be looked at. */
export function unreadable(path: string, cause: unknown): AgaroseError {
  const { code } = cause as NodeJS.ErrnoException;
  return new AgaroseError("FILE_UNREADABLE", `${path} cannot be read (${code})`, { path }, cause);
}

/** A file, an object, or both. */
export interface Pair {
  readonly key: string;
  readonly file: LocalFile | undefined;
  readonly group: KeyGroup | undefined;
}

/**
 * Merges two lists that are in the order in which buckets list keys. Throws when one is not: a file would then seem to
 * have no object, and its object no file.
 */
export async function* pairsOf(files: AsyncIterable<LocalFile>, groups: AsyncIterable<KeyGroup>): AsyncGenerator<Pair> {
  const left = inOrder(files, "FILE_UNREADABLE", "the folder has changed while it was read");
  const right = inOrder(groups, "SOURCE_FAILED", "a region does not list its objects in order of their names");
  try {
    let [file, group] = [await next(left), await next(right)];
    while (file || group) {
      const isFile = file !== undefined && (group === undefined || keyName(file.key) <= keyName(group.key));
      const isGroup = group !== undefined && (file === undefined || keyName(group.key) <= keyName(file.key));
      yield { key: (isFile ? file : group)!.key, file: isFile ? file : undefined, group: isGroup ? group : undefined };
      if (isFile) file = await next(left);
      if (isGroup) group = await next(right);
    }
  } finally {
    await Promise.all([left.return(undefined), right.return(undefined)]);
  }
}

/** Items in order of their keys, each with what the run before knows of it. */
export async function* withKnown<T extends { readonly key: string }>(
  items: AsyncIterable<T>,
  known: KnownEqual,
): AsyncGenerator<{ readonly item: T; readonly known: Known | undefined }> {
  for await (const item of items) yield { item, known: await known.find(item.key) };
}

async function* inOrder<T extends { readonly key: string }>(
  items: AsyncIterable<T>,
  code: ErrorCode,
  problem: string,
): AsyncGenerator<T> {
  let before = "";
  for await (const item of items) {
    const place = keyName(item.key);
    if (place <= before) {
      const message = `${problem}: ${JSON.stringify(item.key)} comes too late, and nothing more is compared: sync again`;
      throw new AgaroseError(code, message, { key: item.key });
    }
    before = place;
    yield item;
  }
}

async function next<T>(items: AsyncGenerator<T>): Promise<T | undefined> {
  const { done, value } = await items.next();
  return done === true ? undefined : value;
}
