import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseConfig } from "@agarose/storage/config/config";
import { openStores } from "@agarose/storage/buckets/stores";
import { ReadWriteReadStore } from "@agarose/storage/buckets/read-write-read";
import { manifestName, REGIONS, startTestWorld, type World } from "../../world.ts";

let world: World;
/** Requests that carried a condition. */
let conditions = 0;

beforeEach(async () => {
  world = await startTestWorld();
  conditions = 0;
  // A store without conditional requests refuses their headers, as Backblaze B2 does.
  for (const region of REGIONS) {
    world.faults.set(region, (request, response) => {
      if (!request.headers["if-match"] && !request.headers["if-none-match"]) return false;
      conditions++;
      request.resume();
      response.writeHead(501).end();
      return true;
    });
  }
});

afterEach(() => world.close());

const options = { bytes: 1, contentType: "text/plain" };
const wrapped = (): ReadWriteReadStore => new ReadWriteReadStore(world.store("tokyo"));

test("conditions hold by reading before the write, and are not sent", async () => {
  const store = wrapped();
  const { etag } = await store.put("a", Buffer.from("1"), { ...options, ifNoneMatch: "*" });
  const refused = { code: "STORE_FAILED", details: { status: 412 } };
  await expect(store.put("a", Buffer.from("2"), { ...options, ifNoneMatch: "*" })).rejects.toMatchObject(refused);
  await expect(store.put("a", Buffer.from("2"), { ...options, ifMatch: '"other"' })).rejects.toMatchObject(refused);
  await expect(store.put("b", Buffer.from("2"), { ...options, ifMatch: etag! })).rejects.toMatchObject(refused);
  await store.put("a", Buffer.from("3"), { ...options, ifMatch: etag! });
  await expect(store.removeMatching("a", etag!)).rejects.toMatchObject(refused);
  expect((await world.read("tokyo", "a")).toString()).toBe("3");
  expect(conditions).toBe(0);
});

test("a writer whose bytes are replaced during its write is refused by the read after it", async () => {
  const inner = world.store("tokyo");
  const store = new ReadWriteReadStore(
    Object.assign(Object.create(inner) as typeof inner, {
      region: inner.region,
      get: inner.get.bind(inner),
      async put(...input: Parameters<typeof inner.put>) {
        const receipt = await inner.put(...input);
        await inner.put(input[0], Buffer.from("x"), options);
        return receipt;
      },
    }),
  );
  await expect(store.put("a", Buffer.from("1"), { ...options, ifNoneMatch: "*" })).rejects.toMatchObject({
    message: expect.stringContaining("just after the write"),
  });
});

test("of two writers that both found nothing, the one that wrote last has the name", async () => {
  let waiting: (() => void)[] = [];
  const clock = { after: (_ms: number, callback: () => void) => (waiting.push(callback), () => {}) };
  const store = new ReadWriteReadStore(world.store("tokyo"), clock);
  const writes = ["1", "2"].map((text) => store.put("claimed", Buffer.from(text), { ...options, ifNoneMatch: "*" }));
  const outcomes = Promise.allSettled(writes);
  // Both have read before either has written, or one is refused at once.
  await expect.poll(() => waiting.length).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (const resume of waiting) resume();
  waiting = [];
  const held = (await world.read("tokyo", "claimed")).toString();
  expect((await outcomes).map(({ status }) => status === "fulfilled")).toEqual(["1", "2"].map((text) => text === held));
});

test("put, replace, rm and gc work on regions that have no conditional requests", async () => {
  const json = { ...world.config, regions: world.config.regions.map((one) => ({ ...one, conditionalWrites: false })) };
  const { regions, code, stripeBytes, survive } = json;
  const config = parseConfig(JSON.stringify({ regions, code, stripeBytes, survive }), "agarose.config.json");
  process.env["AWS_ACCESS_KEY_ID"] = "world";
  process.env["AWS_SECRET_ACCESS_KEY"] = "world-secret";
  const stores = openStores(config);
  try {
    const body = randomBytes(5_000);
    expect(await world.put("plain", randomBytes(50), { config, stores })).toMatchObject({ generation: 1 });
    expect(await world.put("plain", body, { config, stores })).toMatchObject({ generation: 2, outcome: "stored" });
    expect((await world.get("plain")).equals(body)).toBe(true);
    for (const key of ["raced", "raced-again", "raced-once-more"]) {
      const puts = await Promise.allSettled(
        [1, 2].map((length) => world.put(key, randomBytes(length), { config, stores })),
      );
      const generations = puts.flatMap((put) => (put.status === "fulfilled" ? [put.value.generation] : []));
      expect(generations.length).toBeGreaterThan(0);
      expect(new Set(generations).size, "no two puts have one generation").toBe(generations.length);
      const held = new Set(
        await Promise.all(REGIONS.map(async (region) => `${await world.read(region, manifestName(key))}`)),
      );
      expect(held.size).toBe(1);
    }
    expect(conditions).toBe(0);
  } finally {
    for (const store of stores) store.close();
  }
});
