/**
 * `<agarose-overlay>`: the reads of a page as they happen, in its corner. Waterfall, sources, and the bytes that no
 * bucket had to send.
 *
 * `import { showOverlay } from "@agarose/sw/devtools"; showOverlay();`
 */
import { onRead } from "../page/on-read.ts";
import type { RequestEvent } from "../events/read-events.ts";
import { bytesText, described, savedBytes, summarized, type ReadSummary } from "./read-summary.ts";

const TAG = "agarose-overlay";
/** So many reads are shown, the newest first. */
const READS_MAX = 12;

const COLOURS = { edge: "#7fd18c", peer: "#6fb7e8", region: "#e0b060" } as const;
const STYLE = `
:host { position: fixed; right: 8px; bottom: 8px; z-index: 2147483647; width: min(420px, calc(100vw - 16px)); max-height: 60vh;
  overflow: auto; background: #16181dee; color: #e8e8e8; font: 11px/1.4 ui-monospace, monospace; border-radius: 6px; }
.head { display: flex; justify-content: space-between; padding: 6px 8px; position: sticky; top: 0; background: #16181d; }
button { all: unset; cursor: pointer; min-width: 24px; line-height: 24px; text-align: center; }
button:focus-visible { outline: 1px solid currentColor; }
ol { list-style: none; margin: 0; padding: 0 8px 8px; }
li { padding: 4px 0; border-top: 1px solid #333; overflow-wrap: anywhere; }
svg { display: block; width: 100%; }
.failed { color: #ff8f80; }`;

/** Puts an overlay into the page; the returned function takes it away. One that is there already is used again. */
export function showOverlay(parent: HTMLElement = document.body): () => void {
  if (!customElements.get(TAG)) customElements.define(TAG, overlayClass());
  const element = document.querySelector(TAG) ?? parent.appendChild(document.createElement(TAG));
  return () => element.remove();
}

/** Made when it is needed: this module may be loaded where there are no elements. */
function overlayClass(): CustomElementConstructor {
  return class AgaroseOverlay extends HTMLElement {
    readonly #reads = new Map<string, ReadSummary>();
    #stop: (() => void) | undefined;
    #savedBytes = 0;
    #bytes = 0;
    #isDrawn = true;
    readonly #totals = document.createElement("span");
    readonly #list = document.createElement("ol");

    connectedCallback(): void {
      // A style element would need the page's policy to allow it.
      const style = new CSSStyleSheet();
      style.replaceSync(STYLE);
      // Not a header element, which would be a second banner of the page.
      const head = document.createElement("div");
      head.className = "head";
      const close = document.createElement("button");
      close.textContent = "×";
      close.ariaLabel = "Close the list of reads";
      close.addEventListener("click", () => this.remove());
      head.append(this.#totals, close);
      const shadow = this.shadowRoot ?? this.attachShadow({ mode: "open" });
      shadow.adoptedStyleSheets = [style];
      shadow.replaceChildren(head, this.#list);
      this.role = "region";
      this.ariaLabel = "Reads through Agarose";
      this.#stop = onRead((event) => {
        const summary = summarized(this.#reads.get(event.read), event);
        if (!summary) return;
        this.#reads.set(event.read, summary);
        if (event.type === "read-end") {
          this.#savedBytes += savedBytes(summary);
          this.#bytes += event.bytes;
        }
        this.#drawSoon();
      });
      this.#draw();
    }

    disconnectedCallback(): void {
      this.#stop?.();
    }

    /** Events come by the hundred; the page is drawn once a frame. */
    #drawSoon(): void {
      if (!this.#isDrawn) return;
      this.#isDrawn = false;
      requestAnimationFrame(() => this.#draw());
    }

    #draw(): void {
      this.#isDrawn = true;
      for (const read of [...this.#reads.keys()].slice(0, -READS_MAX)) this.#reads.delete(read);
      this.#totals.textContent = `${bytesText(this.#bytes)} read, ${bytesText(this.#savedBytes)} without a bucket`;
      this.#list.replaceChildren(...[...this.#reads.values()].toReversed().map(item));
    }
  };
}

function item(summary: ReadSummary): HTMLElement {
  const element = document.createElement("li");
  const line = document.createElement("div");
  line.textContent = described(summary);
  if (summary.end?.error) line.className = "failed";
  element.append(line);
  if (summary.requests.length > 0) element.append(waterfall(summary));
  return element;
}

/** One bar for each request, from when it was asked to when it ended; what was not used is faint. */
function waterfall({ requests, end }: ReadSummary): SVGElement {
  const endMs = Math.max(1, end?.ms ?? 0, ...requests.map((request) => request.endMs ?? request.startMs));
  const svg = svgElement("svg", { viewBox: `0 0 ${endMs} ${requests.length * 4}`, preserveAspectRatio: "none" });
  svg.style.height = `${Math.min(80, requests.length * 4)}px`;
  svg.append(...requests.map((request, row) => bar(request, row, endMs)));
  return svg;
}

function bar(request: RequestEvent, row: number, nowMs: number): SVGElement {
  const { startMs, endMs = nowMs, kind, outcome, source, chunk, stripe, bytes } = request;
  const rect = svgElement("rect", {
    x: startMs,
    y: row * 4,
    width: Math.max(endMs - startMs, nowMs / 400),
    height: 3,
    fill: outcome === "failed" ? "#ff8f80" : COLOURS[kind],
    opacity: outcome === "used" || outcome === "pending" ? 1 : 0.45,
  });
  const title = svgElement("title", {});
  title.textContent = `${kind} ${source}, chunk ${chunk} of stripe ${stripe}, ${bytesText(bytes)}: ${outcome}`;
  rect.append(title);
  return rect;
}

function svgElement(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, String(value));
  return element;
}
