/** A writer reads its sealed manifest as a reader would, before any region gets anything. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manifestName, REGIONS, startTestWorld, type RunResult, type World } from "../../world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
  await configure({ keep: [{ prefix: "", time: "30d" }] });
  await world.run(["keys", "new", "publisher.pem"]);
  await put("one");
  await put("two");
});

afterEach(() => world.close());

const run = (...args: string[]): Promise<RunResult> => world.run(args);

async function put(text: string): Promise<void> {
  await writeFile(join(world.dir, "upload-page"), text);
  expect((await run("put", "upload-page", "--key", "page")).code).toBe(0);
}

async function configure(more: object): Promise<void> {
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, ...more }));
}

/** Everything that the regions hold. */
async function stored(): Promise<string[]> {
  const names: string[] = [];
  for (const store of world.stores)
    for await (const { name, etag } of store.list("")) names.push(`${store.region.name} ${name} ${etag}`);
  return names;
}

/** Leaves a manifest in a minority, as an interrupted put does, for a repair to commit. */
async function leaveInMinority(): Promise<void> {
  for (const region of REGIONS.slice(2)) await world.tamper(region, manifestName("page"), () => undefined);
}

const SIGNERS: [what: string, make: () => Promise<object>][] = [
  [
    "a key that `publicKeys` does not name",
    async () => {
      await run("keys", "new", "other.pem");
      return { keyFile: "other.pem" };
    },
  ],
  ["a command that prints nothing", async () => ({ command: ["true"] })],
  ["a command that prints what is no signature", async () => ({ command: ["echo", "Z2FyYmFnZQ=="] })],
  ["a command that signs something else", async () => ({ command: ["sh", "-c", "head -c 64 /dev/zero | base64 -w0"] })],
];

const VERBS: [verb: string, args: readonly string[], before?: () => Promise<unknown>][] = [
  ["put", ["put", "upload-new", "--key", "page"]],
  ["put of other headers", ["put", "upload-page", "--key", "page", "--header", "cache-control: no-cache"]],
  ["rm", ["rm", "page"]],
  ["sync", ["sync", "folder", ""]],
  ["restore", ["restore", "page"]],
  ["rm --undelete", ["rm", "--undelete", "page"], () => run("rm", "page")],
  ["recode", ["recode"], () => configure({ code: { k: 3, m: 3 } })],
  ["repair", ["repair", "page"], leaveInMinority],
  ["keys apply", ["keys", "apply", "--vouch"]],
];

describe.each(SIGNERS)("with %s for `signing`", (_what, make) => {
  test.each(VERBS)("%s is CONFIG_INVALID, and writes nothing", async (verb, args, before) => {
    await mkdir(join(world.dir, "folder"));
    for (const name of ["upload-new", "folder/page"]) await writeFile(join(world.dir, name), "three");
    await before?.();
    const signing = await make();
    await configure({ signing });
    const held = await stored();
    const { code, stdout, stderr } = await run(...args);
    const said = `${stdout.toString()}${stderr}`;
    // It has to sign what another key has signed, so it has nothing to do where the names are the same.
    if (verb === "keys apply" && code === 0) expect(said).toContain("0 applied");
    else expect([code === 0, said]).toEqual([false, expect.stringContaining("CONFIG_INVALID")]);
    expect(await stored()).toEqual(held);
  });
});

test("a signer that works is asked for one signature more, by the first write of a command", async () => {
  const log = join(world.dir, "signed.log");
  const script = join(world.dir, "sign.mjs");
  await writeFile(
    script,
    `import { createPrivateKey, sign } from "node:crypto";
     import { appendFileSync, readFileSync } from "node:fs";
     const bytes = readFileSync(0);
     appendFileSync(${JSON.stringify(log)}, bytes.toString().split("\\n")[0] + "\\n");
     console.log(sign(null, bytes, createPrivateKey(readFileSync("publisher.pem"))).toString("base64"));`,
  );
  await configure({ signing: { command: [process.execPath, script] } });
  for (const name of ["a", "b"]) await writeFile(join(world.dir, name), name);
  expect((await run("put", "a", "b")).code).toBe(0);
  const signed = (await readFile(log, "utf8")).trim().split("\n").toSorted();
  expect(signed).toEqual(["agarose-manifest/2", "agarose-manifest/2", "agarose-probe/1"]);
});
