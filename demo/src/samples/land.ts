/** A map in one file, read by the real `pmtiles` in ranges. Drag it, use the arrow keys, or let it travel. */
import type { PMTiles } from "pmtiles";
import { MAP } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { count } from "../page/format.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

const SIDE = 256;
const ZOOM_MAX = 5;
const STEP = 128;
const STOPS = 6;
/** Rows of tiles of the journey, at the highest zoom level: polar ones are all water. */
const [NORTH, SOUTH] = [6, 22];

/** Draws the tab. Returns a function that draws the map, for when the tab becomes visible. */
export function startLand(ports: TrialPorts): () => void {
  const canvas = h("canvas", {
    class: "large",
    tabindex: 0,
    role: "img",
    "aria-label": "Map. Arrow keys move it, plus and minus zoom.",
  });
  const view = new View(canvas);
  const buttons = [
    ["−", "Zoom out", () => view.zoom(-1)],
    ["+", "Zoom in", () => view.zoom(1)],
    ["←", "West", () => view.move(-STEP, 0)],
    ["→", "East", () => view.move(STEP, 0)],
    ["↑", "North", () => view.move(0, -STEP)],
    ["↓", "South", () => view.move(0, STEP)],
  ] as const;
  const { element } = startTrial({
    ...ports,
    title: "Travel over the map",
    isOwn: (key) => key === MAP.key,
    async work(halfway) {
      view.forget();
      for (let i = 0; i < STOPS; i++) {
        if (i === STOPS / 2) await halfway();
        // Another journey each time: a block that was read is in memory for a while.
        const [x, y] = [Math.random() * 2 ** ZOOM_MAX, NORTH + Math.random() * (SOUTH - NORTH)];
        await view.go(ZOOM_MAX, x * SIDE, y * SIDE);
      }
      return { bytes: view.read.bytes, what: `${count(view.read.tiles, "tile")} at ${count(STOPS, "place")}` };
    },
  });
  const controls = buttons.map(([sign, name, onclick]) =>
    h("button", { type: "button", "aria-label": name, title: name, onclick: () => void onclick() }, sign),
  );
  byId("land").replaceChildren(
    element,
    h("figure", { class: "stage" }, canvas, h("figcaption", {}, h("strong", {}, MAP.title), ` ${MAP.licence}`)),
    h("div", { class: "line" }, ...controls),
  );
  return () => void view.draw();
}

async function openMap(): Promise<PMTiles> {
  const { PMTiles: Archive } = await import("pmtiles");
  return new Archive(`/ec/${MAP.key}`);
}

/** What the canvas shows, and the tiles that it has. */
class View {
  /** Of the tiles since `forget`. */
  read = { tiles: 0, bytes: 0 };
  readonly #canvas: HTMLCanvasElement;
  #map: Promise<PMTiles> | undefined;
  #tiles = new Map<string, Promise<ImageBitmap | undefined>>();
  #z = 2;
  /** The middle, in pixels of this zoom level. */
  #x = 2 * SIDE;
  #y = 1.5 * SIDE;
  #turn = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    let from: { x: number; y: number } | undefined;
    canvas.addEventListener("pointerdown", (event) => {
      from = event;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      void this.move(from.x - event.x, from.y - event.y);
      from = event;
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = undefined));
    canvas.addEventListener("keydown", (event) => {
      const steps: Record<string, readonly [number, number]> = {
        ArrowLeft: [-STEP, 0],
        ArrowRight: [STEP, 0],
        ArrowUp: [0, -STEP],
        ArrowDown: [0, STEP],
      };
      const step = steps[event.key];
      const zoom = { "+": 1, "-": -1 }[event.key];
      if (step) void this.move(...step);
      if (zoom) void this.zoom(zoom);
      if (step || zoom) event.preventDefault();
    });
  }

  /** Drops all tiles, so that they are read again. */
  forget(): void {
    this.#map = undefined;
    this.#tiles.clear();
    this.read = { tiles: 0, bytes: 0 };
  }

  move(x: number, y: number): Promise<void> {
    return this.go(this.#z, this.#x + x, this.#y + y);
  }

  zoom(by: number): Promise<void> {
    const z = Math.min(ZOOM_MAX, Math.max(0, this.#z + by));
    const factor = 2 ** (z - this.#z);
    return this.go(z, this.#x * factor, this.#y * factor);
  }

  /** Resolves when all tiles of the place are drawn. */
  go(z: number, x: number, y: number): Promise<void> {
    const world = SIDE * 2 ** z;
    this.#z = z;
    this.#x = ((x % world) + world) % world;
    this.#y = Math.min(world, Math.max(0, y));
    return this.draw();
  }

  async draw(): Promise<void> {
    const turn = ++this.#turn;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (width === 0) return;
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    const context = this.#canvas.getContext("2d")!;
    const [left, top] = [Math.round(this.#x - width / 2), Math.round(this.#y - height / 2)];
    const [z, across] = [this.#z, 2 ** this.#z];
    const places = [];
    for (
      let row = Math.max(0, Math.floor(top / SIDE));
      row <= Math.min(across - 1, Math.floor((top + height) / SIDE));
      row++
    ) {
      for (let column = Math.floor(left / SIDE); column <= Math.floor((left + width) / SIDE); column++) {
        places.push({ column, row });
      }
    }
    context.clearRect(0, 0, width, height);
    await Promise.all(
      places.map(async ({ column, row }) => {
        const tile = await this.#tile(z, ((column % across) + across) % across, row);
        if (tile && turn === this.#turn) context.drawImage(tile, column * SIDE - left, row * SIDE - top);
      }),
    );
  }

  #tile(z: number, x: number, y: number): Promise<ImageBitmap | undefined> {
    const name = `${z}/${x}/${y}`;
    let tile = this.#tiles.get(name);
    if (!tile) {
      tile = this.#load(z, x, y);
      // A tile that cannot be read now may be there later.
      tile.catch(() => this.#tiles.delete(name));
      this.#tiles.set(name, tile);
    }
    return tile;
  }

  async #load(z: number, x: number, y: number): Promise<ImageBitmap | undefined> {
    this.#map ??= openMap();
    const found = await (await this.#map).getZxy(z, x, y);
    if (!found) return undefined;
    this.read.tiles++;
    this.read.bytes += found.data.byteLength;
    return createImageBitmap(new Blob([found.data]));
  }
}
