/** A port of this machine for a server that cannot choose one itself. */
import { createServer } from "node:net";
import { listenLocally } from "./listen-locally.ts";

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = new URL(await listenLocally(server));
  await new Promise((resolve) => server.close(resolve));
  return Number(port);
}
