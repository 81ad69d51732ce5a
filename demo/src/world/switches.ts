/** The switches of the world: where the client is, what is broken, and the Cron Trigger. */
import { byId, h } from "../page/dom.ts";
import { ms } from "../page/format.ts";
import type { Palette } from "../state/palette.ts";
import type { KvState, PopState, RegionState, DemoWorld } from "../state/world.ts";

const SLOW_FACTOR = 5;
const KV_STATES: readonly KvState[] = ["ok", "slow", "stale", "down"];

/** Draws the switches at every change of the world. `report` receives the errors of the control address. */
export function startSwitches(world: DemoWorld, palette: Palette, report: (error: unknown) => void): void {
  const element = byId("switches");
  const run = (work: () => Promise<void>) => async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      report(error);
    }
  };
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

  const pops = (list: readonly PopState[]): HTMLElement =>
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["PoP", "latency", "you", "state", "cache (KV)"].map(heading))),
      h("tbody", {}, ...list.map(popRow)),
    );
  const popRow = (pop: PopState): HTMLElement => {
    const { name, down, kv, latencyMs } = pop;
    const here = world.state?.client.near === name;
    return h(
      "tr",
      { class: down ? "down" : "" },
      h("th", { scope: "row" }, swatch(palette.of("edge", name)), name),
      h("td", { class: "number" }, latencyMs === undefined ? "" : ms(latencyMs)),
      h(
        "td",
        {},
        toggle(
          `client next to ${name}`,
          here ? "here" : "move",
          here,
          run(() => world.moveClient(name)),
        ),
      ),
      h(
        "td",
        {},
        toggle(
          `PoP ${name}`,
          down ? "stopped" : "stop",
          down,
          run(() => world.setPop(name, { down: !down })),
        ),
      ),
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
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["region", "latency", "state", "speed", "data"].map(heading))),
      h("tbody", {}, ...list.map(regionRow)),
    );
  const regionRow = (region: RegionState): HTMLElement => {
    const { name, down, corrupt, latencyFactor, latencyMs } = region;
    const slow = latencyFactor > 1;
    return h(
      "tr",
      { class: down ? "down" : "" },
      h("th", { scope: "row" }, swatch(palette.of("region", name)), name),
      h("td", { class: "number" }, ms(latencyMs * latencyFactor)),
      h(
        "td",
        {},
        toggle(
          `region ${name}`,
          down ? "dead" : "kill",
          down,
          run(() => world.setRegion(name, { down: !down })),
        ),
      ),
      h(
        "td",
        {},
        toggle(
          `latency of ${name}`,
          "slow",
          slow,
          run(() => world.setRegion(name, { latencyFactor: slow ? 1 : SLOW_FACTOR })),
        ),
      ),
      h(
        "td",
        {},
        toggle(
          `chunks of ${name}`,
          "corrupt",
          corrupt > 0,
          run(() => world.setRegion(name, { corrupt: corrupt > 0 ? 0 : 1 })),
        ),
      ),
    );
  };

  const actions = (): HTMLElement =>
    h(
      "p",
      { class: "actions" },
      h("button", { type: "button", "data-switch": "reset", onclick: run(() => world.reset()) }, "Restore everything"),
    );
  const missing = (): HTMLElement => {
    return h(
      "p",
      { class: "problem" },
      h(
        "span",
        {},
        `The switches need the local world, and ${world.problem}. Start it with `,
        h("code", {}, "npm start"),
        ".",
      ),
    );
  };

  world.addEventListener("change", draw);
  draw();
}

function heading(text: string): HTMLElement {
  return h("th", { scope: "col" }, text);
}

function swatch(colour: string): HTMLElement {
  return h("i", { class: "swatch", style: `--c:${colour}` });
}

function toggle(name: string, text: string, on: boolean, onclick: () => Promise<void>): HTMLElement {
  return h(
    "button",
    {
      type: "button",
      class: "toggle",
      "aria-pressed": on,
      "aria-label": `${text}: ${name}`,
      "data-switch": name,
      onclick,
    },
    text,
  );
}
