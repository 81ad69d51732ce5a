/** Whose a temporary file is, where process ids come again, and where containers share a folder. */
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isBeingWritten, makeTempFolder, partialPathOf } from "./owned-files.ts";

let below: string;
beforeEach(async () => {
  below = await mkdtemp(join(tmpdir(), "agarose-owned-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(below, { recursive: true, force: true });
});

const OWNER = new RegExp(`([\\da-f]{8})-${process.pid}-([\\da-f]{8})-`);
const OTHER = "0123abcd";
const DAY_MS = 86_400_000;

/**
 * Other possible creators of `path`: this process before a restart of the container, a process of another one, no one.
 */
async function madeBy(path: string, who: "earlier" | "elsewhere" | "dead"): Promise<string> {
  const [, host, start] = OWNER.exec(path)!;
  const { pid: dead } = spawnSync(process.execPath, ["-e", ""]);
  if (who === "earlier") return path.replace(`-${start}-`, `-${OTHER}-`);
  return who === "elsewhere" ? path.replace(`${host}-`, `${OTHER}-`) : path.replace(`-${process.pid}-`, `-${dead}-`);
}

async function age(path: string): Promise<void> {
  const then = new Date(Date.now() - DAY_MS);
  await utimes(path, then, then);
}

test("a folder of a process that had the same number before is removed, and one of a live process stays", async () => {
  const own = await makeTempFolder("test", { below });
  const [earlier, elsewhere, dead] = [
    await madeBy(own, "earlier"),
    await madeBy(own, "elsewhere"),
    await madeBy(own, "dead"),
  ];
  for (const folder of [earlier, elsewhere, dead]) await mkdir(folder);
  const removed: string[] = [];
  await makeTempFolder("test", { below, onLeftover: (path) => void removed.push(path) });
  expect(removed.toSorted()).toEqual([earlier, dead].toSorted());
  await age(elsewhere);
  await age(own);
  await makeTempFolder("test", { below, onLeftover: (path) => void removed.push(path) });
  expect(removed, "of another container, once nobody keeps it").toContain(elsewhere);
  expect(await readdir(below)).toContain(basename(own));
});

test("a folder is kept young for as long as its process lives", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const own = await makeTempFolder("test", { below });
    await age(own);
    const before = (await stat(own)).mtimeMs;
    await vi.advanceTimersByTimeAsync(3_600_000);
    await vi.waitFor(async () => expect((await stat(own)).mtimeMs).toBeGreaterThan(before));
  } finally {
    vi.useRealTimers();
  }
});

test("a part of a process that had the same number before is not being written", async () => {
  const own = await partialPathOf(join(below, "film"));
  const states: [string, boolean][] = [
    [own, true],
    [await madeBy(own, "earlier"), false],
    [await madeBy(own, "dead"), false],
    [await madeBy(own, "elsewhere"), true],
  ];
  for (const [path, isWritten] of states) {
    await writeFile(path, "half");
    expect(await isBeingWritten(path), path).toBe(isWritten);
  }
  await age(states[3]![0]);
  expect(await isBeingWritten(states[3]![0]), "in another container, long ago").toBe(false);
  await partialPathOf(join(below, "film"));
  expect(await readdir(below)).toEqual([basename(own)]);
});

test.each([
  ["that is no folder", "/dev/null", "ENOTDIR"],
  ["that is not there", "/nowhere", "ENOENT"],
])("a folder for temporary files %s is DISK_FULL, and says what to set", async (_what, folder, code) => {
  vi.stubEnv("TMPDIR", folder);
  await expect(makeTempFolder("test")).rejects.toMatchObject({
    code: "DISK_FULL",
    message: `${folder} cannot hold temporary files (${code}): set TMPDIR to a folder with room for them`,
  });
});
