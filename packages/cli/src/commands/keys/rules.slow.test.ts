/** The rules of keys and secrets, over all that a bucket can hold of a key: objects, tombstones, versions, copies. */
import { readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startTestWorld, type RunResult, type World } from "../../../test/world.ts";

const PREFIXES = ["a/", "a/b/"];
let world: World;

beforeEach(async () => {
  world = await startTestWorld({ auto: true });
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ prefix: "", time: "30d" }] }));
  await world.run(["keys", "new", "one.pem"]);
});

afterEach(() => world.close());

/** Runs a command that must succeed. */
async function run(...args: string[]): Promise<RunResult> {
  const result = await world.run(args);
  expect(result.code, `${args.join(" ")}: ${result.stderr}${result.stdout.toString()}`).toBe(0);
  return result;
}

async function put(key: string, text: string): Promise<void> {
  await writeFile(join(world.dir, "upload-file"), text);
  await run("put", "upload-file", "--key", key);
}

const content = async (key: string): Promise<string> => (await run("get", key, "-")).stdout.toString();

/** Objects in every state, below a prefix, and below one inside of it. */
async function fill(): Promise<void> {
  for (const prefix of PREFIXES) {
    for (const text of ["one", "two"]) await put(`${prefix}replaced`, text);
    await put(`${prefix}removed`, "gone");
    await run("rm", `${prefix}removed`);
    await put(`${prefix}large`, "x".repeat(50_000));
    await put(`${prefix}large`, "y".repeat(50_000));
  }
}

/** Everything that was ever acknowledged is there, and can be brought back. */
async function checkAll(): Promise<void> {
  await run("verify");
  await run("repair");
  for (const prefix of PREFIXES) {
    expect(await content(`${prefix}replaced`)).toBe("two");
    expect(await content(`${prefix}large`)).toBe("y".repeat(50_000));
    await run("restore", `${prefix}replaced`);
    expect(await content(`${prefix}replaced`)).toBe("one");
    await run("restore", `${prefix}large`);
    expect(await content(`${prefix}large`)).toBe("x".repeat(50_000));
    await run("rm", "--undelete", `${prefix}removed`);
    expect(await content(`${prefix}removed`)).toBe("gone");
  }
}

const ROTATIONS: [what: string, steps: readonly (readonly string[])[], gone: string][] = [
  [
    "the signing key",
    [
      ["keys", "rotate", "two.pem"],
      ["keys", "rotate", "two.pem", "--sign"],
      ["keys", "apply"],
      ["keys", "rotate", "two.pem", "--finish"],
    ],
    "one.pem",
  ],
  [
    "the secret of the outer prefix",
    [
      ["keys", "secret", "two.secret", "--prefix", "a/"],
      ["keys", "secret", "two.secret", "--prefix", "a/", "--encrypt"],
      ["keys", "apply"],
      ["keys", "secret", "two.secret", "--prefix", "a/", "--finish"],
    ],
    "outer.secret",
  ],
  [
    "the secret of the inner prefix",
    [
      ["keys", "secret", "two.secret", "--prefix", "a/b/"],
      ["keys", "secret", "two.secret", "--prefix", "a/b/", "--encrypt"],
      ["keys", "apply"],
      ["keys", "secret", "two.secret", "--prefix", "a/b/", "--finish"],
    ],
    "inner.secret",
  ],
];

describe.each(ROTATIONS)("when %s is replaced", (_what, steps, gone) => {
  beforeEach(async () => {
    await run("keys", "secret", "outer.secret", "--prefix", "a/");
    await run("keys", "secret", "inner.secret", "--prefix", "a/b/");
    await fill();
  });

  test("objects, kept versions, removed objects and copies stay readable", async () => {
    for (const step of steps) await run(...step);
    await unlink(join(world.dir, gone));
    await checkAll();
  });

  test("it does not end before kept versions are signed again, too", async () => {
    // The objects themselves get the new key by a put, so that only kept versions have the old one.
    await run(...steps[0]!);
    await run(...steps[1]!);
    for (const prefix of PREFIXES) {
      for (const key of ["replaced", "removed", "large"]) await put(`${prefix}${key}`, "three");
    }
    const { code, stderr } = await world.run(steps[3]!);
    expect([code, stderr]).toEqual([2, expect.stringContaining("agarose keys apply")]);
    await run("keys", "apply");
    await run(...steps[3]!);
    await run("verify");
  });
});

test("a secret for a longer prefix takes from no reader what the shorter one has encrypted", async () => {
  await run("keys", "secret", "outer.secret", "--prefix", "a/");
  await fill();
  await run("keys", "secret", "inner.secret", "--prefix", "a/b/");
  await checkAll();
  // New objects have the inner secret.
  await put("a/b/new", "new");
  await run("keys", "apply");
  await run("keys", "secret", "two.secret", "--prefix", "a/");
  await run("keys", "secret", "two.secret", "--prefix", "a/", "--encrypt");
  await put("a/b/replaced", "by the inner one");
  await run("keys", "apply");
  await run("keys", "secret", "two.secret", "--prefix", "a/", "--finish");
  await unlink(join(world.dir, "outer.secret"));
  expect(await content("a/b/new")).toBe("new");
  expect(await content("a/b/large")).toBe("x".repeat(50_000));
  await run("verify");
});

test("the outer secret is not dropped while an object of the inner prefix has it", async () => {
  await run("keys", "secret", "outer.secret", "--prefix", "a/");
  await put("a/b/page", "one");
  await run("keys", "secret", "inner.secret", "--prefix", "a/b/");
  await run("keys", "secret", "two.secret", "--prefix", "a/");
  await run("keys", "secret", "two.secret", "--prefix", "a/", "--encrypt");
  const args = ["keys", "secret", "two.secret", "--prefix", "a/", "--finish"];
  const { code, stderr } = await world.run(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining("a/b/page")]);
  await run("keys", "apply");
  await run(...args);
  expect(await content("a/b/page")).toBe("one");
});
