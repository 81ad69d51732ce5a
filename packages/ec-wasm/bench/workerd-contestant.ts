/** Our codec in workerd, timed from outside because a Worker's clock stops while it computes. */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

import { readBuild } from "../js/node.ts";
import type { RemoteRequest } from "./remote-calls.ts";
import { Unavailable, type Contestant, type Subject, type Work } from "./subject.ts";

/** The time of an empty request, the fastest of a few, is subtracted; more calls make it negligible. */
const CALLS_PER_ITERATION = 8;
const EMPTY_REQUESTS = 20;

interface Workerd {
  readonly runtime: string;
  ask(request: RemoteRequest): Promise<string[]>;
  dispose(): Promise<void>;
}

export function oursInWorkerd(): Contestant {
  let workerd: Workerd | undefined;
  return {
    name: "agarose in workerd",
    async prepare(work) {
      workerd ??= await startWorkerd();
      const names = await workerd.ask({ work });
      let emptyMs = Infinity;
      for (let i = 0; i < EMPTY_REQUESTS; i++) emptyMs = Math.min(emptyMs, await elapsedMs(workerd, { work }));
      return names.map((implementation) => subject(workerd!, work, implementation, emptyMs));
    },
    async close() {
      await workerd?.dispose();
    },
  };
}

function subject(workerd: Workerd, work: Work, implementation: string, emptyMs: number): Subject {
  return {
    implementation,
    runtime: workerd.runtime,
    async measure(iterations) {
      const calls = iterations * CALLS_PER_ITERATION;
      const callsMs = await elapsedMs(workerd, { work, implementation, iterations: calls });
      return ((callsMs - emptyMs) * 1000) / calls;
    },
  };
}

async function elapsedMs(workerd: Workerd, request: RemoteRequest): Promise<number> {
  const start = performance.now();
  await workerd.ask(request);
  return performance.now() - start;
}

async function startWorkerd(): Promise<Workerd> {
  const [{ Miniflare }, { build }] = await Promise.all([import("miniflare"), import("esbuild")]).catch((error) => {
    throw new Unavailable("needs miniflare and esbuild", { cause: error });
  });
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL(`workerd.entry${extname(import.meta.url)}`, import.meta.url))],
    bundle: true,
    format: "esm",
    write: false,
    external: ["*.wasm"],
  });
  const main = { type: "ESModule" as const, path: "main.js", contents: bundle.outputFiles[0]!.text };
  const miniflare = new Miniflare({
    compatibilityDate: "2026-07-01",
    modules: [main, await moduleOf("relaxed"), await moduleOf("simd")],
  });
  await miniflare.ready.catch((error) => {
    throw new Unavailable(`does not start: ${String(error).split("\n")[0]}`, { cause: error });
  });
  return {
    runtime: "workerd",
    async ask(request) {
      const response = await miniflare.dispatchFetch("http://bench/", {
        method: "POST",
        body: JSON.stringify(request),
      });
      if (!response.ok) throw new Error(`workerd answered ${response.status}: ${await response.text()}`);
      return (await response.json()) as string[];
    },
    dispose: () => miniflare.dispose(),
  };
}

async function moduleOf(name: "relaxed" | "simd") {
  return { type: "CompiledWasm" as const, path: `${name}.wasm`, contents: await readBuild(name) };
}
