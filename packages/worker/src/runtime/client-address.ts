/** The identity of a client: its address, its network, and the name by which its shares count. Pure. */
import { fnv1a } from "../popularity/frequency-sketch.ts";

/** Replaces the address of every client outside Cloudflare. */
const UNKNOWN_ADDRESS = "unknown";

/**
 * Returns the client's address as Cloudflare reports it, or undefined outside Cloudflare. The IPv6 addresses of one
 * customer, a /64, count as one.
 */
export function clientAddress(headers: { get(name: string): string | null }): string | undefined {
  const address = headers.get("cf-connecting-ip");
  if (address === null) return undefined;
  return address.includes(":") ? `${prefix64(address)}/64` : address;
}

/**
 * Returns the network of a client for whom `clientAddress` returned `address`: /24 of IPv4, /48 of IPv6. Who has one
 * address has all of its network, more or less.
 */
export function clientNetwork(address = UNKNOWN_ADDRESS): string {
  const separator = address.includes(":") ? ":" : ".";
  return address.split(separator).slice(0, 3).join(separator);
}

/** As many clients a network counts as at most, however many addresses it has. */
export const CLIENTS_PER_NETWORK = 8;

/**
 * Returns the name by which the shares of the client at `address` count: a part of its network, which other clients
 * there may have too. Who has one address has all of its network, and a share for each would be no bound.
 */
export function clientShareName(address = UNKNOWN_ADDRESS): string {
  return `${clientNetwork(address)}#${fnv1a(address) % CLIENTS_PER_NETWORK}`;
}

/** The first 64 bits of an IPv6 address, as four groups without leading zeros. */
function prefix64(address: string): string {
  const [before = "", after] = address.toLowerCase().split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const head = groups(before);
  const tail = after === undefined ? [] : groups(after);
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0");
  const all = [...head, ...(after === undefined ? [] : zeros), ...tail];
  return all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}
