/** The model file: streamed, so that its tensor table appears after the first bytes and fills as the tensors arrive. */
import { MODEL } from "../../samples/index.ts";
import { byId, h, table } from "../page/dom.ts";
import { bytes, count, ms } from "../page/format.ts";
import { readObject, type Progress } from "../state/read-object.ts";
import type { ReadLog } from "../state/reads.ts";
import { parseTensors, type Tensor } from "./safetensors.ts";

export function startModel(log: ReadLog): void {
  const button = h("button", { type: "button", class: "primary" }, "Load the model");
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Model loaded" });
  const note = h(
    "p",
    { class: "note", role: "status" },
    "A safetensors file in the shape of a vision transformer, with seeded random weights.",
  );
  const tensors = h("div", { class: "tensors scroll" });
  byId("model").replaceChildren(h("div", { class: "line" }, button, bar), note, tensors);

  button.addEventListener("click", () => void load());

  async function load(): Promise<void> {
    button.disabled = true;
    tensors.replaceChildren();
    bar.value = 0;
    const view = new ModelView(bar, note, tensors);
    try {
      await readObject(log, MODEL.key, (progress) => view.advance(progress));
      view.finish();
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      note.replaceChildren(h("strong", { class: "failure" }, code ?? "The read failed"), ` ${message}`);
    } finally {
      button.disabled = false;
      button.textContent = "Load it again";
    }
  }
}

class ModelView {
  readonly #bar: HTMLProgressElement;
  readonly #note: HTMLElement;
  readonly #place: HTMLElement;
  readonly #startMs = performance.now();
  #firstMs: number | undefined;
  #head = new Uint8Array();
  #tensors: { tensor: Tensor; row: HTMLElement }[] | undefined;
  #received = 0;

  constructor(bar: HTMLProgressElement, note: HTMLElement, place: HTMLElement) {
    this.#bar = bar;
    this.#note = note;
    this.#place = place;
  }

  advance({ received, total, part }: Progress): void {
    this.#firstMs ??= performance.now() - this.#startMs;
    this.#received = received;
    if (total !== undefined) this.#bar.value = received / total;
    if (!this.#tensors) this.#parse(part);
    this.#note.textContent = this.#sentence(total);
    for (const { tensor, row } of this.#tensors ?? []) {
      const here = Math.min(1, Math.max(0, (received - tensor.start) / (tensor.end - tensor.start)));
      row.style.setProperty("--here", String(here));
    }
  }

  finish(): void {
    this.#bar.value = 1;
    this.#note.textContent = this.#sentence(undefined);
  }

  #parse(part: Uint8Array): void {
    const grown = new Uint8Array(this.#head.length + part.length);
    grown.set(this.#head);
    grown.set(part, this.#head.length);
    this.#head = grown;
    const tensors = parseTensors(this.#head);
    if (!tensors) return;
    this.#tensors = tensors.map((tensor) => ({ tensor, row: tensorRow(tensor) }));
    const rows = this.#tensors.map(({ row }) => row);
    this.#place.replaceChildren(table(["tensor", "shape", "bytes"], h("tbody", {}, ...rows)));
  }

  #sentence(total: number | undefined): string {
    const time = performance.now() - this.#startMs;
    const rate = (8 * this.#received) / 1000 / time;
    const of = total === undefined ? bytes(this.#received) : `${bytes(this.#received)} of ${bytes(total)}`;
    const parameters = this.#tensors?.reduce((sum, { tensor }) => sum + tensor.shape.reduce((a, b) => a * b, 1), 0);
    const what =
      parameters === undefined
        ? ""
        : `${count(this.#tensors!.length, "tensor")}, ${(parameters / 1e6).toFixed(1)} M parameters. `;
    return `${what}First byte after ${ms(this.#firstMs ?? 0)}; ${of} after ${ms(time)}, ${rate.toFixed(0)} Mbit/s.`;
  }
}

function tensorRow({ name, dtype, shape, start, end }: Tensor): HTMLElement {
  return h(
    "tr",
    { style: "--here:0" },
    h("th", { scope: "row" }, name),
    h("td", {}, `${dtype} ${shape.join("×")}`),
    h("td", { class: "number" }, bytes(end - start)),
  );
}
