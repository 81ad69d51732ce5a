/** Attributes that a replaced file keeps, and those of a new secret. */
import { chmod, lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { partialPathOf } from "./owned-files.ts";
import { writeNewSecret, writeWholeFile } from "./whole-file.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "agarose-files-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const write = (path: string, options = {}): Promise<void> =>
  writeWholeFile(path, (part) => part(Buffer.from("new")), options);
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777;

test.each([0o600, 0o640, 0o400, 0o755])("a file of mode %o keeps it when it is replaced", async (mode) => {
  const path = join(dir, "f");
  await writeFile(path, "old");
  await chmod(path, mode);
  await write(path);
  expect(await readFile(path, "utf8")).toBe("new");
  expect(await modeOf(path)).toBe(mode);
});

test("a link stays one, and what it leads to is replaced; without following, the link is replaced", async () => {
  await writeFile(join(dir, "target"), "old", { mode: 0o600 });
  await symlink("target", join(dir, "link"));
  await write(join(dir, "link"));
  expect((await lstat(join(dir, "link"))).isSymbolicLink()).toBe(true);
  expect(await readFile(join(dir, "target"), "utf8")).toBe("new");
  expect(await modeOf(join(dir, "target"))).toBe(0o600);
  await writeFile(join(dir, "target"), "old");
  await write(join(dir, "link"), { follow: false });
  expect((await lstat(join(dir, "link"))).isSymbolicLink()).toBe(false);
  expect(await readFile(join(dir, "target"), "utf8")).toBe("old");
});

test.each(["n".repeat(255), "ü".repeat(127)])("a name of 255 bytes can be written: %s", async (name) => {
  const path = join(dir, name);
  expect(Buffer.byteLength(await partialPathOf(path))).toBeLessThan(Buffer.byteLength(dir) + 256);
  await write(path);
  expect(await readdir(dir)).toEqual([name]);
});

test("a new secret is its owner's alone, and one that is there stays", async () => {
  const path = join(dir, "key");
  await writeNewSecret(path, "secret");
  expect(await modeOf(path)).toBe(0o600);
  await expect(writeNewSecret(path, "other")).rejects.toMatchObject({ code: "USAGE" });
  expect(await readFile(path, "utf8")).toBe("secret");
});
