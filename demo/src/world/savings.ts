/** What each PoP saves and spends, by its own status, and how much more may fail. */
import { byId, h } from "../page/dom.ts";
import { bytes, count, ms } from "../page/format.ts";
import type { DemoWorld, PopStatus, WorldState } from "../state/world.ts";

const POLL_MS = 10_000;
const IDEAS: Readonly<Record<string, string>> = {
  caching: "cache",
  lateBinding: "late binding",
  functional: "functional chunks",
  cooperation: "other PoPs",
  recovered: "recovered chunks",
};
/** `code: "auto"` promises that the loss of so many regions harms nothing. */
const SURVIVES_AUTO = 1;

/** Shows both, and keeps them current. */
export function startSavings(world: DemoWorld): void {
  let periods = -1;
  const draw = async (): Promise<void> => {
    if (document.visibilityState !== "visible" || world.problem) return;
    // The line at the top says why the world does not answer.
    const pops = await world.popStatuses().catch(() => []);
    if (pops.length > 0) byId("savings").replaceChildren(tableOf(pops));
  };
  world.addEventListener("change", () => {
    const { state } = world;
    if (!state) return;
    byId("redundancy").textContent = redundancy(state);
    if (state.cronRuns.length === periods) return;
    periods = state.cronRuns.length;
    void draw();
  });
  setInterval(() => void draw(), POLL_MS);
}

function redundancy({ code, regions }: WorldState): string {
  const down = regions.filter((region) => region.down).length;
  const survives = code === "auto" ? SURVIVES_AUTO : Math.floor(code.m / Math.ceil((code.k + code.m) / regions.length));
  const left = survives - down;
  const now = `${count(regions.length - down, "region")} of ${regions.length} answer`;
  if (left < 0) return `Redundancy: ${now}. That is fewer than the code needs for every file.`;
  if (left === 0) return `Redundancy: ${now}. Every file can be read, and no further region may fail.`;
  return `Redundancy: ${now}. ${count(left, "more region")} may fail, and every file can be read.`;
}

function tableOf(pops: readonly PopStatus[]): HTMLElement {
  const head = ["PoP", "Cache", "Saved for each read", "Regret", "KV this month"];
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...head.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...pops.map(rowOf)),
  );
}

function rowOf({ pop, cache, ideas, spending, lastPeriod }: PopStatus): HTMLElement {
  const atWork = ideas.filter((idea) => idea.atWork && idea.savedMs !== null && idea.savedMs >= 0.5);
  const saved = atWork.map(({ name, savedMs }) => `${ms(savedMs!)} by ${IDEAS[name] ?? name}`);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, pop),
    h(
      "td",
      {},
      `${bytes(cache.cachedBytes)} of ${bytes(cache.capacityBytes)}, ${count(cache.objects.length, "object")}`,
    ),
    h("td", {}, saved.length > 0 ? saved.join(", ") : "nothing yet: start the load and run the Cron Trigger"),
    h("td", {}, regretOf(lastPeriod)),
    h("td", {}, `$${spending.usd.toFixed(5)}, ${count(spending.writes, "write")}`),
  );
}

/** How much sooner the reads of the last period would have ended with the best contents for just these reads. */
function regretOf(lastPeriod: PopStatus["lastPeriod"]): string {
  const regretMs = lastPeriod?.savings?.regretMs;
  if (regretMs === undefined) return "unknown";
  return regretMs < 0.5 ? "none" : `${ms(regretMs)} a read`;
}
