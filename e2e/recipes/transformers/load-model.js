import { AutoModel, env } from "@huggingface/transformers";
import { register } from "@agarose/sw";

const agarose = await register({ worker: "/agarose-sw.offline.js" });

env.allowLocalModels = true; // "local" means a path of the page's own origin
env.allowRemoteModels = false;
env.localModelPath = "/ec/models/";
env.useBrowserCache = false; // the worker keeps stripes; the library would keep complete files only
env.fetch = agarose.fetch;
const runtime = "/library/ort-wasm-simd-threaded"; // from the package onnxruntime-web
env.backends.onnx.wasm.wasmPaths = { mjs: `${runtime}.mjs`, wasm: `${runtime}.wasm` };

export const model = await AutoModel.from_pretrained("ppocr", { dtype: "fp32" });
