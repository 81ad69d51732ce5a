/** `agarose pop` as a process: how it starts, what it refuses, how it ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseConfig } from "@agarose/storage/config/config";
import { spawnAgarose } from "../../../test/world.ts";
import { parseAddress } from "../../ui/units.ts";
import { readVariables } from "./pop.ts";

const AGAROSE = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));
const REGIONS = JSON.stringify([{ name: "r0", url: "http://127.0.0.1:9/r0" }]);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pop-command-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const command = (...args: string[]): string[] => [
  "pop",
  "--data",
  join(folder, "data"),
  "--listen",
  "127.0.0.1:0",
  ...args,
];

test("it says where it listens, answers there, and ends with 0 at SIGTERM", async () => {
  const child = spawn(process.execPath, [AGAROSE, ...command("own", "--json")], {
    cwd: folder,
    env: { PATH: process.env["PATH"], REGIONS, UNSIGNED: "true" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  const started = JSON.parse(line) as { ok: boolean; pop: string; url: string };
  expect(started).toMatchObject({ ok: true, pop: "own" });
  const response = await fetch(`${started.url}/healthz`);
  expect(await response.json()).toEqual({ ok: true, pop: "own" });
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});

test.each([
  ["no name", [], { REGIONS }, "variable POP is not set"],
  ["a wrong variable", ["own"], { REGIONS, UNSIGNED: "true", POLICY: "best" }, 'POLICY is "best"'],
  ["no buckets", ["own"], {}, "REGIONS"],
  ["no address", ["own", "--listen", "8787"], { REGIONS }, "--listen 8787 is not an address"],
  ["no file of variables", ["own", "--vars", "nowhere.json"], { REGIONS }, "nowhere.json does not exist"],
  ["a configuration that is not there", ["own", "--config", "nowhere.json"], { REGIONS }, "nowhere.json"],
])("%s is refused", async (_name, args, env, message) => {
  const { code, stderr } = await spawnAgarose(command(...args), { cwd: folder, env: env as Record<string, string> });
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

describe("variables", () => {
  const sources = { config: undefined, file: undefined, environment: {}, name: undefined };

  test("come from the configuration, a file, the environment and the command line, the later the stronger", async () => {
    const config = parseConfig(
      JSON.stringify({
        code: { k: 1, m: 1 },
        regions: ["r0", "r1"].map((name) => ({
          name,
          provider: name,
          endpoint: "http://127.0.0.1:9",
          bucket: `bucket-${name}`,
          url: `http://127.0.0.1:9/${name}`,
        })),
      }),
      "agarose.config.json",
    );
    const file = join(folder, "vars.json");
    await writeFile(file, JSON.stringify({ POLICY: "agar", DELTA: "2", PRIVATE_PREFIXES: ["members/"] }));
    const environment = { POLICY: "exact", PATH: "/bin", POP: "own" };
    expect(await readVariables({ config, file, environment, name: "fra" })).toMatchObject({
      POP: "fra",
      POLICY: "exact",
      DELTA: "2",
      PRIVATE_PREFIXES: '["members/"]',
      REGIONS: expect.stringContaining("http://127.0.0.1:9/r1"),
    });
    expect(await readVariables({ ...sources, environment })).toEqual({ POLICY: "exact", POP: "own" });
  });

  test.each([
    ["no JSON", "{", "is not JSON"],
    ["a list", "[]", "is not a JSON object"],
    ["an unknown name", '{"PASSWORD": "hush"}', "has PASSWORD, which is not a variable"],
  ])("a file with %s is refused", async (_name, text, message) => {
    const file = join(folder, "vars.json");
    await writeFile(file, text);
    await expect(readVariables({ ...sources, file })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(message),
    });
  });

  test("addresses have a host, or mean every one", () => {
    expect(parseAddress("127.0.0.1:80")).toEqual({ host: "127.0.0.1", port: 80 });
    expect(parseAddress("[::1]:80")).toEqual({ host: "::1", port: 80 });
    expect(parseAddress(":8787")).toEqual({ host: "::", port: 8787 });
    expect(() => parseAddress("host:99999")).toThrow("not an address");
  });
});
