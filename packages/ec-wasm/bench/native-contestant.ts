/** Native codecs on one thread, each a child process that answers one measurement a line. */
import { execFile, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Unavailable, type Contestant, type Subject, type Work } from "./subject.ts";

const run = promisify(execFile);
const NATIVE = fileURLToPath(new URL("../native/", import.meta.url));
const TARGET = fileURLToPath(new URL("../target/", import.meta.url));

/**
 * klauspost/reedsolomon. AVX2 is the like of our kernel on vectors twice as wide; default takes GFNI where there is.
 */
export function klauspost(): Contestant {
  return nativeContestant("klauspost", ["avx2", "default"], "Go", ["go", "build", "-o", "BINARY", "."]);
}

/** Intel's ISA-L. SSE is the like of our kernel, vectors of the same width; default takes the best there is. */
export function isal(): Contestant {
  const build = ["cc", "-O2", "-o", "BINARY", "isal/bench.c", "-lisal"];
  return nativeContestant("isa-l", ["sse", "default"], "a C compiler and libisal", build);
}

/** `build` is the command that makes the program, with BINARY for where it goes. */
function nativeContestant(
  name: string,
  variants: readonly string[],
  needs: string,
  build: readonly string[],
): Contestant {
  let child: Child | undefined;

  async function start(): Promise<Child> {
    const binary = `${TARGET}bench-${name}`;
    await mkdir(TARGET, { recursive: true });
    const [command, ...flags] = build.map((word) => (word === "BINARY" ? binary : word));
    await run(command!, flags, { cwd: NATIVE }).catch((error) => {
      throw new Unavailable(`needs ${needs}: ${String(error).split("\n")[0]}`, { cause: error });
    });
    return startChild(binary);
  }

  return {
    name,
    async prepare(work) {
      child ??= await start();
      return variants.map((variant) => subject(child!, name, variant, work));
    },
    async close() {
      child?.end();
    },
  };
}

function subject(child: Child, name: string, variant: string, work: Work): Subject {
  const { op, k, m, bytes, lost } = work;
  return {
    implementation: `${name} ${variant}`,
    runtime: "native",
    measure: async (iterations) => Number(await child.ask([variant, op, k, m, bytes, lost, iterations].join(" "))),
  };
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
