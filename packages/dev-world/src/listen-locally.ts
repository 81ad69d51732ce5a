/** A server on a port of this machine. */
import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";

/**
 * Listens on 127.0.0.1, and resolves to the address: `http://127.0.0.1:PORT`, without a slash at its end. Rejects where
 * it cannot.
 *
 * @param port 0 for any free one.
 */
export async function listenLocally(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Closes a server and all of its connections. */
export async function closeServer(server: HttpServer): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
