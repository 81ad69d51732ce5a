import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { setClientAddress } from "./client-address.ts";

function addressOf(headers: Record<string, string>, isBehindProxy: boolean, remoteAddress = "10.0.0.1"): string[] {
  const rawHeaders = Object.entries(headers).flat();
  setClientAddress({ rawHeaders, socket: { remoteAddress } } as unknown as IncomingMessage, isBehindProxy);
  return rawHeaders.filter((_, i) => rawHeaders[i - 1]?.toLowerCase() === "cf-connecting-ip");
}

test("the address is the connection's, whatever the client says", () => {
  expect(addressOf({ "CF-Connecting-IP": "6.6.6.6", "X-Forwarded-For": "6.6.6.6" }, false)).toEqual(["10.0.0.1"]);
});

test("behind a proxy it is the last one that is forwarded, which the proxy has added", () => {
  expect(addressOf({ "X-Forwarded-For": "6.6.6.6, 192.0.2.7" }, true)).toEqual(["192.0.2.7"]);
  expect(addressOf({}, true)).toEqual(["10.0.0.1"]);
});

test("IPv4 in IPv6 is IPv4", () => {
  expect(addressOf({}, false, "::ffff:192.0.2.9")).toEqual(["192.0.2.9"]);
});
