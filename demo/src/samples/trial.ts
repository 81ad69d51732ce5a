/** A button that does some reading, with a region dying in the middle if asked, and says what the reading cost. */
import { h } from "../page/dom.ts";
import { bytes, count, ms } from "../page/format.ts";
import type { ReadLog } from "../state/reads.ts";
import type { DemoWorld } from "../state/world.ts";

export interface TrialPorts {
  readonly log: ReadLog;
  readonly world: DemoWorld;
}

export interface Trial extends TrialPorts {
  readonly title: string;
  /** Whether a key is one of those that the work reads. */
  readonly isOwn: (key: string) => boolean;
  /**
   * Reads. Calls `halfway` once, and waits for it. Resolves to what it read: bytes that the page used, and its words.
   */
  readonly work: (halfway: () => Promise<void>) => Promise<{ readonly bytes: number; readonly what: string }>;
}

/** The events of a read's last requests arrive a moment after its bytes. */
const SETTLE_MS = 100;

/** Draws the button, the switch and the line of figures. `run` presses the button. */
export function startTrial({ title, log, world, isOwn, work }: Trial): { element: HTMLElement; run: () => void } {
  const button = h("button", { type: "button", class: "primary" }, title);
  const kills = h("input", { type: "checkbox" });
  const note = h("p", { class: "note", role: "status" });
  const line = h(
    "div",
    { class: "line" },
    button,
    h("label", { class: "kill" }, kills, " the nearest region dies meanwhile"),
  );
  const run = async (): Promise<void> => {
    button.disabled = true;
    const at = Date.now();
    const startMs = performance.now();
    let victim: string | undefined;
    try {
      const done = await work(async () => {
        victim = kills.checked ? nearestRegion(world) : undefined;
        if (victim) await world.setRegion(victim, { down: true });
      });
      const tookMs = performance.now() - startMs;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const dead = victim ? ` ${victim} died meanwhile.` : "";
      note.textContent = `${done.what} in ${ms(tookMs)}. ${costs(log, isOwn, at, done.bytes)}${dead}`;
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      note.replaceChildren(h("strong", { class: "failure" }, code ?? "The read failed"), ` ${message}`);
    } finally {
      if (victim) await world.setRegion(victim, { down: false }).catch(() => {});
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => void run());
  return { element: h("div", { class: "trial" }, line, note), run: () => void run() };
}

function nearestRegion({ state }: DemoWorld): string | undefined {
  const alive = state?.regions.filter(({ down }) => !down) ?? [];
  return alive.toSorted((a, b) => a.latencyMs - b.latencyMs)[0]?.name;
}

/** What the reads since `at` fetched, in words. */
function costs(log: ReadLog, isOwn: (key: string) => boolean, at: number, used: number): string {
  const reads = log.all.filter((read) => read.at >= at && isOwn(read.key) && read.decoder === "service worker");
  if (reads.length === 0) return "Without the service worker, the page does not see what was fetched.";
  const requests = reads.flatMap((read) => read.requests).filter(({ outcome }) => outcome !== "gone");
  const came = requests.filter(({ outcome }) => outcome === "used" || outcome === "unused");
  const fetched = came.reduce((sum, request) => sum + request.bytes, 0);
  const fromPop = came.filter(({ kind }) => kind === "edge").length;
  const asked = requests.filter(({ kind }) => kind !== "edge").length;
  const asking = reads.filter((read) => read.requests.length > 0).length;
  const ratio = fetched > 0 ? `, ${(fetched / used).toFixed(1)} bytes for a byte that was used` : "";
  return (
    `${asking} of ${count(reads.length, "read")} asked for something: ${count(asked, "request")} to regions and peers, ` +
    `${count(fromPop, "piece")} from the PoP. ${bytes(fetched)} fetched${ratio}.`
  );
}
