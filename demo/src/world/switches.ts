/** The switches of the world: where the client is, what is broken, and the Cron Trigger. */
import { byId, h, table } from "../page/dom.ts";
import { ms } from "../page/format.ts";
import type { Palette } from "../state/palette.ts";
import type { KvState, PopState, RegionState, DemoWorld } from "../state/world.ts";

const SLOW_FACTOR = 5;
const KV_STATES: readonly KvState[] = ["ok", "slow", "stale", "down"];

/** Draws the switches at every change of the world. `report` receives the errors of the control address. */
export function startSwitches(world: DemoWorld, palette: Palette, report: (error: unknown) => void): void {
  const element = byId("switches");
  const run = (work: () => Promise<void>) => (): Promise<void> => work().catch(report);
  let drawn = "";
  const draw = (): void => {
    const { state } = world;
    // A redraw only on a change keeps the keyboard focus.
    const now = JSON.stringify([state?.client, state?.regions, state?.pops, world.problem]);
    if (now === drawn) return;
    drawn = now;
    const focused = document.activeElement?.getAttribute("data-switch");
    element.replaceChildren(
      ...(state ? [regions(state.regions), pops(state.pops), actions()] : world.problem ? [missing()] : []),
    );
    if (focused) element.querySelector<HTMLElement>(`[data-switch="${CSS.escape(focused)}"]`)?.focus();
  };

  const toggle = (name: string, text: string, on: boolean, work: () => Promise<void>): HTMLElement => {
    const names = { "aria-pressed": on, "aria-label": `${text}: ${name}`, "data-switch": name };
    return h("td", {}, h("button", { type: "button", class: "toggle", ...names, onclick: run(work) }, text));
  };

  const pops = (list: readonly PopState[]): HTMLElement =>
    table(["PoP", "latency", "you", "state", "cache (KV)"], h("tbody", {}, ...list.map(popRow)));
  const popRow = (pop: PopState): HTMLElement => {
    const { name, down, kv, latencyMs } = pop;
    const here = world.state?.client.near === name;
    return h(
      "tr",
      { class: down ? "down" : "" },
      h("th", { scope: "row" }, swatch(palette.of("edge", name)), name),
      h("td", { class: "number" }, latencyMs === undefined ? "" : ms(latencyMs)),
      toggle(`client next to ${name}`, here ? "here" : "move", here, () => world.moveClient(name)),
      toggle(`PoP ${name}`, down ? "stopped" : "stop", down, () => world.setPop(name, { down: !down })),
      h("td", {}, kvChoice(name, kv)),
    );
  };
  const kvChoice = (name: string, kv: KvState): HTMLElement => {
    const select = h(
      "select",
      { "aria-label": `KV of ${name}`, "data-switch": `kv ${name}`, class: kv === "ok" ? "" : "on" },
      ...KV_STATES.map((value) => h("option", { value, selected: value === kv }, value)),
    );
    select.addEventListener("change", () => void run(() => world.setPop(name, { kv: select.value as KvState }))());
    return select;
  };

  const regions = (list: readonly RegionState[]): HTMLElement =>
    table(["region", "latency", "state", "speed", "data"], h("tbody", {}, ...list.map(regionRow)));
  const regionRow = (region: RegionState): HTMLElement => {
    const { name, down, corrupt, latencyFactor, latencyMs } = region;
    const slow = latencyFactor > 1;
    const change = (to: Parameters<DemoWorld["setRegion"]>[1]) => (): Promise<void> => world.setRegion(name, to);
    return h(
      "tr",
      { class: down ? "down" : "" },
      h("th", { scope: "row" }, swatch(palette.of("region", name)), name),
      h("td", { class: "number" }, ms(latencyMs * latencyFactor)),
      toggle(`region ${name}`, down ? "dead" : "kill", down, change({ down: !down })),
      toggle(`latency of ${name}`, "slow", slow, change({ latencyFactor: slow ? 1 : SLOW_FACTOR })),
      toggle(`chunks of ${name}`, "corrupt", corrupt > 0, change({ corrupt: corrupt > 0 ? 0 : 1 })),
    );
  };

  const actions = (): HTMLElement =>
    h(
      "p",
      { class: "actions" },
      h("button", { type: "button", "data-switch": "reset", onclick: run(() => world.reset()) }, "Restore everything"),
    );
  const missing = (): HTMLElement => {
    const what = `The switches need the local world, and ${world.problem}. Start it with `;
    return h("p", { class: "problem" }, h("span", {}, what, h("code", {}, "npm start"), "."));
  };

  world.addEventListener("change", draw);
  draw();
}

function swatch(colour: string): HTMLElement {
  return h("i", { class: "swatch", style: `--c:${colour}` });
}
