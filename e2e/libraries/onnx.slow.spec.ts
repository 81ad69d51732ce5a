/** `onnxruntime-web`, as it is, multiplies with a model of two stripes. Its runtime is an object too. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { unpacked } from "./unpacked.ts";
import { showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

/** Of the matrix in the model. */
const [ROWS, COLUMNS] = [1_024, 1_280];

const PACKAGE = ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"];

/** The little of the library that the test uses: it is not installed. */
interface Runtime {
  env: { wasm: { wasmPaths: string; numThreads: number } };
  Tensor: new (type: string, data: Float32Array, shape: readonly number[]) => object;
  InferenceSession: {
    create(url: string): Promise<{ run(inputs: object): Promise<{ product: { data: Float32Array } }> }>;
  };
}

const weightAt = (row: number, column: number): number => ((row * 7 + column * 3) % 11) - 5;
const inputAt = (row: number): number => (row % 5) - 2;

/** A field of a message in Protocol Buffers. */
function field(number: number, value: number | string | Uint8Array): Buffer {
  const varint = (rest: number): number[] => (rest < 128 ? [rest] : [(rest % 128) + 128, ...varint(rest >> 7)]);
  if (typeof value === "number") return Buffer.from([number << 3, ...varint(value)]);
  const bytes = Buffer.from(value as Uint8Array);
  return Buffer.concat([Buffer.from([(number << 3) + 2, ...varint(bytes.length)]), bytes]);
}
const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields);

/** A model with one operation: it multiplies a row with a matrix (ONNX 1.8). */
function model(): Buffer {
  const FLOAT = 1;
  const row = (name: string, length: number): Buffer => {
    const shape = message(field(1, field(1, 1)), field(1, field(1, length)));
    return message(field(1, name), field(2, field(1, message(field(1, FLOAT), field(2, shape)))));
  };
  const weights = Float32Array.from({ length: ROWS * COLUMNS }, (_, i) =>
    weightAt(Math.floor(i / COLUMNS), i % COLUMNS),
  );
  const matrix = [field(1, ROWS), field(1, COLUMNS), field(2, FLOAT), field(8, "matrix")];
  const graph = message(
    field(1, message(field(1, "row"), field(1, "matrix"), field(2, "product"), field(4, "MatMul"))),
    field(2, "graph"),
    field(5, message(...matrix, field(9, new Uint8Array(weights.buffer)))),
    field(11, row("row", ROWS)),
    field(12, row("product", COLUMNS)),
  );
  return message(field(1, 7), field(7, graph), field(8, field(2, 13)));
}

test("onnxruntime-web runs a model that it loads with its runtime", async ({ browser, world }) => {
  const { folder, missing } = await unpacked("onnxruntime-web", "1.30.0");
  test.skip(missing !== undefined, missing);
  const files: Record<string, Uint8Array> = { "onnx/model.onnx": model() };
  for (const file of PACKAGE) files[`onnx/${file}`] = await readFile(join(folder!, "dist", file));
  const input = Array.from({ length: ROWS }, (_, row) => inputAt(row));
  const product = await showSame(browser, world, files, (page) =>
    page.evaluate(async (row) => {
      const load = (url: string): Promise<Runtime> => import(url) as Promise<Runtime>;
      const { env, InferenceSession, Tensor } = await load("/ec/onnx/ort.wasm.min.mjs");
      env.wasm.wasmPaths = "/ec/onnx/";
      env.wasm.numThreads = 1;
      const session = await InferenceSession.create("/ec/onnx/model.onnx");
      const outputs = await session.run({ row: new Tensor("float32", Float32Array.from(row), [1, row.length]) });
      return Array.from(outputs.product.data);
    }, input),
  );
  const wanted = Array.from({ length: COLUMNS }, (_, column) =>
    input.reduce((sum, value, row) => sum + value * weightAt(row, column), 0),
  );
  expect(product).toEqual(wanted);
});
