/** A map in one file, drawn by Leaflet and read by `pmtiles` in ranges. Drag it, use the keys, or let it travel. */
import type { Coords, DoneCallback, GridLayer, Map as LeafletMap, TileErrorEvent } from "leaflet";
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
  const place = h("div", {
    class: "large",
    role: "application",
    "aria-label": "Map. Arrow keys move it, plus and minus zoom.",
  });
  const where = h("span", { class: "note", "aria-live": "polite" });
  let land: Promise<Land> | undefined;
  const open = (): Promise<Land> => (land ??= Land.open(place, (text) => (where.textContent = text)));
  const buttons = [
    ["←", "West", -STEP, 0],
    ["→", "East", STEP, 0],
    ["↑", "North", 0, -STEP],
    ["↓", "South", 0, STEP],
  ] as const;
  const { element } = startTrial({
    ...ports,
    title: "Travel over the map",
    key: MAP.key,
    isOwn: (key) => key === MAP.key,
    work: async (halfway) => (await open()).travel(halfway),
  });
  const controls = buttons.map(([sign, name, x, y]) => {
    const onclick = (): void => void open().then((map) => map.move(x, y));
    return h("button", { type: "button", "aria-label": name, title: name, onclick }, sign);
  });
  byId("land").replaceChildren(
    element,
    h("figure", { class: "stage" }, place, h("figcaption", {}, h("strong", {}, MAP.title), ` ${MAP.licence}`)),
    h("div", { class: "line" }, ...controls, where),
  );
  return () => void open().then((map) => map.show());
}

/** A layer of raster tiles, and what it has read. */
type TileLayer = GridLayer & { readonly read: { tiles: number; bytes: number } };

class Land {
  readonly #map: LeafletMap;
  readonly #newLayer: () => TileLayer;
  #layer: TileLayer;

  private constructor(map: LeafletMap, newLayer: () => TileLayer) {
    this.#map = map;
    this.#newLayer = newLayer;
    this.#layer = newLayer().addTo(map);
  }

  /** Loads the libraries, and draws the map. `onMove` receives where it is, in words. */
  static async open(place: HTMLElement, onMove: (text: string) => void): Promise<Land> {
    const [leaflet, { PMTiles: Archive }] = await Promise.all([
      import("leaflet/dist/leaflet-src.esm.js"),
      import("pmtiles"),
      import("leaflet/dist/leaflet.css"),
    ]);
    class Tiles extends leaflet.GridLayer {
      readonly read = { tiles: 0, bytes: 0 };
      readonly #archive: PMTiles = new Archive(`/ec/${MAP.key}`);

      override createTile(coords: Coords, done: DoneCallback): HTMLElement {
        const tile = h("img", { alt: "" });
        void this.#load(coords, tile, done);
        return tile;
      }

      async #load({ x, y, z }: Coords, tile: HTMLImageElement, done: DoneCallback): Promise<void> {
        try {
          const found = await this.#archive.getZxy(z, x, y);
          if (found) this.#draw(tile, found.data);
          done(undefined, tile);
        } catch (error) {
          done(error as Error, tile);
        }
      }

      #draw(tile: HTMLImageElement, data: ArrayBuffer): void {
        this.read.tiles++;
        this.read.bytes += data.byteLength;
        tile.src = URL.createObjectURL(new Blob([data]));
        tile.addEventListener("load", () => URL.revokeObjectURL(tile.src), { once: true });
      }
    }
    const map = leaflet.map(place, {
      center: [25, 0],
      zoom: 2,
      maxZoom: ZOOM_MAX,
      keyboardPanDelta: STEP,
      attributionControl: false,
    });
    const sayWhere = (): void => {
      const { lat, lng } = map.getCenter().wrap();
      onMove(`Zoom ${map.getZoom()} at ${degrees(lat, "N", "S")}, ${degrees(lng, "E", "W")}`);
    };
    map.on("moveend", sayWhere);
    sayWhere();
    return new Land(map, () => new Tiles({ tileSize: SIDE }) as TileLayer);
  }

  /** For when the tab becomes visible: a hidden map has no size. */
  show(): void {
    this.#map.invalidateSize({ animate: false });
  }

  move(x: number, y: number): void {
    this.#map.panBy([x, y], { animate: false });
  }

  /** Goes to places at random. Resolves once all of their tiles are drawn, and rejects when one cannot be read. */
  async travel(halfway: () => Promise<void>): Promise<{ readonly bytes: number; readonly what: string }> {
    this.show();
    this.#layer.remove();
    // A new one has nothing in memory.
    this.#layer = this.#newLayer();
    for (let i = 0; i < STOPS; i++) {
      if (i === STOPS / 2) await halfway();
      // Another journey each time: a block that was read is in memory for a while.
      const [x, y] = [Math.random() * 2 ** ZOOM_MAX, NORTH + Math.random() * (SOUTH - NORTH)];
      this.#map.setView(this.#map.unproject([x * SIDE, y * SIDE], ZOOM_MAX), ZOOM_MAX, { animate: false });
      this.#layer.addTo(this.#map);
      await this.#settled();
    }
    const { tiles, bytes } = this.#layer.read;
    return { bytes, what: `${count(tiles, "tile")} at ${count(STOPS, "place")}` };
  }

  #settled(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.#layer.isLoading()) return resolve();
      this.#layer.once("load", () => resolve());
      this.#layer.once("tileerror", (event) => reject((event as TileErrorEvent).error));
    });
  }
}

function degrees(value: number, positive: string, negative: string): string {
  return `${Math.abs(value).toFixed(0)}° ${value < 0 ? negative : positive}`;
}
