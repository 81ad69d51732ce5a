/**
 * Our codec as calls to time, in any runtime: the kernel alone (blocks that lie in the staging area), a whole call
 * (with all copies and the inversion of the matrix) and a whole call whose loss pattern was seen before.
 */
import { createCodec, type Engine, type KernelName, type LoadedCodec } from "../js/codec.ts";
import { javascriptCodec } from "../js/javascript-engine.ts";
import { createWasmEngine } from "../js/wasm-engine.ts";
import { rowsOf, shardBytes, shardsOf, type Work } from "./subject.ts";

export interface Call {
  readonly implementation: string;
  run(): void;
}

/** As in the engine: what one call of the kernel works on. */
const BLOCK_BYTES = 16 * 1024;
const SLACK_BYTES = 64;

/** All calls for one build, or for the JavaScript engine when there is no module. Throws when a result is wrong. */
export function callsFor(kernel: KernelName, work: Work, module?: WebAssembly.Module): Call[] {
  const name = `agarose ${kernel}`;
  if (!module) return [{ implementation: name, run: wholeCall(javascriptCodec(), work) }];
  const engine = createWasmEngine(new WebAssembly.Instance(module, {}));
  return [
    { implementation: `${name} kernel`, run: kernelCall(new WebAssembly.Instance(module, {}), work) },
    { implementation: name, run: uncachedCall(engine, work) },
    { implementation: `${name}, pattern known`, run: wholeCall(createCodec(engine), work) },
  ];
}

function wholeCall(codec: LoadedCodec, work: Work): () => void {
  const { present, wanted } = rowsOf(work);
  const { inputs, expected, outputs } = buffersFor(work);
  const shards = present.map((index, i) => ({ index, bytes: inputs[i]! }));
  const run =
    work.op === "encode"
      ? () => void codec.encode(inputs, wanted, outputs)
      : () => void codec.reconstruct(work.k, shards, wanted, outputs);
  run();
  checkOutputs(expected, outputs);
  return run;
}

function uncachedCall(engine: Engine, work: Work): () => void {
  const { present, wanted } = rowsOf(work);
  const { inputs, expected, outputs } = buffersFor(work);
  const rows = [Uint8Array.from(present), Uint8Array.from(wanted)] as const;
  const run = () => engine.apply(engine.matrix(...rows), inputs, outputs);
  run();
  checkOutputs(expected, outputs);
  return run;
}

function kernelCall(instance: WebAssembly.Instance, work: Work): () => void {
  const wasm = instance.exports as unknown as {
    memory: WebAssembly.Memory;
    stagingAt(): number;
    solve(k: number, wanted: number): number;
    prepare(k: number, rows: number): number;
    apply(stride: number, length: number): number;
  };
  const { present, wanted } = rowsOf(work);
  const stride = BLOCK_BYTES + SLACK_BYTES;
  new Uint8Array(wasm.memory.buffer).set([...present, ...wanted], wasm.stagingAt());
  wasm.solve(work.k, wanted.length);
  wasm.prepare(work.k, wanted.length);
  shardsOf({ ...work, bytes: BLOCK_BYTES * work.k }).forEach((bytes, i) => {
    new Uint8Array(wasm.memory.buffer).set(bytes, wasm.stagingAt() + i * stride);
  });
  const bytes = shardBytes(work);
  return () => {
    for (let start = 0; start < bytes; start += BLOCK_BYTES) wasm.apply(stride, Math.min(BLOCK_BYTES, bytes - start));
  };
}

interface Buffers {
  readonly work: Work;
  readonly inputs: Uint8Array[];
  readonly expected: Uint8Array[];
  readonly outputs: Uint8Array[];
}

/** Shared by all calls on one piece of work: at 40 MiB a set for each would not fit in a service worker. */
let buffers: Buffers | undefined;

/** Inputs for the work and what must come out: by the JavaScript engine, which shares no code with the others. */
function buffersFor(work: Work): Buffers {
  if (buffers === undefined || JSON.stringify(buffers.work) !== JSON.stringify(work)) {
    const { present, wanted } = rowsOf(work);
    const data = shardsOf(work);
    const stripe = [...data, ...javascriptCodec().encode(data, wantedParity(work))];
    const inputs = present.map((index) => stripe[index]!);
    const expected = wanted.map((index) => stripe[index]!);
    buffers = { work, inputs, expected, outputs: expected.map((bytes) => new Uint8Array(bytes.length)) };
  }
  for (const output of buffers.outputs) output.fill(0);
  return buffers;
}

function wantedParity(work: Work): number[] {
  return Array.from({ length: work.m }, (_, i) => work.k + i);
}

function checkOutputs(expected: readonly Uint8Array[], outputs: readonly Uint8Array[]): void {
  const wrong = outputs.findIndex((bytes, row) => !equal(bytes, expected[row]!));
  if (wrong >= 0) throw new Error(`row ${wrong} came out wrong: the figures would be of a broken build`);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}
