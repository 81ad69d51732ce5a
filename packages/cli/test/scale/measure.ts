/** Runs a command as its own process, and says how long it took and the most memory it had. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const AGAROSE = fileURLToPath(new URL("../../bin/agarose.js", import.meta.url));

export interface Measured {
  readonly code: number | null;
  readonly seconds: number;
  /** The most resident memory, in MiB. */
  readonly peakMiB: number;
  /** Lines of stdout, and the last of them. */
  readonly lines: number;
  readonly last: string;
  /** The end of stderr. */
  readonly problems: string;
}

/** Resolves when the process has ended. It never rejects for an exit code. */
export async function measure(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Measured> {
  const started = performance.now();
  // Progress goes to stderr, a line for some objects.
  const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let problems = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (problems = `${problems}${text}`.slice(-500)));
  let lines = 0;
  let last = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines += text.split("\n").length - 1;
    last = text.trimEnd().split("\n").at(-1)!;
  });
  let peakKilobytes = 0;
  const look = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      peakKilobytes = Math.max(peakKilobytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    } catch {
      // It has ended.
    }
  }, 100);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  clearInterval(look);
  const seconds = (performance.now() - started) / 1000;
  return { code, seconds, peakMiB: Math.round(peakKilobytes / 1024), lines, last, problems };
}
