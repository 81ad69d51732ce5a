/** The state that a sync keeps in a file. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { areKnown, knownOf, KnownEqual, signatureOf, type Known } from "./known-equal.ts";

const SYNC = "dist to app";
const KEYS = ["app/a-b", "app/a/b", "app/c", "app/é"];
const status = (ino: number) => ({ size: 1, mtimeMs: 2, ctimeMs: 3.5, ino });
const knownAt = (index: number): Known => ({ file: signatureOf(status(index)), etag: `"${index}"` });

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-known-"));
  path = join(folder, "known");
});

afterEach(() => rm(folder, { recursive: true }));

async function keepAll(keys: readonly string[] = KEYS): Promise<void> {
  const known = await KnownEqual.open(path, SYNC);
  for (const key of keys) await known.keep(key, knownAt(KEYS.indexOf(key)));
  await known.save();
}

async function findAll(sync = SYNC): Promise<(Known | undefined)[]> {
  const known = await KnownEqual.open(path, sync);
  const found: (Known | undefined)[] = [];
  for (const key of KEYS) found.push(await known.find(key));
  await known.discard(undefined);
  return found;
}

test("what was kept is found by the next run, and what was not is unknown", async () => {
  await keepAll(KEYS.toSpliced(1, 1));
  expect(await findAll()).toEqual([knownAt(0), undefined, knownAt(2), knownAt(3)]);
});

test("more than is written at once is found again", async () => {
  const many = Array.from({ length: 5_000 }, (_, i) => `app/${String(i).padStart(5, "0")}`);
  const known = await KnownEqual.open(path, SYNC);
  for (const [i, key] of many.entries()) await known.keep(key, knownAt(i));
  await known.save();
  const next = await KnownEqual.open(path, SYNC);
  for (const [i, key] of many.entries()) expect(await next.find(key)).toEqual(knownAt(i));
  await next.discard(undefined);
});

test("a file of another sync, of an older release or damaged is as an empty one", async () => {
  await keepAll();
  expect(await findAll("dist to elsewhere")).toEqual(KEYS.map(() => undefined));
  await writeFile(path, JSON.stringify({ sync: SYNC, equal: { [KEYS[0]!]: ["1 2 3 0", '"0"'] } }));
  expect(await findAll()).toEqual(KEYS.map(() => undefined));
  for (const text of ["", "\n\n", "\u0000\u0001", "[1,2,3]"]) {
    await writeFile(path, text);
    expect(await findAll()).toEqual(KEYS.map(() => undefined));
  }
});

test("of a file that is cut off, whole lines count", async () => {
  await keepAll();
  const text = await readFile(path, "utf8");
  await writeFile(path, text.slice(0, text.indexOf(KEYS[2]!) + 3));
  expect(await findAll()).toEqual([knownAt(0), knownAt(1), undefined, undefined]);
});

test("a sync that fails leaves the file as it was, and nothing beside it", async () => {
  await keepAll();
  const before = await readFile(path, "utf8");
  const known = await KnownEqual.open(path, SYNC);
  await known.keep(KEYS[0]!, knownAt(7));
  await known.discard(new Error("the sync has failed"));
  expect(await readFile(path, "utf8")).toBe(before);
  expect(await readdir(folder)).toEqual(["known"]);
});

test("a file that cannot be written fails when it is saved, and not before", async () => {
  const known = await KnownEqual.open(join(folder, "absent", "known"), SYNC);
  await known.keep(KEYS[0]!, knownAt(0));
  await expect(known.save()).rejects.toMatchObject({ code: "USAGE" });
});

test("without a path, nothing is known and nothing is kept", async () => {
  const known = await KnownEqual.open(undefined, SYNC);
  expect(await known.find(KEYS[0]!)).toBeUndefined();
  await known.keep(KEYS[0]!, knownAt(0));
  await known.save();
  expect(await readdir(folder)).toEqual([]);
});

test("a file counts as unchanged by length, times and inode, an object by its ETag", () => {
  const known = knownAt(4);
  expect(areKnown(known, status(4), '"4"')).toBe(true);
  expect(areKnown(known, status(5), '"4"')).toBe(false);
  expect(areKnown(known, { ...status(4), mtimeMs: 2.25 }, '"4"')).toBe(false);
  expect(areKnown(known, status(4), '"5"')).toBe(false);
  expect(areKnown(known, status(4), undefined)).toBe(false);
  expect(areKnown(undefined, status(4), '"4"')).toBe(false);
});

test("a file that was written within two seconds is not noted: it may be written again at the same time", () => {
  const file = { ...status(1), mtimeMs: 10_000 };
  expect(knownOf(file, '"1"', 11_999)).toBeUndefined();
  expect(knownOf(file, '"1"', 12_000)).toEqual({ file: signatureOf(file), etag: '"1"' });
  expect(knownOf(file, undefined, 20_000)).toBeUndefined();
});
