/** An older Node hands over to a newer one, over a channel that closes with it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));

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
