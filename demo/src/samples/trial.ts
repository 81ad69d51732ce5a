/** A button that does some reading, with a region dying in the middle if asked, and shows the cost of the reading. */
import { h } from "../page/dom.ts";
import { bytes, count, ms } from "../page/format.ts";
import { apiError } from "../state/api-error.ts";
import { explainRead, type ReadLog } from "../state/reads.ts";
import type { DemoWorld } from "../state/world.ts";

export interface TrialPorts {
  readonly log: ReadLog;
  readonly world: DemoWorld;
}

export interface Trial extends TrialPorts {
  readonly title: string;
  readonly key: string;
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
export function startTrial({ title, log, world, key, isOwn, work }: Trial): { element: HTMLElement; run: () => void } {
  const button = h("button", { type: "button", class: "primary" }, title);
  const kills = h("input", { type: "checkbox" });
  const note = h("p", { class: "note", role: "status" });
  const line = h(
    "div",
    { class: "line" },
    button,
    h("label", { class: "meanwhile" }, kills, " kill the nearest region halfway"),
  );
  const run = async (): Promise<void> => {
    button.disabled = true;
    const at = Date.now();
    const startMs = performance.now();
    let victim: string | undefined;
    try {
      const done = await work(async () => {
        victim = kills.checked && !world.nearest?.down ? world.nearest?.name : undefined;
        if (victim) await world.setRegion(victim, { down: true });
      });
      const tookMs = performance.now() - startMs;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const dead = victim ? ` ${victim} died halfway.` : "";
      note.textContent = `${done.what} in ${ms(tookMs)}. ${costs(log, isOwn, at, done.bytes)}${dead}`;
    } catch (error) {
      note.replaceChildren(...(await failureText({ log, isOwn, key }, at, error)));
    } finally {
      if (victim) await world.setRegion(victim, { down: false }).catch(() => {});
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => void run());
  return { element: h("div", { class: "trial" }, line, note), run: () => void run() };
}

/**
 * Why a library failed: by the read of an object that failed since `at`, or by another one of `key`, because the
 * library's own words do not tell.
 */
export async function failureText(
  { log, isOwn, key }: Pick<Trial, "log" | "isOwn" | "key">,
  at: number,
  error: unknown,
): Promise<(HTMLElement | string)[]> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const failed = log.all.findLast((read) => read.at >= at && isOwn(read.key) && read.error);
  const { code, message } = failed ? explainRead(failed) : await causeOf(key, error);
  return [h("strong", { class: "failure" }, code ?? "The read failed"), ` ${message}`];
}

async function causeOf(key: string, error: unknown): Promise<{ code?: string; message: string }> {
  const answer = await fetch(`/ec/${key}`, { headers: { range: "bytes=0-0" }, cache: "no-store" });
  return answer.ok ? (error as Error) : apiError(answer);
}

/** The bytes that the reads since `at` fetched, in words. */
function costs(log: ReadLog, isOwn: (key: string) => boolean, at: number, used: number): string {
  const reads = log.all.filter((read) => read.at >= at && isOwn(read.key) && read.decoder === "service worker");
  if (reads.length === 0) return "Without the service worker, the page does not see what was fetched.";
  const requests = reads.flatMap((read) => read.requests).filter(({ outcome }) => outcome !== "gone");
  const came = requests.filter(({ outcome }) => outcome === "used" || outcome === "unused");
  const fetched = came.reduce((sum, request) => sum + request.bytes, 0);
  const fromPop = came.filter(({ kind }) => kind === "edge").length;
  const asked = requests.filter(({ kind }) => kind !== "edge").length;
  return (
    `${bytes(fetched)} fetched for ${bytes(used)} used, by ${count(reads.length, "read")}: ${count(fromPop, "chunk")} ` +
    `from the edge, ${count(asked, "request")} to other sources.`
  );
}
