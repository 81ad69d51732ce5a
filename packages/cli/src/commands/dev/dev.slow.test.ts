/** A local world ends with whatever started it. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const CLI = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../../..", import.meta.url));
const ARGUMENTS = ["dev", "--json", "--no-demo", "--no-samples", "--cron", "0"];
const END_MS_MAX = 60_000;

let folder: string;
let output: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-dev-test-"));
  output = join(folder, "line.json");
});

afterEach(() => rm(folder, { recursive: true }));

interface WorldLine {
  readonly config: string;
  readonly pid: number;
}

/** Waits for the line of `agarose dev --json`, which goes to a file, because a pipe would end with its starter. */
async function worldLine(starter: ChildProcess): Promise<WorldLine> {
  while (starter.exitCode === null) {
    const text = await readFile(output, "utf8").catch(() => "");
    if (text.endsWith("\n")) return JSON.parse(text) as WorldLine;
    await pause();
  }
  throw new Error(`the starter ended with ${starter.exitCode} before the world was up`);
}

function start(command: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const script = `"$@" > ${output} 2> ${join(folder, "errors")}; exit $?`;
  // The shell stays, because a command follows, and is the starter that is killed.
  return spawn("/bin/sh", ["-c", script, "sh", ...command], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], TMPDIR: folder, ...env },
    stdio: "ignore",
  });
}

describe.skipIf(process.platform !== "linux")("when its starter is killed with SIGKILL", () => {
  test.each([
    ["a shell", [process.execPath, CLI, ...ARGUMENTS], (_dev: number, starter: number) => starter],
    ["npx", ["npx", "agarose", ...ARGUMENTS], (dev: number) => npmAbove(dev)],
  ])("node, workerd and the temporary folder are gone: %s", async (_name, command, starterOf) => {
    const starter = start(command);
    const { config, pid } = await worldLine(starter);
    const children = await childrenOf(pid);
    expect((await Promise.all(children.map(titleOf))).join()).toContain("workerd");
    expect(existsSync(config)).toBe(true);
    process.kill(await starterOf(pid, starter.pid!), "SIGKILL");
    await waitUntil(() => [pid, ...children].every(isGone));
    expect(existsSync(dirname(config))).toBe(false);
    expect((await readdir(folder)).filter((name) => /^(agarose|miniflare)-/.test(name))).toEqual([]);
  });

  test("--background keeps it until it is stopped itself", async () => {
    const starter = start([process.execPath, CLI, ...ARGUMENTS, "--background"]);
    const { pid } = await worldLine(starter);
    starter.kill("SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(isGone(pid)).toBe(false);
    process.kill(pid, "SIGTERM");
    await waitUntil(() => isGone(pid));
  });
});

/** The npm process above `pid`. */
async function npmAbove(pid: number): Promise<number> {
  for (let at = pid; at > 1; at = await parentOf(at)) if ((await titleOf(at)).startsWith("npm")) return at;
  throw new Error("no npm above");
}

async function childrenOf(pid: number): Promise<number[]> {
  const all = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(all.map((candidate) => parentOf(candidate).catch(() => 0)));
  return all.filter((_, index) => parents[index] === pid);
}

async function parentOf(pid: number): Promise<number> {
  return Number(/\) \S (\d+)/.exec(await readFile(`/proc/${pid}/stat`, "utf8"))![1]);
}

async function titleOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/comm`, "utf8");
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

async function waitUntil(isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + END_MS_MAX;
  while (!isSo()) {
    if (Date.now() > endMs) throw new Error(`not so after ${END_MS_MAX} ms`);
    await pause();
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 100));
}
