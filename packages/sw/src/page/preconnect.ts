/**
 * Lets the browser open connections before the first read wants them: a read that opens its own waits two round trips
 * more.
 */
import type { ClientConfig } from "../common/config.ts";
import { savesData } from "../ports/saves-data.ts";

/**
 * Asks for a connection to every PoP and region, unless the user asks for little data. The worker's fetches use them
 * too.
 */
export function openConnections({ pops, regions }: ClientConfig): void {
  if (savesData()) return;
  for (const origin of new Set([...pops, ...regions].map(({ url }) => new URL(url).origin))) {
    const link = document.createElement("link");
    link.rel = "preconnect";
    // Connections with and without credentials are not the same ones; reads have none.
    link.crossOrigin = "anonymous";
    link.href = origin;
    document.head.append(link);
  }
}
