/**
 * `agarose-upload.js`: `putObject` of pages without a bundler. The file is its own worker, which codes in WebAssembly.
 * Where a policy forbids the worker, the page codes.
 */
import { loadCodec } from "@agarose/ec-wasm";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";
import { codeBlob, type BlobCode, type CodedBlob } from "../upload/code-blob.ts";
import { uploadObject, type PutObjectOptions, type StoredObject, type UploadPorts } from "../upload/put-object.ts";
import { sendByXhr } from "../upload/send-chunk.ts";

const NAME = "agarose-upload";

/** The part of a worker's global scope that codes. */
interface CoderScope {
  readonly name?: string;
  postMessage(message: Answer): void;
  addEventListener(type: "message", listener: (event: { readonly data: Coding }) => void): void;
}

interface Coding {
  readonly blob: Blob;
  readonly code: BlobCode;
}

type Answer = { readonly bytes: number } | { readonly coded: CodedBlob } | { readonly problem: string };

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(text, (character) => character.charCodeAt(0));
const codec = (): ReturnType<typeof loadCodec> => loadCodec(bytesOf(relaxed));

const scope = globalThis as unknown as CoderScope;
if (scope.name === NAME && typeof (globalThis as { document?: unknown }).document === "undefined") {
  scope.addEventListener("message", ({ data: { blob, code } }) => {
    codec()
      .then((loaded) => codeBlob(blob, code, loaded, (bytes) => scope.postMessage({ bytes })))
      .then((coded) => scope.postMessage({ coded }))
      .catch((error: unknown) => scope.postMessage({ problem: String(error) }));
  });
}

const codeInWorker: UploadPorts["code"] = async (blob, code, onCoded, signal) => {
  let worker: Worker;
  try {
    worker = new Worker(import.meta.url, { type: "module", name: NAME });
  } catch {
    return codeBlob(blob, code, await codec(), onCoded);
  }
  try {
    const { promise, resolve, reject } = Promise.withResolvers<CodedBlob | undefined>();
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    worker.addEventListener("error", () => resolve(undefined));
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      if ("coded" in data) resolve(data.coded);
      else if ("problem" in data) reject(new Error(data.problem));
      else onCoded(data.bytes);
    });
    worker.postMessage({ blob, code });
    return (await promise) ?? (await codeBlob(blob, code, await codec(), onCoded));
  } finally {
    worker.terminate();
  }
};

/** As `putObject` of `@agarose/sw/upload`. */
export function putObject(key: string, blob: Blob, options: PutObjectOptions = {}): Promise<StoredObject> {
  const ports = { fetch: (...asked: Parameters<typeof fetch>) => fetch(...asked), send: sendByXhr, code: codeInWorker };
  return uploadObject(key, blob, options, ports);
}
