import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, open, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { writeNamed } from "./whole-file.ts";

const run = promisify(execFile);
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "whole-file-"));
});
afterEach(() => rm(folder, { recursive: true }));

const PARTS = ["first ", "second"].map((text) => Buffer.from(text));

async function fill(write: (part: Uint8Array) => Promise<void>): Promise<number> {
  for (const part of PARTS) await write(part);
  return PARTS.length;
}

test("a pipe is written to, and is still a pipe, also behind a link", async () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  await symlink(pipe, join(folder, "link"));
  for (const name of ["pipe", "link"]) {
    const reader = run("cat", [pipe]);
    expect(await writeNamed(join(folder, name), fill)).toBe(2);
    expect((await reader).stdout).toBe("first second");
    expect((await stat(pipe)).isFIFO()).toBe(true);
  }
  expect((await readdir(folder)).toSorted()).toEqual(["link", "pipe"]);
});

test("a file is replaced as a whole, and stays as it is when the filling fails", async () => {
  const file = join(folder, "file");
  await writeFile(file, "before");
  const failing = writeNamed(file, async (write) => {
    await write(PARTS[0]!);
    throw new Error("lost");
  });
  await expect(failing).rejects.toThrow("lost");
  expect(await readFile(file, "utf8")).toBe("before");
  await writeNamed(file, fill);
  expect(await readFile(file, "utf8")).toBe("first second");
  expect(await readdir(folder)).toEqual(["file"]);
});

test("a disk that says to a flush on the way that it is full is an error, and the file stays as it is", async () => {
  const file = join(folder, "file");
  await writeFile(file, "before");
  const handle = await open(file);
  // A fake: no file system here reports a full disk this late.
  const flush = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, "datasync");
  await handle.close();
  flush.mockRejectedValueOnce(Object.assign(new Error("no space"), { code: "ENOSPC" }));
  const part = Buffer.alloc(16 * 1024 * 1024);
  const writing = writeNamed(file, async (write) => {
    for (let i = 0; i < 8; i++) await write(part);
  });
  await expect(writing).rejects.toMatchObject({ code: "DISK_FULL" });
  expect(flush).toHaveBeenCalled();
  flush.mockRestore();
  expect(await readFile(file, "utf8")).toBe("before");
  expect(await readdir(folder)).toEqual(["file"]);
});
