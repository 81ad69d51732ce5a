import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { READS_PER_KEY_MAX } from "../../popularity/telemetry-intake.ts";
import {
  clientHeaders,
  POP,
  randomBytes,
  readBundle,
  readObject,
  startWorld,
  type TestWorld,
} from "../../../test/world.ts";

const TELEMETRY_KEY = "telemetry-key-of-tests";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ TELEMETRY_KEY });
  await world.put("page", randomBytes(100_000));
});
afterAll(() => world.close());

/** A token for the client at `address`, which Cloudflare would say in this header. */
async function tokenOf(address: string, at = world): Promise<string | undefined> {
  return (await readBundle(`${at.url}/v1/read/page`, "page", from(address))).plan.telemetry;
}

const from = clientHeaders;

function report(address: string, body: unknown, at = world): Promise<Response> {
  const headers = { "content-type": "text/plain", ...from(address) };
  return fetch(`${at.url}/v1/telemetry`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers,
  });
}

const meanOf = async (region: string): Promise<number> =>
  (await world.status()).regions.find(({ name }) => name === region)!.meanMs;

test("clients' reports move the estimate of a region within bounds, from any origin", async () => {
  // So far that what the machine is busy with otherwise is little beside it.
  world.buckets.faults.set("r3", { delayMs: 300 });
  await world.pops.cron(POP);
  await world.pops.cron(POP);
  const before = await meanOf("r3");
  for (let client = 0; client < 5; client++) {
    const address = `198.51.100.${client}`;
    const token = await tokenOf(address);
    const response = await report(address, {
      token,
      regions: [{ name: "r3", samples: 8, meanMs: 9_000, meanBytes: 5 }],
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  }
  await world.pops.cron(POP);
  const after = await meanOf("r3");
  world.buckets.faults.clear();
  // Three quartiles, each at most twice what was believed, with a weight of 0.2.
  expect(after).toBeGreaterThan(1.2 * before);
  expect(after).toBeLessThan(3 * before);
});

test("reported reads count towards popularity, those of one client up to its share", async () => {
  await world.put("lonely", randomBytes(100_000, 5));
  await readBundle(`${world.url}/v1/read/lonely`, "lonely", from("198.51.100.9"));
  const token = await tokenOf("198.51.100.9");
  const reads = { lonely: 1_000_000_000, ghost: 1_000_000_000 };
  for (let i = 0; i < 3; i++) {
    expect((await report("198.51.100.9", { token, regions: [], reads })).status).toBe(204);
  }
  await world.pops.cron(POP);
  const { objects } = (await world.status()).cache;
  expect(objects.map(({ key }) => key)).toContain("lonely");
  const { popular } = (await world.status()).lastPeriod;
  const { popularity } = popular.find(({ key }) => key === "lonely")!;
  expect(popularity).toBeGreaterThan(0);
  expect(popularity).toBeLessThanOrEqual(READS_PER_KEY_MAX);
  expect(
    popular.map(({ key }) => key),
    "a key that this PoP has never found does not count",
  ).not.toContain("ghost");
});

const refusal = async (address: string, body: object): Promise<string> => {
  const response = await report(address, body);
  expect(response.status).toBe(403);
  expect(response.headers.get("x-agarose-error")).toBe("FORBIDDEN");
  return ((await response.json()) as { error: { message: string } }).error.message;
};

describe("a report is refused as FORBIDDEN", () => {
  test("without a token", async () => {
    expect(await refusal("198.51.100.1", { regions: [] })).toContain("no token");
  });

  test("with the token of another client", async () => {
    const token = await tokenOf("198.51.100.2");
    expect(await refusal("198.51.100.1", { token, regions: [] })).toContain("for this address");
  });

  test("with one that has expired", async () => {
    const token = (await tokenOf("198.51.100.1"))!;
    const [term, mac] = token.split(".");
    expect(await refusal("198.51.100.1", { token: `${Number(term) - 3}.${mac}`, regions: [] })).toContain("expired");
  });
});

describe("a report is refused as REQUEST_INVALID", () => {
  const entry = { name: "r1", meanMs: 1 };
  test.each([
    ["not JSON", "{"],
    ["null", "null"],
    ["no list", { regions: {} }],
    ["a negative time", { regions: [{ name: "r1", meanMs: -1 }] }],
    ["an endless time", { regions: [{ name: "r1", meanMs: 1e99 }] }],
    ["a negative length", { regions: [{ ...entry, meanBytes: -5 }] }],
    ["no name", { regions: [{ meanMs: 1 }] }],
    ["too many entries", { regions: Array.from({ length: 65 }, () => entry) }],
    ["a body of 20 kB", { regions: [], pad: "x".repeat(20_000) }],
    ["reads that are a list", { regions: [], reads: [1] }],
    ["reads below one", { regions: [], reads: { page: 0 } }],
    [
      "reads of 101 keys",
      { regions: [], reads: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`${i}a`, 1])) },
    ],
  ])("with %s", async (_name, body) => {
    const token = await tokenOf("198.51.100.1");
    const sent = typeof body === "string" ? body : JSON.stringify({ token, ...body });
    const response = await report("198.51.100.1", sent);
    expect(response.status).toBe(400);
    expect(response.headers.get("x-agarose-error")).toBe("REQUEST_INVALID");
  });
});

test("what a report says of regions that are not configured is ignored", async () => {
  const token = await tokenOf("198.51.100.1");
  const body = { token, regions: [{ name: "elsewhere", samples: 1, meanMs: 5 }] };
  expect((await report("198.51.100.1", body)).status).toBe(204);
});

test("without TELEMETRY_KEY the PoP makes a key of its own, and no read waits for it", async () => {
  const other = await startWorld();
  try {
    await other.put("page", randomBytes(1000));
    // The Durable Object takes its time to make one.
    const token = await vi.waitFor(
      async () => {
        const given = await tokenOf("198.51.100.1", other);
        expect(given).toBeTypeOf("string");
        return given;
      },
      { timeout: 60_000 },
    );
    expect((await report("198.51.100.1", { token, regions: [] }, other)).status).toBe(204);
    const foreign = await tokenOf("198.51.100.1");
    expect((await report("198.51.100.1", { token: foreign, regions: [] }, other)).status).toBe(403);
    await readObject(other, "page");
  } finally {
    await other.close();
  }
});
