/** Starts a PoP on Node in its own process, which a test may kill. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { PopOptions } from "../src/index.ts";
import { DiskValues } from "../src/platform/disk-values.ts";

const PROGRAM = fileURLToPath(new URL("pop-process.ts", import.meta.url));

/** A PoP in a process. */
export interface PopProcess {
  readonly url: string;
  readonly process: ChildProcess;
  runPeriod(): Promise<void>;
  /** Has the PoP end as at SIGTERM, and resolves when the process has ended. */
  end(graceMs: number): Promise<void>;
  /** Ends the process by SIGKILL. */
  kill(): Promise<void>;
}

/**
 * Opens the chunk cache of the PoP in `folder` beside it, while it writes nothing. It sees what was there at that
 * moment. The PoP finds a changed or removed value, and no new one, because it knows its names.
 */
export function valuesOnDisk(folder: string): Promise<DiskValues> {
  return DiskValues.open(join(folder, "chunks"), Number.MAX_SAFE_INTEGER);
}

/** Resolves when the PoP listens. Log lines go to `onLog`. */
export async function startPopProcess(options: PopOptions, onLog: (line: string) => void): Promise<PopProcess> {
  // POP_NODE: another Node than that of the tests, because the package supports older ones.
  const execPath = process.env["POP_NODE"] ?? process.execPath;
  const child = fork(PROGRAM, { silent: true, execPath, env: { ...process.env, NODE_OPTIONS: "" } });
  const lastLines: string[] = [];
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on("line", (line) => {
      lastLines.push(line);
      if (lastLines.length > 20) lastLines.shift();
      onLog(line);
    });
  }
  // All clients of a test have one address, unless it says otherwise.
  child.send({ ...options, variables: { FILL_CLIENTS_MIN: "1", ...options.variables } });
  const [{ url }] = (await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`the PoP ended with ${code}`))),
  ])) as [{ url: string }];
  let periods = 0;
  return {
    url,
    process: child,
    async runPeriod() {
      const id = ++periods;
      child.send(id);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onExit = (code: number | null, signal: string | null): void =>
        reject(new Error(`the PoP ended with ${code ?? signal}:\n${lastLines.join("\n")}`));
      const onMessage = (answer: { id: number; error?: string }): void => {
        if (answer.id !== id) return;
        if (answer.error === undefined) resolve();
        else reject(new Error(answer.error));
      };
      child.on("message", onMessage).once("exit", onExit);
      await promise.finally(() => child.off("message", onMessage).off("exit", onExit));
    },
    async end(graceMs) {
      const exited = once(child, "exit");
      child.send({ graceMs });
      await exited;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
