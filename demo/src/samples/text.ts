/** A line of text, read by the real `transformers.js` with a model that comes through the service worker. */
import { TEXT } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { bytes } from "../page/format.ts";
import { registration } from "../state/service-worker.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

/** What the model takes: three colours of a line of this height. */
const [WIDTH, HEIGHT] = [640, 48];
const LINES = [
  "Any nine of twelve pieces are enough.",
  "No byte of this came from one place.",
  "A region may die meanwhile.",
];

/** The little that the page uses of the library. */
interface Tensor {
  readonly dims: readonly number[];
  readonly data: Float32Array;
}
interface Library {
  readonly AutoModel: {
    from_pretrained(name: string, options: object): Promise<(inputs: object) => Promise<Record<string, Tensor>>>;
  };
  readonly Tensor: new (type: string, data: Float32Array, dims: readonly number[]) => Tensor;
  readonly env: {
    allowLocalModels: boolean;
    allowRemoteModels: boolean;
    localModelPath: string;
    useBrowserCache: boolean;
    fetch: typeof globalThis.fetch;
    readonly backends: { readonly onnx: { readonly wasm: { wasmPaths: object } } };
  };
}

export function startText(ports: TrialPorts): void {
  const canvas = h("canvas", {
    class: "line-of-text",
    width: WIDTH,
    height: HEIGHT,
    role: "img",
    "aria-label": LINES[0]!,
  });
  const read = h("p", { class: "read", "aria-live": "polite" });
  let turn = 0;
  draw(canvas, LINES[0]!);
  const { element } = startTrial({
    ...ports,
    title: "Read the line",
    isOwn: (key) => key === TEXT.key || key === TEXT.characters,
    async work(halfway) {
      const line = LINES[turn++ % LINES.length]!;
      canvas.setAttribute("aria-label", line);
      draw(canvas, line);
      if (turn === 1) read.textContent = "npm gets the library and the model, once: some 50 MB.";
      const { AutoModel, Tensor, env } = await library();
      read.textContent = "The library loads the model.";
      let loaded = 0;
      const { fetch: resuming } = await registration().catch(() => globalThis);
      env.fetch = async (input, init) => {
        const response = await resuming(input, init);
        if (!response.ok || !String(input).endsWith(TEXT.key)) return response;
        const parts = new TransformStream<Uint8Array, Uint8Array>({
          async transform(part, controller) {
            if (loaded === 0) await halfway();
            loaded += part.length;
            controller.enqueue(part);
          },
        });
        return new Response(response.body!.pipeThrough(parts), response);
      };
      const model = await AutoModel.from_pretrained("ppocr", { dtype: "fp32" });
      const answer = await fetch(`/ec/${TEXT.characters}`);
      const characters = ["", ...(await answer.text()).split("\n").filter(Boolean), " "];
      const outputs = await model({ x: new Tensor("float32", pixelsOf(canvas), [1, 3, HEIGHT, WIDTH]) });
      read.textContent = `It reads: ${textOf(Object.values(outputs)[0]!, characters).trim()}`;
      return { bytes: loaded, what: `A model of ${bytes(loaded)} loaded and read the line` };
    },
  });
  byId("text").replaceChildren(
    element,
    h(
      "figure",
      { class: "stage" },
      canvas,
      read,
      h("figcaption", {}, h("strong", {}, "PP-OCRv4"), " PaddleOCR, Apache 2.0"),
    ),
  );
}

/** Has the page's host get the library and store the model, then imports the library. */
async function library(): Promise<Library> {
  const answer = await fetch("/library", { method: "POST" });
  if (!answer.ok) throw new Error(`npm did not get the library: ${await answer.text()}`);
  // As the host serves it: a path that Vite must leave alone.
  const path = "/library/transformers.min.js";
  const loaded = (await import(/* @vite-ignore */ path)) as Library;
  const runtime = "/library/ort-wasm-simd-threaded";
  const { env } = loaded;
  env.allowLocalModels = true;
  env.allowRemoteModels = false;
  env.localModelPath = "/ec/models/";
  env.useBrowserCache = false;
  env.backends.onnx.wasm.wasmPaths = { mjs: `${runtime}.mjs`, wasm: `${runtime}.wasm` };
  return loaded;
}

function draw(canvas: HTMLCanvasElement, line: string): void {
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = "white";
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = "black";
  context.font = "30px sans-serif";
  context.textBaseline = "middle";
  context.fillText(line, 10, HEIGHT / 2, WIDTH - 20);
}

/** Three planes of values from -1 to 1, as the model was trained. */
function pixelsOf(canvas: HTMLCanvasElement): Float32Array {
  const { data } = canvas.getContext("2d")!.getImageData(0, 0, WIDTH, HEIGHT);
  const pixels = WIDTH * HEIGHT;
  return Float32Array.from({ length: 3 * pixels }, (_, i) => {
    const [plane, pixel] = [Math.floor(i / pixels), i % pixels];
    return data[4 * pixel + plane]! / 127.5 - 1;
  });
}

/** The likeliest character of each place; one that repeats is one, and the first of all is none. */
function textOf({ dims, data }: Tensor, characters: readonly string[]): string {
  const count = dims.at(-1)!;
  let [text, before] = ["", 0];
  for (let start = 0; start < data.length; start += count) {
    let best = 0;
    for (let i = 1; i < count; i++) if (data[start + i]! > data[start + best]!) best = i;
    if (best !== before) text += characters[best] ?? "";
    before = best;
  }
  return text;
}
