/**
 * Contestants that run in this Node process: our builds, the crate as anyone would build it, and an npm package of it.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { BUILDS, readBuild } from "../js/node.ts";
import { kernelSupported } from "../js/load.ts";
import { callsFor } from "./ours.ts";
import { range, rowsOf, shardBytes, shardsOf, timed, Unavailable, type Contestant } from "./subject.ts";

const run = promisify(execFile);
const RUNTIME = `node ${process.versions.node}`;

export function oursInNode(): Contestant {
  return {
    name: "agarose",
    async prepare(work) {
      const calls = callsFor("javascript", work);
      for (const name of BUILDS.filter(kernelSupported)) {
        calls.push(...callsFor(name, work, new WebAssembly.Module(await readBuild(name))));
      }
      return calls.map((call) => timed(call.implementation, RUNTIME, call.run));
    },
    async close() {},
  };
}

/** The crate with its own field, built by cargo on first use. Shards lie in its memory already: no copies are timed. */
export function crateInNode(): Contestant {
  const name = "reed-solomon-erasure wasm";
  let module: WebAssembly.Module | undefined;
  return {
    name,
    async prepare(work) {
      module ??= new WebAssembly.Module(await buildReference());
      const wasm = new WebAssembly.Instance(module, {}).exports as unknown as Reference;
      const stripe = wasm.stripe(work.k, work.m, shardBytes(work));
      const data = shardsOf(work);
      data.forEach((bytes, i) => new Uint8Array(wasm.memory.buffer).set(bytes, wasm.shard(stripe, i)));
      wasm.encode(stripe);
      return [
        timed(name, RUNTIME, () => {
          if (work.op === "encode") wasm.encode(stripe);
          else wasm.reconstruct(stripe, work.lost);
        }),
      ];
    },
    async close() {},
  };
}

interface Reference {
  readonly memory: WebAssembly.Memory;
  stripe(k: number, m: number, shardBytes: number): number;
  shard(stripe: number, index: number): number;
  encode(stripe: number): void;
  reconstruct(stripe: number, lost: number): void;
}

/** As wasm-pack would do it, with the wasm-opt of this workspace. */
async function buildReference(): Promise<Uint8Array<ArrayBuffer>> {
  const crate = fileURLToPath(new URL("reference/", import.meta.url));
  const target = fileURLToPath(new URL("../target/reference", import.meta.url));
  const wasmOpt = fileURLToPath(new URL("../../../node_modules/.bin/wasm-opt", import.meta.url));
  const built = `${target}/wasm32-unknown-unknown/release/reference.wasm`;
  try {
    await run("cargo", ["build", "--release", "--target", "wasm32-unknown-unknown", "--target-dir", target], {
      cwd: crate,
    });
    await run(wasmOpt, ["--all-features", "-O3", built, "-o", `${target}/reference.wasm`]);
  } catch (error) {
    throw new Unavailable(`needs cargo and wasm-opt: ${String(error).split("\n")[0]}`, { cause: error });
  }
  return Uint8Array.from(await readFile(`${target}/reference.wasm`));
}

/** An installable WASM build of an older version of the crate, called as its readme says. */
export function subspaceInNode(): Contestant {
  const name = "@subspace/reed-solomon-erasure.wasm";
  return {
    name,
    async prepare(work) {
      const codec = await loadSubspace(name);
      const stripe = new Uint8Array((work.k + work.m) * shardBytes(work));
      shardsOf(work).forEach((bytes, i) => stripe.set(bytes, i * bytes.length));
      codec.encode(stripe, work.k, work.m);
      const { wanted } = rowsOf(work);
      const available = range(0, work.k + work.m).map((index) => !wanted.includes(index));
      return [
        timed(name, RUNTIME, () => {
          const status =
            work.op === "encode"
              ? codec.encode(stripe, work.k, work.m)
              : codec.reconstruct(stripe, work.k, work.m, available);
          if (status !== 0) throw new Error(`${name} returned ${status}`);
        }),
      ];
    },
    async close() {},
  };
}

interface Subspace {
  encode(shards: Uint8Array, k: number, m: number): number;
  reconstruct(shards: Uint8Array, k: number, m: number, available: boolean[]): number;
}

async function loadSubspace(name: string): Promise<Subspace> {
  const require = createRequire(import.meta.url);
  let path: string;
  try {
    path = require.resolve(name);
  } catch (error) {
    throw new Unavailable("is not installed", { cause: error });
  }
  const bytes = await readFile(path.replace(/index\.js$/, "reed_solomon_erasure_bg.wasm"));
  const { ReedSolomonErasure } = require(path) as { ReedSolomonErasure: { fromBytes(bytes: Uint8Array): Subspace } };
  return ReedSolomonErasure.fromBytes(bytes);
}
