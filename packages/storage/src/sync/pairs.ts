/** A folder and a listing, as one list of keys: what both have of each. In constant memory. */
import { AgaroseError, type ErrorCode } from "@agarose/core";
import { keyName } from "@agarose/core/format";
import type { KeyGroup } from "../listing/key-groups.ts";
import type { Known, KnownEqual } from "./known-equal.ts";
import type { LocalFile } from "./local-folder.ts";

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
