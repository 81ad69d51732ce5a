/** Chooses a build, instantiates it once, and falls back to plain JavaScript where WebAssembly is refused. */
import { createCodec, type KernelName, type LoadedCodec } from "./codec.ts";
import { codecError } from "./error.ts";
import { relaxedSimdSupported, simdSupported, withPlainSwizzle } from "./features.ts";
import { javascriptCodec } from "./javascript-engine.ts";
import { createWasmEngine } from "./wasm-engine.ts";

/** One build: compiled (workerd refuses anything else) or as bytes. */
export type CodecSource = WebAssembly.Module | BufferSource;

/** Builds to choose from; the fastest that the runtime supports is taken. */
export interface CodecSources {
  readonly relaxed?: CodecSource;
  readonly simd?: CodecSource;
  readonly scalar?: CodecSource;
}

/** Missing from the types of Workers, because workerd refuses to compile at run time. */
interface Compiler {
  compile(bytes: Uint8Array): Promise<WebAssembly.Module>;
}

const loaded = new WeakMap<object, Promise<LoadedCodec>>();

/**
 * Instantiates the codec; memoised per source. The bytes of the relaxed build run wherever there is SIMD: where relaxed
 * SIMD is missing they are changed to plain swizzles. Where the runtime lacks what the source needs, or a Content
 * Security Policy forbids WebAssembly, the codec is the JavaScript one (see `kernel`). Throws CONFIG_INVALID without a
 * source, or when the bytes are no WebAssembly at all.
 */
export function loadCodec(source?: CodecSource | CodecSources): Promise<LoadedCodec> {
  if (source === undefined) return Promise.reject(noSource());
  const chosen = isSource(source) ? source : chooseBuild(source);
  if (chosen === undefined) return Promise.resolve(javascriptCodec());
  let codec = loaded.get(chosen);
  if (codec === undefined) {
    codec = instantiate(chosen);
    loaded.set(chosen, codec);
  }
  return codec;
}

/** Whether this runtime can run the build of that name. */
export function kernelSupported(name: KernelName): boolean {
  if (name === "relaxed") return relaxedSimdSupported();
  if (name === "simd") return simdSupported();
  return name === "javascript" || typeof WebAssembly !== "undefined";
}

function chooseBuild({ relaxed, simd, scalar }: CodecSources): CodecSource | undefined {
  if (relaxed && relaxedSimdSupported()) return relaxed;
  if (simdSupported()) {
    if (simd) return simd;
    if (relaxed && !isModule(relaxed)) return relaxed;
  }
  return scalar;
}

async function instantiate(source: CodecSource): Promise<LoadedCodec> {
  const bytes = isModule(source) ? undefined : checkedBytes(source as BufferSource);
  try {
    if (bytes === undefined) return await fromModule(source as WebAssembly.Module);
    const runnable = relaxedSimdSupported() ? bytes : withPlainSwizzle(bytes);
    return await fromModule(await (WebAssembly as unknown as Compiler).compile(runnable));
  } catch {
    // Refused by a policy, or an instruction is unknown here. Either way the same bytes come out of JavaScript, slower.
    return javascriptCodec();
  }
}

async function fromModule(module: WebAssembly.Module): Promise<LoadedCodec> {
  const engine = createWasmEngine(await WebAssembly.instantiate(module, {}));
  const isChanged = engine.kernel === "relaxed" && !relaxedSimdSupported();
  return createCodec(isChanged ? { ...engine, kernel: "simd" } : engine);
}

function isSource(source: CodecSource | CodecSources): source is CodecSource {
  return source instanceof ArrayBuffer || ArrayBuffer.isView(source) || isModule(source as CodecSource);
}

function isModule(source: CodecSource): source is WebAssembly.Module {
  return typeof WebAssembly !== "undefined" && source instanceof WebAssembly.Module;
}

/** V8 compiles from arrays, not from every kind of view. */
function checkedBytes(source: BufferSource): Uint8Array {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const isWasm = bytes[0] === 0 && bytes[1] === 0x61 && bytes[2] === 0x73 && bytes[3] === 0x6d;
  if (isWasm) return bytes;
  throw codecError("CONFIG_INVALID", `the codec's source (${bytes.length} bytes) is not a WebAssembly module`, {
    bytes: bytes.length,
  });
}

function noSource(): Error {
  return codecError(
    "CONFIG_INVALID",
    "loadCodec needs a source outside Node and Workers: pass the bytes of @agarose/ec-wasm/relaxed.wasm, or bundle with " +
      "the export condition `workerd`",
  );
}
