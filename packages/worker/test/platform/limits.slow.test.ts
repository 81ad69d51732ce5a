import { describe, expect, test, vi } from "vitest";
import {
  CONNECTIONS_MAX,
  InvocationLimits,
  KV_OPERATIONS_MAX,
  KvLimits,
  METADATA_BYTES_MAX,
  VALUE_BYTES_MAX,
  type InvocationReport,
} from "./platform-limits.ts";
import { POP, putCached, randomBytes, readBundle, readObject, startWorld, type TestWorld } from "../world.ts";

const limitedWorld = async (vars: Record<string, string>, task: (world: TestWorld) => Promise<void>): Promise<void> => {
  const world = await startWorld(vars, { limited: true });
  try {
    await task(world);
  } finally {
    await world.close();
  }
};

interface Report {
  readonly invocations: InvocationReport[];
  readonly violations: string[];
}

/** The counts since the last time, which must not be empty. */
async function limitsOf(world: TestWorld): Promise<Report> {
  const report = (await (await fetch(`${world.url}/__limits`)).json()) as Report;
  expect(report.invocations.length).toBeGreaterThan(0);
  return report;
}

/** On a busy machine the cache may be late, and a bucket asked beside it. */
const readFromEdge = (world: TestWorld, key: string): Promise<Buffer> =>
  vi.waitFor(
    async () => {
      const { kind, bytes } = await readObject(world, key);
      expect(kind).toBe("edge");
      return Buffer.from(bytes);
    },
    { timeout: 60_000 },
  );

describe("under the platform's limits", () => {
  test("a period fills, the bundle is served and the edge decodes, each within them", () =>
    limitedWorld({}, async (world) => {
      const content = randomBytes(400_000);
      await putCached(world, "page", content);
      const filled = await limitsOf(world);
      expect(filled.violations).toEqual([]);
      const period = filled.invocations.find(({ what }) => what === "period")!;
      expect(period.kvOperations).toBeGreaterThanOrEqual(2 * 7);
      const { frames } = await readBundle(`${world.url}/v1/read/page`, "page");
      expect(frames.filter(({ type }) => type === "chunk")).toHaveLength(4 * 7);
      expect((await readFromEdge(world, "page")).equals(content)).toBe(true);
      const read = await limitsOf(world);
      expect(read.violations).toEqual([]);
      // Whatever waits, waits in our own queue.
      expect(new Set(read.invocations.map(({ queued }) => queued))).toEqual(new Set([0]));
    }));

  test("every use of the Cache API is under the Worker's own hostname, of requests and of periods", () =>
    limitedWorld({ CACHE_BYTES: "110000" }, async (world) => {
      await world.put("page", randomBytes(200_000));
      // An object that is read twice is kept for the period.
      for (let i = 0; i < 2; i++) await readObject(world, "page");
      await world.pops.cron(POP);
      await readObject(world, "page");
      const { invocations } = await limitsOf(world);
      const hosts = (what: string): string[] =>
        invocations.filter((invocation) => invocation.what === what).flatMap(({ cacheHosts }) => cacheHosts);
      const { host } = new URL(world.url);
      expect(new Set(hosts("/o/page"))).toEqual(new Set([host]));
      expect(hosts("period")).toEqual([host]);
      expect((await world.status()).lastPeriod, "the period found there what the reads had put").toMatchObject({
        errors: [],
        fetchedBytes: 0,
      });
    }));

  test("an object of more stripes than one period may write is cached over several, and sent up to what one invocation may read", () =>
    // Stripes of 1 kB cost more to write than a read of them is worth, so that milliseconds alone count here.
    limitedWorld({ WAITING_USD_PER_HOUR: "0" }, async (world) => {
      await world.put("long", randomBytes(340_000), { stripeBytes: 1_000 });
      await readObject(world, "long");
      await world.pops.cron(POP);
      expect((await world.status()).lastPeriod).toMatchObject({ errors: [] });
      expect((await world.status()).lastPeriod.left).toBeGreaterThan(0);
      for (let i = 0; i < 5 && (await world.status()).lastPeriod.left > 0; i++) {
        // In less than a second KV would refuse the second configuration.
        await new Promise((resolve) => setTimeout(resolve, 1_100));
        await readObject(world, "long");
        await world.pops.cron(POP);
        expect((await world.status()).lastPeriod.errors).toEqual([]);
      }
      expect((await world.status()).cache.objects).toMatchObject([{ key: "long", done: 340 }]);
      const { frames } = await readBundle(`${world.url}/v1/read/long`, "long");
      // Three operations a stripe, of 1,000.
      expect(frames.filter(({ type }) => type === "chunk")).toHaveLength(4 * 333);
      expect(frames.filter(({ type }) => type === "miss")).toHaveLength(4 * 7);
      await readFromEdge(world, "long");
      expect((await limitsOf(world)).violations).toEqual([]);
    }));

  test("many objects of which no region has the manifest cost a period no refusal", () =>
    limitedWorld({ SUBREQUESTS_MAX: "400" }, async (world) => {
      for (let i = 0; i < 150; i++) await world.put(`page-${i}`, randomBytes(1_000, i + 1));
      await Promise.all(Array.from({ length: 150 }, (_, i) => readObject(world, `page-${i}`)));
      for (const region of ["r0", "r1", "r2"]) world.buckets.faults.set(region, { down: true });
      await limitsOf(world);
      await world.pops.cron(POP);
      expect(world.buckets.fired.size).toBe(3);
      const { violations, invocations } = await limitsOf(world);
      expect(violations).toEqual([]);
      const period = invocations.find(({ what }) => what === "period")!;
      expect(period.subrequests).toBeGreaterThan(100);
    }));

  test("a value of the largest stripes fits in KV", () =>
    limitedWorld({}, async (world) => {
      const content = randomBytes(16 * 1024 * 1024 + 5);
      await world.put("large", content, { stripeBytes: 16 * 1024 * 1024 });
      await readObject(world, "large");
      await world.pops.cron(POP);
      expect((await world.status()).lastPeriod).toMatchObject({ errors: [], written: 2 });
      expect((await readFromEdge(world, "large")).equals(content)).toBe(true);
      expect((await limitsOf(world)).violations).toEqual([]);
    }));
});

describe("an object that takes more subrequests than there are", () => {
  const vars = { SUBREQUESTS_MAX: "100" };
  const content = randomBytes(1_000_000);
  // 100 subrequests are 80 planned ones: 4 + 1 for the GETs of all stripes, one for their hashes, and one a stripe for
  // what is late: 74 stripes.
  const put = (world: TestWorld) => world.put("long", content, { stripeBytes: 10_000 });
  const range = async (world: TestWorld, start: number) => {
    const response = await fetch(`${world.url}/o/long`, { headers: { range: `bytes=${start}-` } });
    expect(response.status).toBe(206);
    const part = new Uint8Array(await response.arrayBuffer());
    expect(response.headers.get("content-length")).toBe(String(part.length));
    return { range: response.headers.get("content-range"), part };
  };

  test("is refused in whole, with a code and a way out", () =>
    limitedWorld(vars, async (world) => {
      await put(world);
      const response = await fetch(`${world.url}/o/long`);
      expect(response.status).toBe(413);
      expect(response.headers.get("x-agarose-error")).toBe("OBJECT_TOO_LARGE");
      const { error } = (await response.json()) as { error: { message: string; details: object } };
      expect(error.details).toEqual({ bytes: 1_000_000, max: 740_000, subrequestsMax: 100 });
      expect(error.message).toContain("ranges");
      const head = await fetch(`${world.url}/o/long`, { method: "HEAD" });
      expect([head.status, head.headers.get("content-length")]).toEqual([200, "1000000"]);
    }));

  test("is answered range by range, each as long as possible and honest about it", () =>
    limitedWorld(vars, async (world) => {
      await put(world);
      const first = await range(world, 5);
      const second = await range(world, 5 + first.part.length);
      expect([first.range, second.range]).toEqual(["bytes 5-739999/1000000", "bytes 740000-999999/1000000"]);
      expect(Buffer.concat([first.part, second.part]).equals(content.subarray(5))).toBe(true);
      expect((await limitsOf(world)).violations).toEqual([]);
    }));

  test.each([
    ["are slow", { delayMs: 40 }],
    ["fail", { down: true }],
    ["send wrong bytes", { spoil: (body: Uint8Array) => body.map((byte) => byte ^ 1) }],
  ])("is answered in such a range in whole while two regions %s", (_name, fault) =>
    limitedWorld(vars, async (world) => {
      await put(world);
      // Of six regions five are asked at first, so one of them at least.
      for (const region of ["r0", "r3"]) world.buckets.faults.set(region, fault);
      const { part } = await range(world, 0);
      expect(part.length).toBe(740_000);
      expect(Buffer.compare(part, content.subarray(0, 740_000))).toBe(0);
      expect(world.buckets.fired.size).toBeGreaterThan(0);
      expect((await limitsOf(world)).violations).toEqual([]);
    }),
  );

  test("is answered to several clients at once that share its stripes and repeat each other's GETs", () =>
    limitedWorld(vars, async (world) => {
      await put(world);
      const answers = await Promise.all([0, 10_000, 0, 20_000, 10_000].map((start) => range(world, start)));
      for (const { part } of answers) expect(part.length).toBe(740_000);
      const { invocations, violations } = await limitsOf(world);
      expect(violations).toEqual([]);
      expect((await world.status()).isolate.stripes.followed).toBeGreaterThan(0);
      expect(Math.max(...invocations.map(({ subrequests }) => subrequests))).toBeGreaterThan(5);
    }));
});

const kvLimits = (violations: string[] = []) => {
  let nowMs = 0;
  const limits = new KvLimits(
    () => nowMs,
    (violation) => violations.push(violation),
  );
  return { limits, violations, advance: (ms: number) => (nowMs += ms) };
};

describe("the limits themselves", () => {
  test("KV takes one write a second per key", () => {
    const { limits, violations, advance } = kvLimits();
    limits.checkWrite("a", 1, undefined);
    limits.checkWrite("b", 1, undefined);
    advance(999);
    expect(() => limits.checkWrite("a", 1, undefined)).toThrow("429");
    advance(1);
    limits.checkWrite("a", 1, undefined);
    expect(violations).toHaveLength(1);
  });

  test("KV takes keys, values and metadata up to their sizes", () => {
    const { limits, violations } = kvLimits();
    limits.checkWrite("é".repeat(256), VALUE_BYTES_MAX, "x".repeat(METADATA_BYTES_MAX - 2));
    expect(() => limits.checkWrite(`${"é".repeat(256)}x`, 1, undefined)).toThrow("414");
    expect(() => limits.checkWrite("a", VALUE_BYTES_MAX + 1, undefined)).toThrow("413 Value");
    expect(() => limits.checkWrite("a", 1, "x".repeat(METADATA_BYTES_MAX - 1))).toThrow("413 Metadata");
    expect(violations).toHaveLength(3);
  });

  test("an invocation has so many subrequests and KV operations, and six connections", async () => {
    const violations: string[] = [];
    const few = new InvocationLimits("few", 2, (violation) => violations.push(violation));
    few.subrequest();
    few.subrequest();
    expect(() => few.subrequest()).toThrow("Too many subrequests");
    const many = new InvocationLimits("many", 10_000, (violation) => violations.push(violation));
    for (let i = 0; i < KV_OPERATIONS_MAX; i++) many.kvOperation();
    expect(() => many.kvOperation()).toThrow("Too many API requests");
    expect(violations).toHaveLength(2);
    const release = Promise.withResolvers<void>();
    const connections = Array.from({ length: 8 }, () => many.connect(() => release.promise));
    expect(many.report.queued).toBe(2);
    release.resolve();
    await Promise.all(connections);
    expect(many.report.connections).toBe(CONNECTIONS_MAX);
  });
});
