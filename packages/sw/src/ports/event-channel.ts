/**
 * Sends read events on the broadcast channel.
 */
import { CHANNEL, type ReadEvent } from "../events/read-events.ts";

/** A sender. */
export function eventChannel(): (event: ReadEvent) => void {
  const channel: BroadcastChannel & { unref?(): void } = new BroadcastChannel(CHANNEL);
  // In Node an open channel would keep the program from ending.
  channel.unref?.();
  return (event) => channel.postMessage(event);
}
