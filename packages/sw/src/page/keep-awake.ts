/**
 * Keeps the browser from ending the worker under a read. Firefox (153) does so a minute after the worker's last event,
 * however many answers are under way, and their bodies then end as if they were whole; a message from a page is an
 * event.
 */
import { systemClock, type Clock } from "@agarose/core";
import { onRead } from "./on-read.ts";
import type { ReadEvent } from "../events/read-events.ts";

const EVERY_MS = 10_000;
/** A read without an event for this long is over: the browser has ended its worker. */
const SILENT_MS = 120_000;

/** Sends the worker in charge a message now and then, while reads of this origin are under way. */
export function keepAwake(
  container: Pick<ServiceWorkerContainer, "controller">,
  listen: (listener: (event: ReadEvent) => void) => void = onRead,
  clock: Clock = systemClock,
): void {
  /** Time of the latest event, by read. */
  const lastEventMs = new Map<string, number>();
  let isSet = false;
  const set = (): void => {
    isSet = lastEventMs.size > 0;
    if (isSet) clock.after(EVERY_MS, remind);
  };
  const remind = (): void => {
    for (const [read, atMs] of lastEventMs) if (clock.now() - atMs > SILENT_MS) lastEventMs.delete(read);
    if (lastEventMs.size > 0) container.controller?.postMessage({ agarose: "stay-awake" });
    set();
  };
  listen(({ type, read }) => {
    if (type === "read-end") lastEventMs.delete(read);
    else lastEventMs.set(read, clock.now());
    if (!isSet) set();
  });
}
