import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fileSource } from "./file-source.ts";

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "agarose-source-"))));
afterAll(() => rm(folder, { recursive: true }));

test.each([
  ["small", "as it was when it was opened", 18_000, true],
  ["longer", "as it is", 50_000, false],
])("a %s file is read %s", async (name, _how, bytes, isHeld) => {
  const path = join(folder, name);
  const [before, after] = [randomBytes(bytes), randomBytes(bytes)];
  await writeFile(path, before);
  const file = await fileSource(path).open();
  await writeFile(path, after);
  const read = Buffer.alloc(bytes + 1);
  expect(await file.read(read, 0)).toBe(bytes);
  expect(read.subarray(0, bytes).equals(isHeld ? before : after)).toBe(true);
  expect(await file.read(read.subarray(0, 10), bytes - 3)).toBe(3);
  await file.close();
});

test.skipIf(process.platform !== "linux")("a file whose length the system says is 0 is read to its end", async () => {
  const file = await fileSource("/proc/version").open();
  const read = Buffer.alloc(1_000);
  const bytes = await file.read(read, 0);
  expect(read.toString("utf8", 0, bytes)).toBe(await readFile("/proc/version", "utf8"));
  await file.close();
});
