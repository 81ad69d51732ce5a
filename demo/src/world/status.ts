/** The line of the lab with the state of worker and world, and the place of error messages. */
import { byId, h } from "../page/dom.ts";
import { isControlled, type WorkerState } from "../state/service-worker.ts";
import type { DemoWorld, RegionState } from "../state/world.ts";

const WORKER: Record<WorkerState, { tone: string; text: string }> = {
  active: { tone: "good", text: "service worker decodes" },
  starting: { tone: "wait", text: "no service worker yet: the edge decodes" },
  absent: { tone: "bad", text: "no service worker: the edge decodes" },
};

/** Shows who decodes, and which part of the world is broken, and keeps both current. */
export function showStatus(world: DemoWorld, worker: WorkerState): void {
  const draw = (): void => {
    const { tone, text } = WORKER[isControlled() ? "active" : worker];
    const broken = brokenParts(world);
    byId("status").replaceChildren(
      h("span", { class: `dot ${tone}` }),
      h("span", {}, text),
      h("span", { class: `dot ${world.state ? (broken ? "bad" : "good") : "wait"}` }),
      h("span", {}, broken ?? `you are next to ${world.state?.client.near ?? "…"}`),
    );
  };
  draw();
  world.addEventListener("change", draw);
  if ("serviceWorker" in navigator) navigator.serviceWorker.addEventListener("controllerchange", draw);
}

/** The regions that do not give what was stored, in words. */
function brokenParts({ state, problem }: DemoWorld): string | undefined {
  if (problem) return problem;
  const named = (what: string, isSo: (region: RegionState) => boolean): string[] => {
    const names = state?.regions.filter(isSo).map(({ name }) => name) ?? [];
    return names.length > 0 ? [`${names.join(", ")} ${what}`] : [];
  };
  const all = [...named("down", ({ down }) => down), ...named("corrupt", ({ corrupt }) => corrupt > 0)];
  return all.length > 0 ? all.join("; ") : undefined;
}

/** Shows an error with its code, until the user closes it or the next one comes. */
export function showProblem(error: unknown): void {
  const { code, message } = error as { code?: string; message?: string };
  const element = byId("problem");
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close this message" }, "Close");
  close.addEventListener("click", () => (element.hidden = true));
  element.replaceChildren(h("p", {}, code ? h("code", {}, code) : "", ` ${message ?? String(error)}`), close);
  element.hidden = false;
}
