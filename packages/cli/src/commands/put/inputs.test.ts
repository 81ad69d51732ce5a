/** Folders as they are found: links, FIFOs and dot files. */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { collectInputs } from "./inputs.ts";

let base: string;
let folder: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "agarose-inputs-"));
  folder = join(base, "out");
  await mkdir(join(folder, "sub"), { recursive: true });
  await mkdir(join(base, "elsewhere"));
  await writeFile(join(base, "elsewhere/secret"), "secret");
  await writeFile(join(folder, "good"), "good");
  await writeFile(join(folder, "sub/deep"), "deep");
});

afterEach(() => rm(base, { recursive: true }));

const keysOf = ({ files }: { files: readonly { key: string }[] }): string[] => files.map(({ key }) => key);

test("a broken link, a link to itself and a FIFO are skipped with a reason, and the rest is stored", async () => {
  await symlink(join(base, "nothing"), join(folder, "broken"));
  await symlink("self", join(folder, "self"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
  const inputs = await collectInputs([folder], {});
  expect(keysOf(inputs)).toEqual(["out/good", "out/sub/deep"]);
  expect(inputs.skipped).toEqual([
    { path: join(folder, "broken"), reason: "it is a broken link" },
    { path: join(folder, "pipe"), reason: "it is neither a file nor a folder" },
    { path: join(folder, "self"), reason: "it is a broken link" },
  ]);
});

test("links out of the folder are followed with --follow only", async () => {
  await symlink(join(base, "elsewhere/secret"), join(folder, "picture.jpg"));
  await symlink(join(base, "elsewhere"), join(folder, "tree"));
  const plain = await collectInputs([folder], {});
  expect(keysOf(plain)).toEqual(["out/good", "out/sub/deep"]);
  expect(plain.skipped.map(({ reason }) => reason)).toEqual([
    expect.stringContaining("outside of the folder: --follow takes it"),
    expect.stringContaining("outside of the folder: --follow takes it"),
  ]);
  const followed = await collectInputs([folder], { follow: true });
  expect(keysOf(followed)).toEqual(["out/good", "out/picture.jpg", "out/sub/deep", "out/tree/secret"]);
});

test("links within the folder are followed, but not in circles", async () => {
  await symlink("good", join(folder, "alias"));
  await symlink("sub", join(folder, "sub-alias"));
  await symlink("..", join(folder, "sub/up"));
  const { skipped, ...inputs } = await collectInputs([folder], {});
  expect(keysOf(inputs)).toEqual(["out/alias", "out/good", "out/sub-alias/deep", "out/sub/deep"]);
  expect(skipped).toEqual([
    { path: join(folder, "sub-alias/up"), reason: "it links to a folder above it" },
    { path: join(folder, "sub/up"), reason: "it links to a folder above it" },
  ]);
});

test("puts a folder that is named by a link under the link's name", async () => {
  await symlink("out", join(base, "link"));
  expect(keysOf(await collectInputs([join(base, "link")], {}))).toEqual(["link/good", "link/sub/deep"]);
});

test("dot files are stored, and named", async () => {
  await mkdir(join(folder, ".git"));
  await writeFile(join(folder, ".git/config"), "");
  await writeFile(join(folder, ".env"), "");
  const { dotFiles } = await collectInputs([folder], {});
  expect(dotFiles).toEqual([join(folder, ".env"), join(folder, ".git/config")]);
});

test("a FIFO that is named is refused at once", async () => {
  execFileSync("mkfifo", [join(base, "pipe")]);
  await expect(collectInputs([join(base, "pipe")], {})).rejects.toMatchObject({ code: "FILE_UNREADABLE" });
});

test.each([
  [["good", "photos/cat.jpg"], "`agarose put good --key photos/cat.jpg`"],
  [["good", "photos/"], "`agarose put good --prefix photos/`"],
  [["good", "sub/deep", "photos"], "`agarose put good sub/deep --prefix photos`"],
])("a last path that is no file, as of other tools' copies: %j", async (paths, hint) => {
  const cwd = process.cwd();
  process.chdir(folder);
  try {
    const collected = collectInputs(paths, {});
    await expect(collected).rejects.toMatchObject({ code: "FILE_UNREADABLE", message: expect.stringContaining(hint) });
  } finally {
    process.chdir(cwd);
  }
});

test("a key that is the name of a folder is refused for a file, which would not be found below it", async () => {
  const collected = collectInputs([join(folder, "good")], { key: "photos/" });
  await expect(collected).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("--prefix photos/"),
  });
});
