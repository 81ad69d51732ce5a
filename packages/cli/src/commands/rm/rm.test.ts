/** Questions of `rm` and the other verbs before they remove much, and their dry runs. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CREDENTIALS, startTestWorld, type World } from "../../../test/world.ts";

const KEYS = ["a/1", "a/2", "b/1"];
const SCRIPT = "/usr/bin/script";

let world: World;
beforeEach(async () => {
  world = await startTestWorld();
  for (const key of KEYS) await world.put(key, Buffer.from(key));
});
afterEach(() => world.close());

const jsonOf = ({ stdout }: { stdout: Buffer }): Record<string, unknown> => JSON.parse(stdout.toString());
const keysLeft = async (): Promise<string[]> =>
  ((jsonOf(await world.run(["ls", "--json"]))["objects"] ?? []) as { key: string }[]).map(({ key }) => key);

describe("rm", () => {
  test.each([
    { args: ["--recursive", ""], says: "--all" },
    { args: ["a/1", "", "--recursive"], says: "--all" },
    { args: [], says: "--all" },
    { args: ["--recursive"], says: "--all" },
    { args: ["--all"], says: "--yes" },
    { args: ["--all", "a/1"], says: "without keys" },
    { args: [""], says: "key" },
  ])("$args removes nothing, exits with 2 and names $says", async ({ args, says }) => {
    const run = await world.run(["rm", ...args]);
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
    expect(await keysLeft()).toEqual(KEYS);
  });

  test("--all --yes removes every object, and --all --dry-run names them and removes none", async () => {
    const dry = jsonOf(await world.run(["rm", "--all", "--dry-run", "--json"]));
    expect(dry).toEqual({ objects: KEYS.map((key) => ({ key, outcome: "due" })), dryRun: true });
    expect(await keysLeft()).toEqual(KEYS);
    expect((await world.run(["rm", "--all", "--yes"])).code).toBe(0);
    expect(await keysLeft()).toEqual([]);
  });

  test("--dry-run writes to no bucket, for keys, prefixes and versions that would come back", async () => {
    const before = await world.names();
    expect((await world.run(["rm", "a/1", "--dry-run"])).stdout.toString()).toBe("would be removed  a/1\n");
    expect((await world.run(["rm", "--recursive", "a/", "--dry-run"])).stdout.toString()).toContain("a/2");
    expect((await world.run(["rm", "none", "--dry-run"])).code).toBe(1);
    expect(await world.names()).toEqual(before);
  });

  test("a prefix with text goes on without a terminal, as scripts expect", async () => {
    expect((await world.run(["rm", "--recursive", "a/"])).code).toBe(0);
    expect(await keysLeft()).toEqual(["b/1"]);
  });
});

describe.skipIf(!existsSync(SCRIPT))(`on a terminal (needs ${SCRIPT})`, () => {
  /** Runs the command on a pseudo-terminal and types `answer` once it asks. */
  async function onTerminal(args: readonly string[], answer: string): Promise<{ code: number; said: string }> {
    const bin = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));
    const words = [process.execPath, bin, "--config", world.configPath, ...args];
    const line = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(" ");
    const env = {
      PATH: process.env["PATH"],
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    };
    const child = spawn(SCRIPT, ["-qec", line, "/dev/null"], { cwd: world.dir, env });
    let said = "";
    let isAnswered = false;
    child.stdout.on("data", (part: Buffer) => {
      said += part.toString();
      if (isAnswered || !said.includes("[y/N]")) return;
      isAnswered = true;
      child.stdin.write(answer);
    });
    const code = await new Promise<number>((resolve) => child.on("close", (exit) => resolve(exit ?? -1)));
    return { code, said };
  }

  test.each([
    ["n\r", "no"],
    ["\r", "nothing"],
    ["\u0004", "the end of the input"],
  ])("rm --recursive shows what would go, and %j removes nothing", async (answer) => {
    const { code, said } = await onTerminal(["rm", "--recursive", "a/"], answer);
    expect(said).toContain("2 objects");
    expect(said).toContain('"a/1", "a/2"');
    expect(code).toBe(1);
    expect(await keysLeft()).toEqual(KEYS);
  });

  test("yes removes them, and --yes is not asked", async () => {
    expect(await onTerminal(["rm", "--recursive", "a/"], "y\r")).toMatchObject({ code: 0 });
    expect(await keysLeft()).toEqual(["b/1"]);
    const { code, said } = await onTerminal(["rm", "--all", "--yes"], "n\r");
    expect({ code, asks: said.includes("[y/N]") }).toEqual({ code: 0, asks: false });
  });

  test.each([
    { args: ["gc", "--delete"], what: "no manifest names" },
    { args: ["sync", "folder", "a", "--delete"], what: "1 object" },
    { args: ["expire"], what: '"tmp/"' },
  ])("$args asks before it begins", async ({ args, what }) => {
    await mkdir(join(world.dir, "folder"));
    await writeFile(join(world.dir, "folder/1"), "a/1");
    const config = JSON.parse(await readFile(world.configPath, "utf8"));
    await writeFile(world.configPath, JSON.stringify({ ...config, expire: [{ prefix: "tmp/", time: "1d" }] }));
    const before = await world.names();
    const { code, said } = await onTerminal(args, "n\r");
    expect(said).toContain(what);
    expect(code).toBe(1);
    expect(await world.names()).toEqual(before);
  });
});

describe("sync --delete", () => {
  async function folderOf(names: readonly string[]): Promise<string> {
    const folder = join(world.dir, "folder");
    await mkdir(folder);
    for (const name of names) await writeFile(join(folder, name), `${name}, content`);
    return folder;
  }

  test("from a folder that has none of the objects removes nothing without a terminal, unless --yes says so", async () => {
    const folder = await folderOf(["other"]);
    const run = await world.run(["sync", folder, "a", "--delete"]);
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
    expect(await keysLeft()).toEqual(KEYS);
    expect((await world.run(["sync", folder, "a", "--delete", "--yes"])).code).toBe(0);
    expect(await keysLeft()).toEqual(["a/other", "b/1"]);
  });

  test("from a folder that has some of them goes on without a question", async () => {
    const folder = await folderOf(["1"]);
    expect((await world.run(["sync", folder, "a", "--delete"])).code).toBe(0);
    expect(await keysLeft()).toEqual(["a/1", "b/1"]);
  });

  test("--get into a folder that has none of the objects deletes no file, unless --yes says so", async () => {
    const folder = await folderOf(["precious"]);
    expect((await world.run(["sync", "--get", "a", folder, "--delete"])).code).toBe(2);
    expect(await readFile(join(folder, "precious"), "utf8")).toBe("precious, content");
    expect((await world.run(["sync", "--get", "a", folder, "--delete", "--yes"])).code).toBe(0);
    expect(existsSync(join(folder, "precious"))).toBe(false);
  });
});

test("put --dry-run says what would be new, replaced and unchanged, and stores nothing", async () => {
  await writeFile(join(world.dir, "same.txt"), "as it is");
  expect((await world.run(["put", "same.txt", "--prefix", "a/"])).code).toBe(0);
  await writeFile(join(world.dir, "1"), "another content");
  await writeFile(join(world.dir, "fresh"), "new");
  const before = await world.names();
  const run = await world.run(["put", "1", "same.txt", "fresh", "--prefix", "a/", "--dry-run", "--json"]);
  expect(jsonOf(run)).toEqual({
    objects: [
      { key: "a/1", outcome: "replaced", generation: 1 },
      { key: "a/same.txt", outcome: "unchanged", generation: 1 },
      { key: "a/fresh", outcome: "new" },
    ],
    dryRun: true,
  });
  expect(await world.names()).toEqual(before);
});

test("restore and rm --undelete say with --dry-run what they would bring back, and write nothing", async () => {
  const config = JSON.parse(await readFile(world.configPath, "utf8"));
  await writeFile(world.configPath, JSON.stringify({ ...config, keep: [{ prefix: "", time: "1d" }] }));
  await writeFile(join(world.dir, "1"), "first");
  await world.run(["put", "1", "--key", "kept"]);
  await writeFile(join(world.dir, "1"), "second");
  await world.run(["put", "1", "--key", "kept"]);
  let before = await world.names();
  const restored = jsonOf(await world.run(["restore", "kept", "--dry-run", "--json"]));
  expect(restored).toMatchObject({ key: "kept", outcome: "due", restored: { generation: 1 }, dryRun: true });
  expect(await world.names()).toEqual(before);
  await world.run(["rm", "kept"]);
  before = await world.names();
  const undeleted = jsonOf(await world.run(["rm", "kept", "--undelete", "--dry-run", "--json"]));
  expect(undeleted).toMatchObject({ objects: [{ key: "kept", outcome: "due", restored: { generation: 2 } }] });
  expect(await world.names()).toEqual(before);
});

test("gc --delete --dry-run lists garbage, and marks and deletes none", async () => {
  await world.put("big", Buffer.alloc(20_000, 1));
  await world.put("big", Buffer.alloc(20_000, 2));
  const before = await world.names();
  const run = await world.run(["gc", "--delete", "--dry-run", "--json"]);
  expect(jsonOf(run)).toMatchObject({ found: 1 });
  expect(await world.names()).toEqual(before);
});
