import { beforeEach, describe, expect, test } from "vitest";
import { TelemetryTokens, TERM_MS } from "./telemetry-token.ts";

const START_MS = 1_790_000_000_000;
const ADDRESS = "203.0.113.7";
let nowMs: number;
let tokens: TelemetryTokens;

async function tokensOf(pop: string, secret: string, skewMs = 0): Promise<TelemetryTokens> {
  const made = new TelemetryTokens(pop, () => nowMs + skewMs);
  await made.setKey(secret);
  return made;
}

beforeEach(async () => {
  nowMs = START_MS;
  tokens = await tokensOf("fra", "secret");
});

test("a token is taken from the client that it was issued to, who keeps one name over all terms", async () => {
  const first = await tokens.check(await tokens.issue(ADDRESS), ADDRESS);
  expect(first).toMatch(/^[\w-]{16}$/);
  nowMs += 3 * TERM_MS;
  expect(await tokens.check(await tokens.issue(ADDRESS), ADDRESS)).toBe(first);
  expect(await tokens.check(await tokens.issue("203.0.113.8"), "203.0.113.8")).not.toBe(first);
  expect(first).not.toContain("203");
});

test("a token lives for at least ten minutes, and at most fifteen", async () => {
  const token = await tokens.issue(ADDRESS);
  nowMs = START_MS + 2 * TERM_MS;
  await expect(tokens.check(token, ADDRESS)).resolves.toBeTypeOf("string");
  nowMs = START_MS + 3 * TERM_MS;
  await expect(tokens.check(token, ADDRESS)).rejects.toMatchObject({ code: "FORBIDDEN", httpStatus: 403 });
});

test.each([-TERM_MS, TERM_MS])("an issuer whose clock is %i ms off is believed", async (skewMs) => {
  const issuer = await tokensOf("fra", "secret", skewMs);
  await expect(tokens.check(await issuer.issue(ADDRESS), ADDRESS)).resolves.toBeTypeOf("string");
});

test("a token of the far future is refused: leaked tokens cannot be stored up", async () => {
  const issuer = await tokensOf("fra", "secret", 2 * TERM_MS);
  await expect(tokens.check(await issuer.issue(ADDRESS), ADDRESS)).rejects.toMatchObject({ code: "FORBIDDEN" });
});

describe("refused with FORBIDDEN, and why:", () => {
  const foreign = async (pop: string, secret: string): Promise<string> => (await tokensOf(pop, secret)).issue(ADDRESS);
  const cut = async (): Promise<string> => (await tokens.issue(ADDRESS)).slice(0, -1);
  const changed = async (): Promise<string> => {
    const [term, mac = ""] = (await tokens.issue(ADDRESS)).split(".");
    return `${term}.${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`;
  };
  test.each<[string, () => Promise<unknown>, string]>([
    ["none", async () => undefined, "no token"],
    ["a number", async () => 7, "malformed"],
    ["a cut one", cut, "malformed"],
    ["a changed one", changed, "not one of this PoP"],
    ["one of another PoP", () => foreign("lhr", "secret"), "not one of this PoP"],
    ["one of another secret", () => foreign("fra", "other"), "not one of this PoP"],
    ["one of another address", () => tokens.issue("203.0.113.8"), "for this address"],
  ])("%s", async (_name, make, why) => {
    const refusal = tokens.check(await make(), ADDRESS);
    await expect(refusal).rejects.toMatchObject({ code: "FORBIDDEN", message: expect.stringContaining(why) });
  });
});

test("a key is asked for once by many reads, again when it has not come, and not any more when it has", async () => {
  const keyless = new TelemetryTokens("fra", () => nowMs);
  expect([keyless.mayAskForKey(), keyless.mayAskForKey()]).toEqual([true, false]);
  nowMs += 5_000;
  expect([keyless.mayAskForKey(), keyless.mayAskForKey()]).toEqual([true, false]);
  await keyless.setKey("secret");
  nowMs += 5_000;
  expect(keyless.mayAskForKey()).toBe(false);
});
