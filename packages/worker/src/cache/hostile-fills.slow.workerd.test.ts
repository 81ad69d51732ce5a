/** Clients that want a PoP to fetch: what they make it fill the cache with, and how many bytes of the regions. */
import { afterEach, expect, test } from "vitest";
import { openRequest } from "../../test/tcp-client.ts";
import { clientHeaders, POP, randomBytes, startWorld, type TestWorld } from "../../test/world.ts";

const BYTES = 400_000;
const MINUTES = 8;

let world: TestWorld;
afterEach(() => world.close());

const start = async (vars: Record<string, string>): Promise<void> => {
  world = await startWorld({
    POLICY: "exact",
    MANIFEST_TTL_SECONDS: "600",
    FUNCTIONAL: "false",
    BUDGET_USD_PER_PERIOD: "",
    BUDGET_USD_PER_MONTH: "",
    FILL_CLIENTS_MIN: "2",
    ...vars,
  });
};

const putAll = async (name: string, count: number): Promise<string[]> => {
  const keys = Array.from({ length: count }, (_, i) => `${name}/${i}`);
  for (const [i, key] of keys.entries()) await world.put(key, randomBytes(BYTES, i + 1));
  return keys;
};

const ask = async (path: string, address: string, headers: Record<string, string> = {}): Promise<number> => {
  const response = await fetch(`${world.url}${path}`, { headers: { ...clientHeaders(address), ...headers } });
  await response.arrayBuffer();
  return response.status;
};

/** Runs a period; returns how many bytes of chunks it has asked the regions for to fill the cache. */
const period = async (): Promise<number> => {
  world.buckets.requests.length = 0;
  await world.pops.cron(POP);
  const lengths = world.buckets.requests.map(({ range }) => {
    const [first, last] = /^bytes=(\d+)-(\d+)$/
      .exec(range ?? "")
      ?.slice(1)
      .map(Number) ?? [0, -1];
    return last! - first! + 1;
  });
  // Probes that measure the transfer rate ask for whole chunks, and a fill for those of one stripe.
  return lengths.filter((bytes) => bytes < BYTES / 4).reduce((sum, bytes) => sum + bytes, 0);
};

const cached = async (): Promise<string[]> => {
  const { objects } = (await world.status()).cache;
  return objects.filter(({ chunks }) => chunks.length > 0).map(({ key }) => key);
};

test("three requests of one byte a minute from one address fill nothing, and neither do whole reads", async () => {
  await start({});
  const keys = await putAll("large", 3 * MINUTES);
  for (let minute = 0; minute < MINUTES; minute++) {
    for (const key of keys.slice(3 * minute, 3 * minute + 3)) {
      expect(await ask(`/o/${key}`, "198.51.100.1", { range: "bytes=7-7" })).toBe(206);
      expect(await ask(`/v1/read/${key}`, `198.51.100.${minute + 2}`)).toBe(200);
    }
    expect(await period()).toBe(0);
  }
  expect(await cached()).toEqual([]);
  expect((await world.status()).fillEgress).toMatchObject({ bytes: 0, refusedStripes: 0 });
  expect((await world.status()).lastPeriod.popular, "what a scrub goes by").toEqual([]);
  expect(await ask(`/v1/read/${keys[0]}`, "203.0.113.1")).toBe(200);
  expect(await ask(`/v1/read/${keys[0]}`, "203.0.114.1")).toBe(200);
  expect(await period(), "a second network makes the difference").toBeGreaterThan(0);
  expect(await cached()).toEqual([keys[0]]);
  expect((await world.status()).lastPeriod.popular).toMatchObject([{ key: keys[0] }]);
});

test("single bytes weigh nothing, from however many addresses they are asked for", async () => {
  await start({ FILL_CLIENTS_MIN: "1" });
  const keys = await putAll("large", 3);
  for (let client = 0; client < 30; client++) {
    const range = `bytes=${client}-${client}`;
    for (const key of keys) {
      const path = client % 2 === 0 ? `/o/${key}` : `/v1/read/${key}?range=${encodeURIComponent(range)}`;
      expect(await ask(path, `203.0.${client}.1`, { range })).toBeLessThan(300);
    }
  }
  expect(await period()).toBe(0);
  expect(await cached()).toEqual([]);
});

test("many addresses do not make a PoP fetch more than its egress budget of the day, and displace nothing beyond it", async () => {
  const egress = 3 * BYTES;
  await start({ FILL_EGRESS_BYTES_PER_DAY: String(egress), CACHE_BYTES: String(4 * BYTES) });
  const page = randomBytes(BYTES, 77);
  for (const address of ["192.0.2.1", "192.0.3.1"]) {
    await world.put("page", page);
    expect(await ask("/o/page", address)).toBe(200);
  }
  await period();
  expect(await cached()).toEqual(["page"]);
  const keys = await putAll("large", 4 * MINUTES);
  let bytes = 0;
  let kept: string[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    for (const key of keys.slice(4 * minute, 4 * minute + 4)) {
      for (let client = 0; client < 3; client++) expect(await ask(`/v1/read/${key}`, `203.0.${client}.1`)).toBe(200);
    }
    bytes += await period();
    if (minute === MINUTES / 2) kept = await cached();
  }
  const { fillEgress, lastPeriod } = await world.status();
  expect(fillEgress).toMatchObject({ bytesPerDayMax: egress });
  expect(fillEgress.bytes).toBeLessThanOrEqual(egress);
  expect(fillEgress.bytes, "the budget was used").toBeGreaterThan(egress / 2);
  expect(bytes, "by the account of the regions").toBeLessThanOrEqual(egress);
  expect(fillEgress.refusedStripes).toBeGreaterThan(0);
  expect(lastPeriod.errors).toEqual([]);
  expect(kept.length).toBeGreaterThan(0);
  expect(await cached(), "what cannot be replaced stays").toEqual(kept);
});

/**
 * How many requests of `key` have counted since the last period: in one that has a fifth of its weight from before. A
 * busy machine hands some of them on after the first period.
 */
const countedFor = async (key: string): Promise<number> => {
  let counted = 0;
  let before = await popularityOf(key);
  for (let i = 0; i < 3; i++) {
    await world.pops.cron(POP);
    const popularity = await popularityOf(key);
    counted += popularity / 0.8 - before / 4;
    before = popularity;
  }
  return Math.round(counted);
};

const popularityOf = async (key: string): Promise<number> => {
  const popular = (await world.status()).lastPeriod?.popular ?? [];
  return popular.find((entry) => entry.key === key)?.popularity ?? 0;
};

test("clients that leave weigh what they were sent, and those that take the whole object count as reads of it", async () => {
  await start({ FILL_CLIENTS_MIN: "1", CACHE_BYTES: "100000000" });
  await world.put("film", randomBytes(32 * 2 ** 20, 5), { stripeBytes: 4 * 2 ** 20 });
  const whole = async (path: string): Promise<void> => {
    for (let client = 0; client < 3; client++) expect(await ask(path, `192.0.2.${client}`)).toBe(200);
  };
  const leave = async (path: string): Promise<void> => {
    for (let client = 0; client < 20; client++) {
      (await openRequest(world.url, { path, headers: clientHeaders(`203.0.${client}.1`) })).resetAndDestroy();
    }
  };
  await whole("/o/film");
  expect(await countedFor("film"), "decoded").toBe(3);
  expect(await cached()).toEqual(["film"]);
  await whole("/v1/read/film");
  expect(await countedFor("film"), "as chunks").toBe(3);
  for (const path of ["/o/film", "/v1/read/film"]) {
    await leave(path);
    // The system's buffers take up to 4 MB of the 32 for a client that reads nothing: 2.5 of 20, give or take 1.5.
    expect(await countedFor("film"), path).toBeLessThan(12);
  }
});
