/**
 * The HTTP client behind `fetch`. The one in Node 22 to 24 ends the whole process where a server closes a connection
 * whose answer is not read yet (nodejs/undici, issue 5360), and no code can catch that: any bucket, peer or proxy could
 * end a PoP. This client of the same authors has the mend.
 */
import { Agent, setGlobalDispatcher } from "undici";

/** From here on, `fetch` in this process uses it. */
export function useOwnConnections(): void {
  setGlobalDispatcher(new Agent());
}
