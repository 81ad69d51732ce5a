/**
 * The map: the client, the PoPs and regions around it at their latency (log scale), and a flash for arriving chunks.
 */
import { byId, svg } from "../page/dom.ts";
import { ms } from "../page/format.ts";
import type { Palette } from "../state/palette.ts";
import type { Read, ReadLog } from "../state/reads.ts";
import type { DemoWorld, WorldState } from "../state/world.ts";

const WIDTH = 440;
const HEIGHT = 330;
const CENTRE = { x: WIDTH / 2, y: HEIGHT / 2 };
const RADIUS_MIN = 42;
const RADIUS_MAX = 158;
const RINGS_MS = [3, 10, 30, 100, 300, 1000, 3000];
/** Degrees clockwise from the top, as seen from Frankfurt. Unknown places go in between. */
const BEARINGS: Readonly<Record<string, number>> = {
  "pop fra": 118,
  "pop lhr": 318,
  "pop iad": 268,
  "pop ams": 350,
  "pop mad": 222,
  frankfurt: 62,
  dublin: 352,
  "n-virginia": 292,
  "sao-paulo": 232,
  tokyo: 88,
  sydney: 128,
  "s3-frankfurt": 72,
  "s3-ireland": 296,
  "r2-eu": 26,
  "gcs-belgium": 262,
  "b2-amsterdam": 322,
  "wasabi-milan": 160,
};
const FLIGHT_MS = 600;
const FLIGHTS_MAX = 60;

interface Place {
  readonly x: number;
  readonly y: number;
  readonly colour: string;
}

export function startMap(world: DemoWorld, log: ReadLog, palette: Palette): void {
  const rings = svg("g", { class: "rings" });
  const places = svg("g");
  const flights = svg("g");
  const client = svg("circle", { class: "client", cx: CENTRE.x, cy: CENTRE.y, r: 9 });
  const you = svg("text", { class: "you", x: CENTRE.x, y: CENTRE.y + 24, "text-anchor": "middle" }, "you");
  byId("map").append(
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "img",
        "aria-label": "PoPs and regions at their distance from the client",
      },
      rings,
      flights,
      places,
      client,
      you,
    ),
  );
  let positions = new Map<string, Place>();
  const draw = (): void => {
    if (!world.state) return;
    const scale = scaleOf(world.state);
    rings.replaceChildren(...RINGS_MS.filter((ring) => ring > scale.nearMs && ring < scale.farMs).flatMap(scale.ring));
    positions = placesOf(world.state, palette, scale);
    places.replaceChildren(...drawPlaces(world.state, positions));
  };
  world.addEventListener("change", draw);
  draw();

  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const shown = new WeakSet<object>();
  log.addEventListener("read", (event) => {
    if (still.matches || document.visibilityState !== "visible") return;
    const { detail: read } = event as CustomEvent<Read>;
    const request = read.requests.at(-1) && latestEnded(read);
    if (!request || shown.has(request) || flights.childElementCount >= FLIGHTS_MAX) return;
    shown.add(request);
    const from = positions.get(request.kind === "region" ? request.source : `pop ${request.source}`);
    if (from) fly(flights, from, request.outcome);
  });
}

/** Returns the request that ended last. */
function latestEnded({ requests }: Read): Read["requests"][number] | undefined {
  let latest: Read["requests"][number] | undefined;
  for (const request of requests)
    if (request?.endMs !== undefined && request.endMs >= (latest?.endMs ?? 0)) latest = request;
  return latest;
}

function fly(layer: SVGElement, { x, y, colour }: Place, outcome: string): void {
  const line = svg("line", {
    x1: x,
    y1: y,
    x2: CENTRE.x,
    y2: CENTRE.y,
    style: `--c:${colour}`,
    class: `flight ${outcome}`,
  });
  const dot = svg("circle", { r: 3.5, style: `--c:${colour}`, class: `flight ${outcome}` });
  layer.append(line, dot);
  // A dropped chunk does not arrive.
  const share = outcome === "used" ? 1 : 0.4;
  const to = { x: x + (CENTRE.x - x) * share, y: y + (CENTRE.y - y) * share };
  const path = [
    { transform: `translate(${x}px, ${y}px)`, opacity: 1 },
    { transform: `translate(${to.x}px, ${to.y}px)`, opacity: share },
  ];
  removeAfter(dot, dot.animate(path, { duration: FLIGHT_MS, easing: "ease-in" }));
  removeAfter(line, line.animate([{ opacity: 0.9 }, { opacity: 0 }], { duration: 2 * FLIGHT_MS }));
}

function removeAfter(element: Element, animation: Animation): void {
  const remove = (): void => element.remove();
  animation.finished.then(remove, remove);
}

/** How latencies become distances: the farthest place of this world is at the edge. */
interface Scale {
  readonly nearMs: number;
  readonly farMs: number;
  at(bearing: number, latencyMs: number): { x: number; y: number };
  ring(latencyMs: number): SVGElement[];
}

function scaleOf({ pops, regions }: WorldState): Scale {
  const all = [...pops, ...regions].map(({ latencyMs = 0 }) => latencyMs);
  const [nearMs, farMs] = [Math.max(0.1, Math.min(...all)), 1.2 * Math.max(1, ...all)];
  const radiusOf = (latencyMs: number): number => {
    const share = Math.log(latencyMs / nearMs) / Math.log(farMs / nearMs);
    return RADIUS_MIN + Math.min(1, Math.max(0, share)) * (RADIUS_MAX - RADIUS_MIN);
  };
  return {
    nearMs,
    farMs,
    at(bearing, latencyMs) {
      const angle = (bearing * Math.PI) / 180;
      const radius = radiusOf(latencyMs);
      return { x: CENTRE.x + radius * Math.sin(angle), y: CENTRE.y - radius * Math.cos(angle) };
    },
    ring(latencyMs) {
      const radius = radiusOf(latencyMs);
      return [
        svg("circle", { cx: CENTRE.x, cy: CENTRE.y, r: radius }),
        svg("text", { x: CENTRE.x, y: CENTRE.y + radius - 4, "text-anchor": "middle" }, ms(latencyMs)),
      ];
    },
  };
}

function placesOf(state: WorldState, palette: Palette, scale: Scale): Map<string, Place> {
  const places = new Map<string, Place>();
  state.pops.forEach(({ name, latencyMs = 0 }, index) => {
    const bearing = BEARINGS[`pop ${name}`] ?? 360 * (index / state.pops.length) + 20;
    places.set(`pop ${name}`, { ...scale.at(bearing, latencyMs), colour: palette.of("edge", name) });
  });
  state.regions.forEach(({ name, latencyMs, latencyFactor }, index) => {
    const bearing = BEARINGS[name] ?? 360 * (index / state.regions.length);
    places.set(name, { ...scale.at(bearing, latencyMs * latencyFactor), colour: palette.of("region", name) });
  });
  return places;
}

function drawPlaces(state: WorldState, positions: ReadonlyMap<string, Place>): SVGElement[] {
  const elements: SVGElement[] = [];
  for (const { name, down, kv } of state.pops) {
    const place = positions.get(`pop ${name}`)!;
    const { x, y, colour } = place;
    const shape = svg("rect", { x: x - 7, y: y - 7, width: 14, height: 14, rx: 3, transform: `rotate(45 ${x} ${y})` });
    const note = down ? "stopped" : kv === "ok" ? undefined : `KV ${kv}`;
    elements.push(group(`pop ${name}`, colour, down, shape, place, name, note));
  }
  for (const { name, down, corrupt, latencyFactor, latencyMs } of state.regions) {
    const place = positions.get(name)!;
    const shape = svg("circle", { cx: place.x, cy: place.y, r: 9 });
    const note = down ? "dead" : corrupt > 0 ? "corrupt" : latencyFactor > 1 ? "slow" : undefined;
    elements.push(group(name, place.colour, down, shape, place, name, note ?? ms(latencyMs)));
  }
  return elements;
}

function group(
  id: string,
  colour: string,
  down: boolean,
  shape: SVGElement,
  { x, y }: Place,
  name: string,
  note: string | undefined,
): SVGElement {
  const left = x < CENTRE.x - 20;
  const side = { x: left ? x - 15 : x + 15, "text-anchor": left ? "end" : "start" };
  const cross = svg("path", { class: "cross", d: `M${x - 6} ${y - 6}l12 12m0-12l-12 12` });
  return svg(
    "g",
    { class: `place${down ? " down" : ""}`, style: `--c:${colour}`, "data-place": id },
    shape,
    down && cross,
    svg("text", { ...side, y: note === undefined ? y + 4 : y - 1 }, name),
    note !== undefined && svg("text", { ...side, y: y + 13, class: "note" }, note),
  );
}
