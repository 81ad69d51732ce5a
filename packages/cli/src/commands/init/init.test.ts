import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseConfig } from "@agarose/sw/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runAgarose } from "../../../test/world.ts";

let folder: string;
let configPath: string;

const CONFIG = {
  regions: [
    { name: "dublin", provider: "a", endpoint: "https://s3.dublin.test", bucket: "chunks" },
    {
      name: "tokyo",
      provider: "b",
      endpoint: "https://s3.tokyo.test",
      bucket: "chunks",
      url: "https://cdn.tokyo.test/c",
    },
    { name: "osaka", provider: "b", endpoint: "https://s3.osaka.test", bucket: "closed", private: true },
  ],
  code: { k: 2, m: 1 },
  publicKeys: [`ed25519:${"A".repeat(43)}=`],
  signing: { keyFile: "secret.key.pem" },
  pops: [{ name: "fra", url: "https://fra.test" }],
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-init-"));
  configPath = join(folder, "agarose.json");
  await writeFile(configPath, JSON.stringify(CONFIG));
});

afterEach(() => rm(folder, { recursive: true }));

const init = (...args: string[]) => runAgarose(["init", join(folder, "public"), "--config", configPath, ...args]);

test("init writes the workers, the page's side, and a client configuration of PoPs and public regions' addresses only", async () => {
  const { code, stdout } = await init("--json");
  expect(code).toBe(0);
  const written = await readdir(join(folder, "public"));
  const scripts = ["agarose-codec.js", "agarose-devtools.js", "agarose-sw.dev.js", "agarose-sw.js"];
  scripts.push("agarose-sw.offline.js", "agarose-sw.encryption.js", "agarose-upload.js");
  scripts.push("agarose-client.js", "agarose.js");
  expect(written.toSorted()).toEqual([...scripts.flatMap((name) => [name, `${name}.map`]), "agarose.json"].toSorted());
  const config: unknown = JSON.parse(await readFile(join(folder, "public/agarose.json"), "utf8"));
  const regions = [
    { name: "dublin", url: "https://s3.dublin.test/chunks" },
    { name: "tokyo", url: "https://cdn.tokyo.test/c" },
  ];
  expect(config).toEqual({ pops: CONFIG.pops, regions, publicKeys: CONFIG.publicKeys });
  expect(parseConfig(config, "https://app.test/")).toEqual({ prefix: "/ec/", ...(config as object) });
  expect(JSON.parse(stdout.toString())).toMatchObject({
    files: expect.arrayContaining([{ path: join(folder, "public/agarose.json"), outcome: "written" }]),
    config,
  });
});

test("the workers and their codec say in their first line which version they are and what follows it", async () => {
  await init();
  for (const [name, stamp] of [
    ["agarose-sw.js", "agarose-sw \\d+\\.\\d+\\.\\d+"],
    ["agarose-codec.js", "agarose-codec \\d+"],
  ] as const) {
    const [line, ...rest] = (await readFile(join(folder, "public", name), "utf8")).split("\n");
    const checksum = createHash("sha256").update(rest.join("\n")).digest("hex").slice(0, 16);
    expect(line).toMatch(new RegExp(`^/\\*! ${stamp} ${checksum} \\*/$`));
  }
});

test("init --remove replaces every worker by one that unregisters itself, and touches nothing else", async () => {
  await init();
  const names = await readdir(join(folder, "public"));
  const before = new Map<string, string>();
  for (const name of names) before.set(name, await readFile(join(folder, "public", name), "utf8"));
  const { code, stdout } = await init("--remove", "--json");
  expect(code).toBe(0);
  const workers = ["agarose-sw.js", "agarose-sw.offline.js", "agarose-sw.encryption.js", "agarose-sw.dev.js"];
  expect(JSON.parse(stdout.toString())).toEqual({
    files: workers.map((name) => ({ path: join(folder, "public", name), outcome: "written" })),
  });
  expect(await readdir(join(folder, "public"))).toEqual(names);
  for (const name of names) {
    const text = await readFile(join(folder, "public", name), "utf8");
    if (workers.includes(name)) expect(text).toContain("unregister()");
    else expect(text).toBe(before.get(name));
  }
});

test("a client configuration that is there is kept, unless it is forced", async () => {
  await mkdir(join(folder, "public"));
  await writeFile(join(folder, "public/agarose.json"), "{}");
  const kept = await init("--json");
  expect(JSON.parse(kept.stdout.toString()).files).toContainEqual({
    path: join(folder, "public/agarose.json"),
    outcome: "kept",
  });
  expect(await readFile(join(folder, "public/agarose.json"), "utf8")).toBe("{}");
  await init("--force");
  expect(await readFile(join(folder, "public/agarose.json"), "utf8")).toContain("https://fra.test");
});

test("updates the public keys of a client configuration that it keeps, and no other field", async () => {
  await mkdir(join(folder, "public"));
  const path = join(folder, "public/agarose.json");
  const own = { prefix: "/ec/", pops: [{ name: "own", url: "https://own.test" }], delta: 3, unsigned: true };
  await writeFile(path, JSON.stringify(own));
  const { unsigned: _unsigned, ...others } = own;
  for (const outcome of ["updated", "kept"]) {
    const { stdout } = await init("--json");
    expect(JSON.parse(stdout.toString()).files).toContainEqual({ path, outcome });
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ ...others, publicKeys: CONFIG.publicKeys });
  }
});

test("in unsigned mode the client configuration says so", async () => {
  const { publicKeys: _keys, signing: _signing, ...config } = CONFIG;
  await writeFile(configPath, JSON.stringify({ ...config, unsigned: true }));
  expect((await init()).code).toBe(0);
  expect(JSON.parse(await readFile(join(folder, "public/agarose.json"), "utf8"))).toMatchObject({ unsigned: true });
});

test("another prefix is in the call that registers", async () => {
  const { stdout } = await init("--prefix", "/media/");
  expect(stdout.toString()).toContain('await register({ prefix: "/media/" });');
});

test("the command line's own configuration is not written over", async () => {
  const { code, stderr } = await runAgarose(["init", folder, "--config", configPath, "--force"]);
  expect(code).toBe(2);
  expect(stderr).toContain("is the configuration of the command line");
  expect(JSON.parse(await readFile(configPath, "utf8"))).toEqual(CONFIG);
});

test("a prefix without slashes is refused as bad usage", async () => {
  const { code, stderr } = await init("--prefix", "media");
  expect(code).toBe(2);
  expect(stderr).toContain("--prefix media");
});
