/** Clients that `fetch` cannot play: they stop reading, leave in the middle, or send requests ahead. For tests. */
import { connect, type Socket } from "node:net";

/** The request of a client. */
export interface TcpRequest {
  /** Default: GET. */
  readonly method?: string;
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Sends the request so often at once (pipelining). The system's buffers take a few MB for a client that reads
   * nothing; the later answers stay in the PoP. Default: 1.
   */
  readonly times?: number;
  /** Closes its own side after the request, and still receives. Default: false. */
  readonly isEnding?: boolean;
}

/**
 * Opens a connection, sends a request and resolves when the first bytes of the answer have come, or the server has
 * closed it; reads no more.
 */
export function openRequest(
  url: string,
  { method = "GET", path, headers = {}, times = 1, isEnding = false }: TcpRequest,
): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: isEnding }, () => {
      socket[isEnding ? "end" : "write"](`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`.repeat(times));
    });
    socket.once("error", reject);
    const settle = (): void => {
      socket.pause();
      // A PoP that ends a stalled connection resets it.
      socket.off("error", reject).on("error", () => {});
      resolve(socket);
    };
    socket.once("data", settle).once("close", settle);
  });
}
