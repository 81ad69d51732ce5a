import { expect, test } from "vitest";
import { clientAddress } from "./client-address.ts";

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2/64"],
  ["2001:DB8:0001:2::6", "2001:db8:1:2/64"],
  ["2001:db8::", "2001:db8:0:0/64"],
  ["::1", "0:0:0:0/64"],
  [null, undefined],
])("the client at %s counts as %s", (header, address) => {
  expect(clientAddress({ get: () => header })).toBe(address);
});
