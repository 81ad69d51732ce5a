/** The order of a folder is that of a listing, so that both are walked side by side. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { keyName } from "@agarose/core/format";
import type { KeyGroup } from "../listing/key-groups.ts";
import { entriesBelow } from "../files/folder-entries.ts";
import { pairsOf, type LocalFile, type Pair } from "./local-folder.ts";

const inOrder = (keys: Iterable<string>): string[] =>
  [...new Set(keys)].toSorted((a, b) => (keyName(a) < keyName(b) ? -1 : 1));

async function* fileStream(keys: readonly string[]): AsyncGenerator<LocalFile> {
  for (const key of keys) yield { key, path: key, status: { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 } };
}

async function* groupStream(keys: readonly string[]): AsyncGenerator<KeyGroup> {
  for (const key of keys) yield { key } as KeyGroup;
}

async function pairsIn(files: readonly string[], groups: readonly string[]): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for await (const pair of pairsOf(fileStream(files), groupStream(groups))) pairs.push(pair);
  return pairs;
}

const key = fc.string({
  unit: fc.constantFrom("a", "b", "/", ".", "-", "@", "%", " ", "é", "Z"),
  minLength: 1,
  maxLength: 5,
});

test("each key of a folder or a listing comes once, with what both have of it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(key), fc.uniqueArray(key), async (files, groups) => {
      const pairs = await pairsIn(inOrder(files), inOrder(groups));
      expect(pairs.map((pair) => pair.key)).toEqual(inOrder([...files, ...groups]));
      for (const pair of pairs) {
        expect([pair.file?.key, pair.group?.key]).toEqual([
          files.includes(pair.key) ? pair.key : undefined,
          groups.includes(pair.key) ? pair.key : undefined,
        ]);
      }
    }),
  );
});

test("a list out of order ends the walk, before an object that has a file seems to have none", async () => {
  const seen: Pair[] = [];
  const walk = async (files: readonly string[], groups: readonly string[]): Promise<void> => {
    seen.length = 0;
    for await (const pair of pairsOf(fileStream(files), groupStream(groups))) seen.push(pair);
  };
  await expect(walk(["a", "b", "c"], ["a", "c", "b"])).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(seen.filter(({ file, group }) => group && !file)).toEqual([]);
  await expect(walk(["a", "c", "b"], ["a", "b", "c"])).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
  await expect(walk([], ["a", "a"])).rejects.toMatchObject({ code: "SOURCE_FAILED" });
});

test("the files of a folder come in the order in which a bucket lists them, links to folders included", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "agarose-pairs-")));
  try {
    const paths = [
      "a/b",
      "a/c/d",
      "a.txt",
      "a-b",
      "a b",
      "a@b",
      "a%2Fb",
      "A",
      "é",
      "é/f",
      "z/1",
      "z.js",
      "zz",
      "日本/語",
      "0",
    ];
    const names = new Set(paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`))));
    for (const path of names) {
      await mkdir(join(folder, dirname(path)), { recursive: true });
      await writeFile(join(folder, path), "");
    }
    await symlink("z", join(folder, "a!"));
    await symlink("zz", join(folder, "a~"));
    const found: string[] = [];
    for await (const entry of entriesBelow({ path: folder, key: "", real: folder, above: [folder] }, folder)) {
      if ("key" in entry) found.push(entry.key);
    }
    expect(found).toEqual(inOrder([...names, "a!/1", "a~"]));
  } finally {
    await rm(folder, { recursive: true });
  }
});
