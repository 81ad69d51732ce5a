/** A server on any free port of this machine. */
import type { AddressInfo, Server } from "node:net";

/** Listens on 127.0.0.1, and resolves to the address: `http://127.0.0.1:PORT`, without a slash at its end. */
export async function listenLocally(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
