/** Listens to what every worker and page of this origin reads. */
import { CHANNEL, isReadEvent, type ReadEvent } from "../events/read-events.ts";

/** Calls `listener` for every event of every read of this origin. The returned function ends that. */
export function onRead(listener: (event: ReadEvent) => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }) => {
    for (const event of Array.isArray(data) ? data : []) if (isReadEvent(event)) listener(event);
  });
  return () => channel.close();
}
