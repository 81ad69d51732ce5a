/** klauspost/reedsolomon, native, one thread: a child process that answers one measurement a line. */
import { execFile, spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Unavailable } from "./subject.ts";
import type { Contestant, Subject, Work } from "./subject.ts";

const run = promisify(execFile);
/** AVX2 is the like of our kernel (the same algorithm on vectors twice as wide); default takes GFNI where there is. */
const VARIANTS = ["avx2", "default"];

export function klauspost(): Contestant {
  let child: Child | undefined;
  return {
    name: "klauspost",
    async prepare(work) {
      child ??= startChild(await buildNative());
      return VARIANTS.map((variant) => subject(child!, variant, work));
    },
    async close() {
      child?.end();
    },
  };
}

function subject(child: Child, variant: string, work: Work): Subject {
  return {
    implementation: `klauspost ${variant}`,
    runtime: "native",
    measure: async (iterations) => Number(await child.ask(JSON.stringify({ ...work, variant, iterations }))),
  };
}

async function buildNative(): Promise<string> {
  const binary = fileURLToPath(new URL("../target/native-bench", import.meta.url));
  try {
    await run("go", ["build", "-o", binary, "."], { cwd: fileURLToPath(new URL("../native/", import.meta.url)) });
  } catch (error) {
    throw new Unavailable(`needs Go: ${String(error).split("\n")[0]}`, { cause: error });
  }
  return binary;
}

interface Child {
  ask(line: string): Promise<string>;
  end(): void;
}

/** Answers come in the order of the questions. */
function startChild(binary: string): Child {
  const child: ChildProcessWithoutNullStreams = spawn(binary, ["bench"]);
  const waiting: PromiseWithResolvers<string>[] = [];
  const errors: string[] = [];
  child.stderr.on("data", (data) => errors.push(String(data)));
  child.on("exit", () =>
    waiting.forEach((answer) => answer.reject(new Error(`native bench ended: ${errors.join("")}`))),
  );
  createInterface(child.stdout).on("line", (line) => waiting.shift()?.resolve(line));
  return {
    ask(line) {
      const answer = Promise.withResolvers<string>();
      waiting.push(answer);
      child.stdin.write(`${line}\n`);
      return answer.promise;
    },
    end: () => child.stdin.end(),
  };
}
