/**
 * Runs a program of the user that hands out keys, a secret or a signature.
 *
 * Its arguments and what it prints may be secret, so no error has any of them. It has a time limit, and it ends with
 * this process.
 */
import { isatty } from "node:tty";
import { spawn } from "node:child_process";

interface UserCommandOptions {
  /** The bytes for the program's stdin. Default: nothing. */
  readonly input?: Uint8Array;
  /** It is ended after this time. Default: two minutes, which is enough for somebody to touch a key. */
  readonly limitMs?: number;
}

const LIMIT_MS_DEFAULT = 120_000;
const KILL_AFTER_MS = 2_000;
/** Keys, secrets and signatures have a few kilobytes at most. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/**
 * The program's output on stdout. Its output on stderr is shown on a terminal, where it may ask for something,
 * and nowhere else.
 *
 * @throws an Error that names the program, or an AbortError when this process is told to end.
 */
export async function runUserCommand(
  [program = "", ...args]: readonly string[],
  { input, limitMs = LIMIT_MS_DEFAULT }: UserCommandOptions = {},
): Promise<string> {
  const said = `command ${JSON.stringify(program)}`;
  const stderr = isatty(2) ? "inherit" : "ignore";
  const child = spawn(program, args, { stdio: [input ? "pipe" : "ignore", "pipe", stderr] });
  const parts: Buffer[] = [];
  let bytes = 0;
  const ended = Promise.withResolvers<string>();
  child.stdout!.on("data", (part: Buffer) => {
    parts.push(part);
    bytes += part.length;
    if (bytes > OUTPUT_BYTES_MAX) ended.reject(new Error(`${said} printed more than ${OUTPUT_BYTES_MAX} bytes`));
  });
  child.stdout!.on("error", () => {});
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  child.once("error", ({ code }: NodeJS.ErrnoException) => ended.reject(new Error(`${said} did not run: ${code}`)));
  child.once("close", (code) => {
    if (code === 0) ended.resolve(Buffer.concat(parts).toString());
    else ended.reject(new Error(`${said} ended with ${code ?? "a signal"}`));
  });
  const timer = setTimeout(() => ended.reject(new Error(`${said} did not end within ${limitMs} ms`)), limitMs);
  const onSignal = (): void => ended.reject(new DOMException("interrupted", "AbortError"));
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    return await ended.promise;
  } finally {
    clearTimeout(timer);
    process.removeListener("SIGINT", onSignal);
    process.removeListener("SIGTERM", onSignal);
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      child.kill();
      // A child of its own may keep the pipe open, which would hold this process.
      child.stdout!.destroy();
      setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS).unref();
      child.unref();
    }
  }
}
