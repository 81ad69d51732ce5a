/** Sends read events on the broadcast channel. */
import { CHANNEL, type ReadEvent } from "../events/read-events.ts";

/** A page of a hundred images makes some 600 events. A message for each took a sixth of the worker's time. */
const GATHER_MS = 10;

/** A sender, which joins events within milliseconds into one message. */
export function eventChannel(): (event: ReadEvent) => void {
  const channel: BroadcastChannel & { unref?(): void } = new BroadcastChannel(CHANNEL);
  // In Node an open channel would keep the program from ending.
  channel.unref?.();
  let waiting: ReadEvent[] = [];
  return (event) => {
    if (waiting.push(event) > 1) return;
    setTimeout(() => {
      channel.postMessage(waiting);
      waiting = [];
    }, GATHER_MS);
  };
}
