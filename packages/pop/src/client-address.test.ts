import { expect, test } from "vitest";
import { setClientAddress } from "./client-address.ts";

function addressOf(
  sent: Record<string, string>,
  isBehindProxy: boolean,
  remoteAddress: string | undefined = "10.0.0.1",
): string | null {
  const headers = new Headers(sent);
  setClientAddress(headers, remoteAddress, isBehindProxy);
  return headers.get("cf-connecting-ip");
}

test("the address is the connection's, whatever the client says", () => {
  expect(addressOf({ "CF-Connecting-IP": "6.6.6.6", "X-Forwarded-For": "6.6.6.6" }, false)).toBe("10.0.0.1");
});

test("behind a proxy it is the last one that is forwarded, which the proxy has added", () => {
  expect(addressOf({ "X-Forwarded-For": "6.6.6.6, 192.0.2.7" }, true)).toBe("192.0.2.7");
  expect(addressOf({}, true)).toBe("10.0.0.1");
  expect(addressOf({ "X-Forwarded-For": "" }, true)).toBe("10.0.0.1");
});

test("a connection that is gone has no address, and none that the client claims", () => {
  const headers = new Headers({ "CF-Connecting-IP": "6.6.6.6" });
  setClientAddress(headers, undefined, false);
  expect(headers.has("cf-connecting-ip")).toBe(false);
});

test("IPv4 in IPv6 is IPv4", () => {
  expect(addressOf({}, false, "::ffff:192.0.2.9")).toBe("192.0.2.9");
});
