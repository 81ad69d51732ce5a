import { expect, test } from "vitest";
import { findColo, durableObject, parseLocation } from "./durable-objects.ts";

const answering =
  (body: string, status = 200): typeof fetch =>
  async () =>
    new Response(body, { status });

test("the data center is read from Cloudflare's trace", async () => {
  expect(await findColo(answering("fl=1\nh=cloudflare.com\ncolo=FRA\nsliver=none\n"))).toBe("FRA");
});

test.each([
  ["an answer without it", answering("fl=1\n")],
  ["an answer that is not a code", answering("colo=<b>\n")],
  ["a refusal", answering("colo=FRA\n", 403)],
  ["no answer", () => Promise.reject(new TypeError("no network"))],
])("%s is no data center", async (_name, fetchTrace) => {
  expect(await findColo(fetchTrace as typeof fetch)).toBeNull();
});

test("an unknown location is refused with the known ones", () => {
  expect(parseLocation({ LOCATION: "weur" })).toBe("weur");
  expect(parseLocation({})).toBeUndefined();
  expect(() => parseLocation({ LOCATION: "fra" })).toThrow(/LOCATION is "fra": wnam, .* are known/);
});

test("objects are created at LOCATION, and where Cloudflare chooses without one", () => {
  const asked: unknown[] = [];
  const namespace = { idFromName: (name: string) => name, get: (...args: unknown[]) => asked.push(args) };
  durableObject(namespace as never, "pop", { LOCATION: "oc" });
  durableObject(namespace as never, "pop", {});
  expect(asked).toEqual([
    ["pop", { locationHint: "oc" }],
    ["pop", {}],
  ]);
});
