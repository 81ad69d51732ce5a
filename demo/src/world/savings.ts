/** The savings and costs that each PoP reports of itself. */
import { byId, h, table } from "../page/dom.ts";
import { bytes, count, ms } from "../page/format.ts";
import type { DemoWorld, PopStatus, WorldState } from "../state/world.ts";

const POLL_MS = 10_000;
const COLUMNS = ["Cache", "Saved for each read", "Left to save", "KV this month"];
const IDEAS: Readonly<Record<string, string>> = {
  caching: "cache",
  lateBinding: "late binding",
  functional: "functional chunks",
  cooperation: "other PoPs",
  recovered: "recovered chunks",
};
const NOTHING_SAVED = "nothing yet: start the load and run the Cron Trigger";
const NOT_READ = "nothing: you are not next to it";
const UNSOUND = "unknown while regions fail: reset the faults and run the Cron Trigger";

/** Shows it, and keeps it current. */
export function startSavings(world: DemoWorld): void {
  const measured = new MeasuredPeriods();
  const draw = async (): Promise<void> => {
    if (document.visibilityState !== "visible" || world.problem) return;
    // The line at the top says why the world does not answer.
    const pops = await world.popStatuses().catch(() => []);
    if (pops.length > 0) byId("savings").replaceChildren(tableOf(pops, measured.isSound, world.state?.client.near));
  };
  world.addEventListener("change", () => {
    const { state } = world;
    if (!state) return;
    if (measured.add(state)) void draw();
  });
  setInterval(() => void draw(), POLL_MS);
}

/**
 * Knows whether a fault was there while the PoPs measured. They estimate by what they measure, so waits for a dead
 * region would count as saved, until a period has passed without faults.
 */
export class MeasuredPeriods {
  #periods = -1;
  #withFaults = -1;

  /** Adds the state of the world, and returns whether a period has ended or a fault has begun since the last one. */
  add({ regions, cronRuns }: Pick<WorldState, "regions" | "cronRuns">): boolean {
    const wasSound = this.isSound;
    const hasFaults = regions.some(({ down, corrupt, latencyFactor }) => down || corrupt > 0 || latencyFactor > 1);
    if (hasFaults) this.#withFaults = cronRuns.length;
    const hasEnded = cronRuns.length !== this.#periods;
    this.#periods = cronRuns.length;
    return hasEnded || wasSound !== this.isSound;
  }

  /** Whether the PoPs report a period without faults. */
  get isSound(): boolean {
    return this.#periods > this.#withFaults;
  }
}

function tableOf(pops: readonly PopStatus[], isSound: boolean, near: string | undefined): HTMLElement {
  return table(["PoP", ...COLUMNS], h("tbody", {}, ...pops.map((pop) => rowOf(pop, isSound, near))));
}

function rowOf(
  { pop, cache, ideas, spending, lastPeriod }: PopStatus,
  isSound: boolean,
  near: string | undefined,
): HTMLElement {
  const atWork = ideas.filter((idea) => idea.atWork && idea.savedMs !== null && idea.savedMs >= 0.5);
  const saved = atWork.map(({ name, savedMs }) => `${ms(savedMs!)} by ${IDEAS[name] ?? name}`);
  const texts = [
    `${bytes(cache.cachedBytes)} of ${bytes(cache.capacityBytes)}, ${count(cache.objects.length, "object")}`,
    isSound ? saved.join(", ") || (pop === near ? NOTHING_SAVED : NOT_READ) : UNSOUND,
    isSound ? regretOf(lastPeriod) : "unknown",
    `$${spending.usd.toFixed(5)}, ${count(spending.writes, "write")}`,
  ];
  // A narrow screen shows the name of the column in the cell.
  const cells = texts.map((text, i) => h("td", { "data-label": COLUMNS[i] }, text));
  return h("tr", {}, h("th", { scope: "row" }, pop), ...cells);
}

/** How much sooner the reads of the last period would have ended with the best contents for just these reads. */
function regretOf(lastPeriod: PopStatus["lastPeriod"]): string {
  const regretMs = lastPeriod?.savings?.regretMs;
  if (regretMs === undefined) return "unknown";
  return regretMs < 0.5 ? "none" : `${ms(regretMs)} a read`;
}
