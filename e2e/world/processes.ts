/** Looks at processes. */
import { execFileSync } from "node:child_process";

/** Returns the ids of the direct children of a process. */
export function childrenOf(pid: number): number[] {
  const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return children.trim().split(/\s+/).map(Number);
}

/** Returns whether a process exists. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
