/** Passes on requests that change the protocol, such as the WebSocket by which a development server reloads modules. */
import { request as httpRequest, STATUS_CODES, type IncomingMessage } from "node:http";
import { pipeline, type Duplex } from "node:stream";

/**
 * Passes an upgrade on to the server at `target`, and then the bytes of both sides as they come. Either side's end ends
 * the other.
 */
export function passUpgradeOn(target: string, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  // The listener of an error: a client that leaves without a word must not end the process.
  socket.on("error", () => {});
  const { hostname, port, host } = new URL(target);
  const { method, url: path } = request;
  const upstream = httpRequest({ hostname, port, path, method, headers: { ...request.headers, host } });
  upstream.on("upgrade", (answer, other, first) => {
    socket.write(headOf(answer));
    if (first.length > 0) socket.write(first);
    if (head.length > 0) other.write(head);
    pipeline(socket, other, () => other.destroy());
    pipeline(other, socket, () => socket.destroy());
  });
  upstream.on("response", (answer) => {
    // Its body ends with the connection, so it needs no length and no framing.
    const headers = answer.rawHeaders.filter((_, index, all) => !isFraming(all[index - (index % 2)]!));
    socket.write(headOf(answer, [...headers, "connection", "close"]));
    pipeline(answer, socket, () => socket.destroy());
  });
  upstream.on("error", () => refuseUpgrade(socket, 502));
  socket.once("close", () => upstream.destroy());
  upstream.end();
}

/** Answers an upgrade with an error, and closes its connection. */
export function refuseUpgrade(socket: Duplex, status: number): void {
  socket.on("error", () => {});
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

/** The first lines of an answer, for a socket that Node's server has given away. */
function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage, headers = rawHeaders): string {
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  return `${[`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines].join("\r\n")}\r\n\r\n`;
}

function isFraming(name: string): boolean {
  return /^(connection|keep-alive|transfer-encoding|content-length)$/i.test(name);
}
