#!/usr/bin/env node
/** Starts `npm create agarose`. */
import { existsSync } from "node:fs";

const NODE_NEEDED = [22, 19];
const [major, minor] = process.versions.node.split(".").map(Number);
if (major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1])) {
  // The repository has sources, the published package has JavaScript.
  const path = ["../src/main.ts", "../src/main.js"].find((file) => existsSync(new URL(file, import.meta.url)));
  const { main } = await import(path);
  process.exitCode = await main(process.argv.slice(2));
} else {
  const needed = NODE_NEEDED.join(".");
  console.error(`USAGE: create-agarose needs Node ${needed} or newer, this is ${process.version}`);
  process.exitCode = 2;
}
