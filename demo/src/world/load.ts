/** The load generator: reads photographs with Zipf popularity at a steady rate. */
import { byId, h } from "../page/dom.ts";
import type { DemoWorld } from "../state/world.ts";

export interface LoadOptions {
  readonly keys: readonly string[];
  readonly world: DemoWorld;
  /** Reads an object to its end. The log of reads shows failures. */
  readonly read: (key: string) => Promise<unknown>;
  readonly report: (error: unknown) => void;
}

const EXPONENT = 1.1;
const RATES = [1, 2, 4, 8];
/** Limits concurrent reads, so that a slow world does not collect a queue. */
const IN_FLIGHT_MAX = 8;
const CRON_EVERY_MS = 20_000;

export function startLoad({ keys, world, read, report }: LoadOptions): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  let cronTimer: ReturnType<typeof setInterval> | undefined;
  let inFlight = 0;
  const weights = keys.map((_, rank) => (rank + 1) ** -EXPONENT);

  const start = h("button", { type: "button", class: "primary", "aria-pressed": "false" }, "Start the load generator");
  const rate = h(
    "select",
    { "aria-label": "Reads per second" },
    ...RATES.map((n) => h("option", { value: n, selected: n === 2 }, `${n} reads/s`)),
  );
  const cron = h("button", { type: "button" }, "Run the Cron Trigger now");
  const often = h("input", { type: "checkbox", id: "cron-often" });
  byId("load").append(start, rate, cron, h("label", { for: "cron-often" }, often, ` every ${CRON_EVERY_MS / 1000} s`));

  start.addEventListener("click", () => (timer === undefined ? resume() : pause()));
  rate.addEventListener("change", () => {
    if (timer === undefined) return;
    pause();
    resume();
  });
  cron.addEventListener("click", () => void runCron());
  often.addEventListener("change", () => {
    clearInterval(cronTimer);
    if (often.checked) cronTimer = setInterval(() => void runCron(), CRON_EVERY_MS);
  });

  function resume(): void {
    timer = setInterval(() => void one(), 1000 / Number(rate.value));
    show(true);
  }

  function pause(): void {
    clearInterval(timer);
    timer = undefined;
    show(false);
  }

  function show(running: boolean): void {
    start.setAttribute("aria-pressed", String(running));
    start.textContent = running ? "Stop the load generator" : "Start the load generator";
  }

  async function one(): Promise<void> {
    if (inFlight >= IN_FLIGHT_MAX) return;
    inFlight++;
    try {
      await read(keys[draw(weights, Math.random())]!);
    } catch {
      // The log of reads has the error. The load continues.
    } finally {
      inFlight--;
    }
  }

  async function runCron(): Promise<void> {
    cron.disabled = true;
    cron.textContent = "The Cron Trigger runs…";
    try {
      await world.cron();
    } catch (error) {
      report(error);
    } finally {
      cron.disabled = false;
      cron.textContent = "Run the Cron Trigger now";
    }
  }
}

/** Returns the index that `random` in [0, 1) falls on, each with a share by its weight. */
function draw(weights: readonly number[], random: number): number {
  let rest = random * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [index, weight] of weights.entries()) {
    rest -= weight;
    if (rest < 0) return index;
  }
  return weights.length - 1;
}
