import { expect, test } from "vitest";
import { FillCandidates } from "./fill-candidates.ts";
import { clientAddress, clientNetwork } from "../runtime/client-address.ts";

const DAY_MS = 86_400_000;

function setUp(clientsMin: number, keysMax?: number) {
  const time = { ms: 5 * DAY_MS + 1_000 };
  const candidates = new FillCandidates({
    clientsMin,
    now: () => time.ms,
    ...(keysMax === undefined ? {} : { keysMax }),
  });
  const ask = (key: string, ...clients: string[]): Promise<void> => candidates.note([[key, clients]]);
  return { time, candidates, ask };
}

test("one client alone makes no key a candidate, however often it asks, and a second one does", async () => {
  const { candidates, ask } = setUp(2);
  for (let i = 0; i < 100; i++) await ask("a", "203.0.113");
  expect(candidates.has("a")).toBe(false);
  await ask("b", "198.51.100");
  expect(candidates.has("a")).toBe(false);
  await ask("a", "198.51.100");
  expect(candidates.has("a")).toBe(true);
  expect(candidates.has("b")).toBe(false);
});

test("as many clients are needed as the setting says; one is enough where it says so", async () => {
  const three = setUp(3);
  await three.ask("a", "1", "2");
  expect(three.candidates.has("a")).toBe(false);
  await three.ask("a", "2", "3");
  expect(three.candidates.has("a")).toBe(true);
  expect(setUp(1).candidates.has("never asked for")).toBe(true);
});

test("midnight makes no second client of the first, and takes back no candidate for a day", async () => {
  const { time, candidates, ask } = setUp(2);
  await ask("a", "1");
  await ask("b", "1", "2");
  time.ms += DAY_MS;
  await ask("a", "1");
  expect(candidates.has("a")).toBe(false);
  expect(candidates.has("b")).toBe(true);
  await ask("b", "1");
  await ask("a", "2");
  expect(candidates.has("a")).toBe(true);
  time.ms += DAY_MS;
  expect(candidates.has("a")).toBe(true);
  expect(candidates.has("b"), "one client alone has asked since").toBe(false);
  time.ms += 2 * DAY_MS;
  expect(candidates.has("a")).toBe(false);
});

test("midnight in the middle of a note does not mix two days", async () => {
  const { time, candidates, ask } = setUp(2);
  await ask("a", "1");
  const noting = ask("a", "2");
  time.ms += DAY_MS;
  await noting;
  expect(candidates.has("a")).toBe(false);
});

test("so many keys are remembered, and of more those that were asked for last", async () => {
  const { candidates, ask } = setUp(2, 3);
  await ask("kept", "1", "2");
  for (let i = 0; i < 10; i++) {
    await ask(`once-${i}`, "1");
    await ask("kept", "1");
  }
  await ask("once-0", "2");
  expect(candidates.has("once-0")).toBe(false);
  expect(candidates.has("kept")).toBe(true);
});

test.each([
  ["203.0.113.7", "203.0.113.200", true],
  ["203.0.113.7", "203.0.114.7", false],
  ["2001:db8:1:2::3", "2001:db8:1:ffff::9", true],
  ["2001:db8:1::3", "2001:db8:2::3", false],
  ["2001:db8::3", "2001:db8:0:5::1", true],
])("%s and %s are one network: %s", (a, b, isOne) => {
  const of = (address: string): string => clientNetwork(clientAddress({ get: () => address }));
  expect(of(a) === of(b)).toBe(isOne);
});
