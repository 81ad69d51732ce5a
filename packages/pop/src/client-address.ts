/** Whose request it is: the header in which Cloudflare says it, set from what this server knows. */

const HEADER = "cf-connecting-ip";

/**
 * Sets the header to the address of the connection, whatever the client has sent in it. Behind a proxy it is the last
 * address of `X-Forwarded-For`, which is the one that the proxy itself has added. An address of IPv4 in IPv6 is set as
 * IPv4.
 */
export function setClientAddress(headers: Headers, remoteAddress: string | undefined, isBehindProxy: boolean): void {
  const forwarded = isBehindProxy ? headers.get("x-forwarded-for")?.split(",").at(-1)!.trim() : undefined;
  const address = forwarded || remoteAddress;
  if (address === undefined) headers.delete(HEADER);
  else headers.set(HEADER, address.replace(/^::ffff:/, ""));
}
