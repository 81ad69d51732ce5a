/** Whose request it is: the header in which Cloudflare says it, set from what this server knows. */
import type { IncomingMessage } from "node:http";

const HEADER = "cf-connecting-ip";

/**
 * Replaces the header with the address of the connection, or behind a proxy with the last address of
 * `X-Forwarded-For`, which is the one that the proxy itself has added.
 */
export function setClientAddress(request: IncomingMessage, isBehindProxy: boolean): void {
  const { rawHeaders } = request;
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (rawHeaders[i]!.toLowerCase() === HEADER) rawHeaders.splice(i, 2);
  }
  const forwarded = request.headersDistinct["x-forwarded-for"]?.at(-1)?.split(",").at(-1)?.trim();
  const address = isBehindProxy && forwarded ? forwarded : request.socket.remoteAddress;
  if (address !== undefined) rawHeaders.push(HEADER, address.replace(/^::ffff:/, ""));
}
