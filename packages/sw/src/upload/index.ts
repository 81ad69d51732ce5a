/**
 * Stores objects from a page, which needs no key: `putObject` codes them there, and sends the chunks to the regions.
 *
 * @module
 */
import type { Codec } from "@agarose/core";
import { once } from "@agarose/core/async";
import { javascriptCodec } from "@agarose/ec-wasm";
import { codeBlob } from "./code-blob.ts";
import { uploadObject, type PutObjectOptions, type StoredObject } from "./put-object.ts";
import { sendByXhr } from "./send-chunk.ts";

export type { PutObjectOptions, StoredObject, UploadMemory, UploadProgress } from "./put-object.ts";

/** Options of a bundled `putObject`. */
export interface BundledOptions extends PutObjectOptions {
  /**
   * Loads what codes the object.
   *
   * @defaultValue the coder in JavaScript, which needs no WebAssembly file to be served
   */
  readonly codec?: () => Promise<Pick<Codec, "encode">>;
}

/**
 * Stores a blob, a file for example, under `key`. Readers see it once this resolves. It codes the object where it is
 * called, so call it in a worker if the page must stay smooth; `agarose-upload.js` has one of its own.
 *
 * @throws FORBIDDEN, UPLOAD_REFUSED, STORE_FAILED when too few regions take their chunks, what the server throws, or
 * the reason of `signal`.
 */
export function putObject(key: string, blob: Blob, options: BundledOptions = {}): Promise<StoredObject> {
  const codec = once(options.codec ?? (async () => javascriptCodec()));
  return uploadObject(key, blob, options, {
    fetch: (url, init) => fetch(url, init),
    send: sendByXhr,
    code: async (file, code, onCoded) => codeBlob(file, code, await codec(), onCoded),
  });
}
