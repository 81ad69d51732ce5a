/** The files of `@agarose/pop` for systemd and containers, as far as they can be checked on this machine. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildProgram } from "../../main.ts";

const POP = new URL("../../../../pop/", import.meta.url);
const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
const reason = hasAnalyze ? "" : " (skipped: systemd-analyze is not installed)";

let folder: string;
let unit: string;
let dockerfile: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-deploy-files-"));
  unit = await readFile(new URL("agarose-pop.service", POP), "utf8");
  dockerfile = await readFile(new URL("Dockerfile", POP), "utf8");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function verify(text: string): Promise<string> {
  const path = join(folder, "agarose-pop.service");
  // This machine's Node may be elsewhere.
  await writeFile(path, text.replace("/usr/bin/node", process.execPath));
  const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", path], { encoding: "utf8" });
  return stdout + stderr;
}

test.skipIf(!hasAnalyze)(`systemd accepts every line of the unit${reason}`, async () => {
  expect(await verify(unit)).toBe("");
  expect(await verify(unit.replace("NoNewPrivileges", "NoNewPrivilegs"))).toContain("Unknown key");
});

test("unit and container start the command line with options that it has", async () => {
  const program = await buildProgram(["pop"]);
  const known = program.commands[0]!.options.map(({ long }) => long);
  const started = [
    /^ExecStart=\S+ (.*)$/m.exec(unit)![1]!.split(" "),
    [...listOf("ENTRYPOINT").slice(1), ...listOf("CMD")],
  ];
  for (const [file, command, ...args] of started) {
    expect(file).toBe("node_modules/agarose/bin/agarose.js");
    expect(command).toBe("pop");
    const options = args.filter((arg) => arg.startsWith("--"));
    expect(options).not.toEqual([]);
    expect(options.filter((option) => !known.includes(option))).toEqual([]);
  }
  const manifest = JSON.parse(await readFile(new URL("../cli/package.json", POP), "utf8")) as { bin: object };
  expect(manifest.bin, "the file is there in the published package").toEqual({ agarose: "bin/agarose.js" });
});

test("the container copies files that its comment asks for, and its check of health is JavaScript", () => {
  const copied = [...dockerfile.matchAll(/^COPY (.*) \.\/$/gm)].flatMap(([, names]) => names!.split(" "));
  expect(copied).toEqual(["package.json", "package-lock.json", "agarose.config.json"]);
  const [, health] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile)!;
  const [, , script] = JSON.parse(health!) as string[];
  expect(() => new Function(script!)).not.toThrow();
});

function listOf(instruction: "ENTRYPOINT" | "CMD"): string[] {
  return JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, "m").exec(dockerfile)![1]!) as string[];
}
