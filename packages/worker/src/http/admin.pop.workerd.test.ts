import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADMIN_TOKEN, clientHeaders, POP, randomBytes, startWorld, type TestWorld } from "../../test/world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
  await world.put("page", randomBytes(100_000));
});
afterAll(() => world.close());

const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` };

describe.each(["/v1/status", "/metrics"])("%s", (path) => {
  test.each([
    ["no token", {}, 401],
    ["a wrong token", { authorization: "Bearer another-token-of-16+" }, 401],
    ["the beginning of the token", { authorization: `Bearer ${ADMIN_TOKEN.slice(0, -1)}` }, 401],
    ["another scheme", { authorization: `Basic ${ADMIN_TOKEN}` }, 400],
  ])("is closed to %s", async (_name, headers: Record<string, string>, status) => {
    const response = await fetch(`${world.url}${path}`, { headers });
    expect(response.status).toBe(status);
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer /);
    expect(response.headers.get("x-agarose-error")).toBe("FORBIDDEN");
  });

  test("is open to the token", async () => {
    expect((await fetch(`${world.url}${path}`, { headers: bearer })).status).toBe(200);
  });
});

test("a client that guesses is refused after ten wrong tokens, also with the right one, and others are not", async () => {
  const ask = async (address: string, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, ...clientHeaders(address) };
    return (await fetch(`${world.url}/v1/status`, { headers })).status;
  };
  const guesses: number[] = [];
  for (let i = 0; i < 12; i++) guesses.push(await ask("192.0.2.7", `wrong-token-number-${i}`));
  expect(guesses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  expect(await ask("192.0.2.7", ADMIN_TOKEN)).toBe(429);
  expect(await ask("192.0.2.8", ADMIN_TOKEN)).toBe(200);
});

test("without ADMIN_TOKEN the admin routes are closed, also to an empty one", async () => {
  const other = await startWorld({ ADMIN_TOKEN: "" });
  try {
    for (const token of ["", "undefined", ADMIN_TOKEN]) {
      const response = await fetch(`${other.url}/v1/status`, { headers: { authorization: `Bearer ${token}` } });
      expect(response.status, token).toBe(token === "" ? 400 : 401);
    }
  } finally {
    await other.close();
  }
});

test("/metrics is the Prometheus text format, with a line per region", async () => {
  await (await fetch(`${world.url}/o/page`)).arrayBuffer();
  await world.pops.cron(POP);
  const response = await fetch(`${world.url}/metrics`, { headers: bearer });
  expect(response.headers.get("content-type")).toContain("text/plain; version=0.0.4");
  const lines = (await response.text()).trimEnd().split("\n");
  for (const line of lines) expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+\{(\w+="[^"]*",?)+\} -?[\d.e+-]+)$/);
  expect(lines).toContain('agarose_configuration_epoch{pop="fra"} 1');
  expect(lines).toContain('agarose_cache_objects{pop="fra"} 1');
  expect(lines.filter((line) => line.startsWith("agarose_region_latency_seconds{"))).toHaveLength(6);
});

test("/healthz says that the PoP runs", async () => {
  expect(await (await fetch(`${world.url}/healthz`)).json()).toEqual({ ok: true, pop: "fra" });
});

test("a wrong variable is an error that names it, on every route", async () => {
  const other = await startWorld({ REGIONS: '[{"name":"a","url":"ftp://a"}]' });
  try {
    const response = await fetch(`${other.url}/healthz`);
    expect(response.status).toBe(500);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toContain("REGIONS");
  } finally {
    await other.close();
  }
});
