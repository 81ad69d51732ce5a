/** The line at the top that says who decodes, and the place of error messages. */
import { byId, h } from "../page/dom.ts";
import { isControlled, type WorkerState } from "../state/service-worker.ts";
import type { DemoWorld } from "../state/world.ts";

const WORKER: Record<WorkerState, { tone: string; text: string }> = {
  active: { tone: "good", text: "service worker decodes" },
  starting: { tone: "wait", text: "no service worker yet: the edge decodes" },
  absent: { tone: "bad", text: "no service worker: the edge decodes" },
};

/** Shows the state of the service worker and of the world, and keeps both current. */
export function showStatus(world: DemoWorld, worker: { state: WorkerState; problem?: string }): void {
  if (worker.problem)
    showProblem(new Error(`The service worker did not start: ${worker.problem}. The edge decodes instead.`));
  const draw = (): void => {
    const { tone, text } = WORKER[isControlled() ? "active" : worker.state];
    const near = world.state?.client.near;
    const place = near ? `client next to ${near}` : (world.problem ?? "looking for the world");
    byId("status").replaceChildren(
      h("span", { class: `dot ${tone}` }),
      h("span", {}, text),
      h("span", { class: `dot ${near ? "good" : world.problem ? "bad" : "wait"}` }),
      h("span", {}, place),
    );
  };
  draw();
  world.addEventListener("change", draw);
  if ("serviceWorker" in navigator) navigator.serviceWorker.addEventListener("controllerchange", draw);
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
