/** Whose request it is: the header in which Cloudflare says it, set from what this server knows. */
import type { IncomingMessage } from "node:http";

const HEADER = "cf-connecting-ip";
/** What the client's own header is renamed to. Node counts the headers, so none may be removed. */
const CLAIMED = "x-claimed-address";

/**
 * Adds the header with the address of the connection, or behind a proxy with the last address of `X-Forwarded-For`,
 * which is the one that the proxy itself has added.
 */
export function setClientAddress({ rawHeaders, socket }: IncomingMessage, isBehindProxy: boolean): void {
  let forwarded: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (name === HEADER) rawHeaders[i] = CLAIMED;
    else if (name === "x-forwarded-for") forwarded = rawHeaders[i + 1]!.split(",").at(-1)!.trim();
  }
  const address = (isBehindProxy && forwarded) || socket.remoteAddress;
  if (address !== undefined) rawHeaders.push(HEADER, address.replace(/^::ffff:/, ""));
}
