/** Runs jobs of `load-generator.ts` in its process. */
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Job, JobResult } from "./load-generator.ts";

/** Starts the process. */
export function startGenerator(): ChildProcess {
  return fork(fileURLToPath(new URL("load-generator.ts", import.meta.url)));
}

/** Resolves to what the generator measured. Rejects when an answer was not 200. One job at a time. */
export function runJob(generator: ChildProcess, job: Job): Promise<JobResult> {
  return new Promise((resolve, reject) => {
    generator.once("message", (result: JobResult | { error: string }) => {
      if ("error" in result) reject(new Error(result.error));
      else resolve(result);
    });
    generator.send(job);
  });
}
