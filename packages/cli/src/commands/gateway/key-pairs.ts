/** The file of the pairs of keys that clients of the gateway sign with. */
import { unwatchFile, watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import * as v from "valibot";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import type { KeyPair } from "@agarose/s3-server";
import { checkedBy } from "@agarose/storage/config/config";
import { jsonIn } from "@agarose/storage/config/json";
import { unreadable } from "@agarose/storage/files/file-errors";

const keyPair = v.strictObject({
  // A signature names it in a list with commas.
  accessKeyId: v.pipe(v.string(), v.regex(/^[^\s,]+$/, "is empty, or has a space or a comma")),
  secretAccessKey: v.pipe(v.string(), v.minLength(1, "is empty")),
  prefix: v.optional(v.pipe(v.string(), v.check(isFolder, "must be a key that ends with a slash, such as `photos/`"))),
  readOnly: v.optional(v.boolean()),
});

const keyPairs = v.pipe(
  v.tupleWithRest([keyPair], keyPair),
  v.check(
    (pairs) => new Set(pairs.map(({ accessKeyId }) => accessKeyId)).size === pairs.length,
    "has an `accessKeyId` twice: choose another for each pair",
  ),
);

/** Reads the file. Throws CONFIG_INVALID naming the field, and never a value: they are secrets. */
export async function readKeyPairs(path: string): Promise<[KeyPair, ...KeyPair[]]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    const message = `${unreadable(path, error)}: give --keys the file with the pairs of keys`;
    throw new AgaroseError("CONFIG_INVALID", message, { path }, error);
  });
  const json = jsonIn(text.replace(/^\uFEFF/, ""));
  if (json === undefined) {
    // The message of the parser quotes the file.
    throw new AgaroseError("CONFIG_INVALID", `${path} is not JSON: it holds a list of pairs of keys`, { path });
  }
  return checkedBy(keyPairs, json, path, true);
}

const LOOK_MS = 1_000;

/**
 * Keeps `pairs` as the file says until `signal` aborts. A file that is gone or has a mistake leaves them as they are,
 * and `onProblem` hears of it.
 */
export function followKeyPairs(
  path: string,
  pairs: KeyPair[],
  signal: AbortSignal,
  onProblem: (error: AgaroseError) => void,
): void {
  const read = (): void =>
    void readKeyPairs(path).then(
      (next) => pairs.splice(0, pairs.length, ...next),
      (error: unknown) => onProblem(toAgaroseError(error)),
    );
  // Looks at the path again and again: editors and mounted secrets put another file there.
  watchFile(path, { interval: LOOK_MS, persistent: false }, read);
  signal.addEventListener("abort", () => unwatchFile(path, read), { once: true });
}

function isFolder(prefix: string): boolean {
  try {
    return parseKey(prefix).endsWith("/");
  } catch {
    return false;
  }
}
