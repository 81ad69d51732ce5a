import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { ListedObject } from "@agarose/storage/buckets/store";
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { REGIONS, startScrubberWorld, type ScrubberWorld } from "../test/scrubber-world.ts";

let world: ScrubberWorld;
afterEach(() => world.close());

/** Inside a manifest, one stripe, and several. */
const LENGTHS = [0, 10, 50_000, 99_999, 250_000, 1_000_000];

const SMALL_PARTS = { age: "1d", objectsPerPart: 2 };

async function chunksOf(region: string): Promise<ListedObject[]> {
  const listed: ListedObject[] = [];
  for await (const object of world.store(region).list("chunks/")) listed.push(object);
  return listed;
}

const withoutTimes = (objects: readonly ListedObject[]) => objects.map(({ name, etag }) => ({ name, etag }));

test("the schedule begins a walk, which makes a region that lost its chunks whole again", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  const before = await chunksOf("virginia");
  expect(before.length).toBeGreaterThan(0);
  expect(await world.store("virginia").remove(before.map(({ name }) => name))).toEqual([]);
  expect(await chunksOf("virginia")).toEqual([]);

  const startMs = Date.now();
  await world.schedule();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: LENGTHS.length, damaged: 0, failed: 0, unchecked: 0 });
  expect(totals.repaired).toBeGreaterThan(0);
  expect(withoutTimes(await chunksOf("virginia"))).toEqual(withoutTimes(before));
  await world.agarose("verify", "--prefix", "objects/");
});

test("a walk in parts finds wrong bytes, and counts each object once", async () => {
  world = await startScrubberWorld({ options: SMALL_PARTS });
  await world.put([...LENGTHS, ...LENGTHS]);
  const [, victim] = await chunksOf("tokyo");
  const { name, bytes } = victim!;
  await world.store("tokyo").put(name, new Uint8Array(bytes), { bytes, contentType: "application/octet-stream" });

  const startMs = Date.now();
  await world.schedule();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: 2 * LENGTHS.length, repaired: 1, damaged: 0, failed: 0 });
  expect(totals.readBytes).toBeGreaterThan(0);
  expect(withoutTimes(await chunksOf("tokyo"))).toContainEqual({ name, etag: victim!.etag });
});

/** Of these, a range is worth another cut when it has more than eight objects. */
const SMALL_RANGES = { age: "1d", objectsPerPart: 2, concurrency: 2 };
const MANY = Array.from({ length: 24 }, (_, i) => LENGTHS[i % LENGTHS.length]!);

const lines = (kind: string): number => world.logs.filter((line) => line.includes(kind)).length;

test.each(["embedded", "versitygw"] as const)(
  "%s: ranges side by side, in Workflows that end early, look at each object once and make a region whole",
  async (buckets) => {
    if (buckets === "versitygw" && !(await findVersitygw())) return;
    world = await startScrubberWorld({ buckets, options: { ...SMALL_RANGES, stepsMax: 4 } });
    await world.put(MANY);
    const before = await chunksOf("virginia");
    await world.store("virginia").remove(before.map(({ name }) => name));

    const { totals, ranges, running, parents } = await world.walkedBySchedule();

    expect([ranges > 2, running, parents > 1]).toEqual([true, 2, true]);
    expect(totals).toMatchObject({ objects: MANY.length, damaged: 0, failed: 0, unchecked: 0 });
    expect(withoutTimes(await chunksOf("virginia"))).toEqual(withoutTimes(before));
    await world.agarose("verify", "--prefix", "objects/");
  },
);

test("children that are terminated are replaced, and a second schedule joins: every object once, nothing stored twice", async () => {
  world = await startScrubberWorld({ options: SMALL_RANGES });
  await world.put(MANY);
  const before = await chunksOf("virginia");
  await world.store("virginia").remove(before.map(({ name }) => name));
  const stored = new Map<string, number>();
  world.faults.set("virginia", ({ method, url = "" }) => {
    if (method === "PUT" && url.includes("/chunks/")) stored.set(url, (stored.get(url) ?? 0) + 1);
    return false;
  });

  const startMs = Date.now();
  const first = await world.schedule();
  const second = await world.schedule();
  const killed = new Set<string>();
  await expect
    .poll(async () => {
      const { open, current, last } = await world.state();
      expect([first, second]).toContain(current!.id);
      for (const index of Array.from({ length: open?.ranges ?? 0 }).keys()) {
        const id = `${open!.id}-${index}-1`;
        if (killed.size === 4) break;
        const isTerminated = !killed.has(id) && (await world.terminate(id));
        if (isTerminated) killed.add(id);
      }
      return last?.startMs ?? 0;
    })
    .toBeGreaterThanOrEqual(startMs);
  const { totals } = await world.walked(startMs);

  expect(killed.size).toBeGreaterThan(0);
  expect(lines('"status":"terminated"')).toBeGreaterThanOrEqual(killed.size);
  expect(lines("is under way")).toBe(1);
  expect(totals).toMatchObject({ objects: MANY.length, damaged: 0, failed: 0 });
  expect(withoutTimes(await chunksOf("virginia"))).toEqual(withoutTimes(before));
  expect([...stored.values()].filter((times) => times > 1)).toEqual([]);
});

test("a region that hangs in one range delays that one alone, and no object is left out", async () => {
  world = await startScrubberWorld({ options: { objectsPerPart: 4, concurrency: 4 } });
  await world.put(Array.from({ length: 40 }, () => 10));
  let hung: string | undefined;
  world.faults.set("tokyo", ({ url = "" }) => {
    const query = new URL(url, "http://buckets").searchParams;
    const after = query.get("start-after") ?? "";
    // The first part of a range begins behind its cut, and samples begin behind no key.
    if (query.get("prefix") === "chunks/" && after.endsWith("!")) hung ??= after;
    return hung !== undefined && after === hung;
  });

  const startMs = Date.now();
  await world.schedule();
  const isAlone = async (): Promise<boolean> => {
    const { ranges, rangesDone, rangesRunning } = (await world.state()).open ?? {};
    return ranges! > 3 && rangesDone === ranges! - 1 && rangesRunning === 1;
  };
  await expect.poll(isAlone, { message: "the others are done" }).toBe(true);
  const { totals } = await world.walked(startMs);

  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(totals).toMatchObject({ objects: 40, damaged: 0, failed: 0 });
});

test("while a region refuses everything, nothing is written, and the metrics say that objects are unchecked", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  world.faults.set("dublin", (_request, response) => {
    response.writeHead(500).end();
    return true;
  });

  const startMs = Date.now();
  await world.schedule();
  const { totals } = await world.walked(startMs);

  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  expect(totals).toMatchObject({ objects: LENGTHS.length, repaired: 0, unchecked: LENGTHS.length });
  const metrics = await (await world.ask("/metrics")).text();
  expect(metrics).toContain(`agarose_scrub_unchecked_objects ${LENGTHS.length}\n`);
});

test("an object whose chunks a Worker cannot hold fails without a read, and the rest is repaired", async () => {
  world = await startScrubberWorld();
  await world.put([68_000_000, 250_000]);
  const chunks = await chunksOf("virginia");
  expect(await world.store("virginia").remove(chunks.map(({ name }) => name))).toEqual([]);
  let [reads, others] = [0, 0];
  for (const region of REGIONS) {
    world.faults.set(region, ({ method, url = "" }) => {
      const isRead = method === "GET" && !url.includes("list-type") && url.includes("/chunks/");
      if (isRead && url.includes("0.bin")) reads++;
      if (isRead && url.includes("1.bin")) others++;
      return false;
    });
  }

  const startMs = Date.now();
  await world.schedule();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: 2, repaired: 1, failed: 1 });
  expect(others, "of the object that is repaired").toBeGreaterThan(0);
  expect(reads, "of the object that cannot be repaired here").toBe(0);
});

test("one walk is under way at a time, and only the owner of the token may ask", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  let isHeld = true;
  world.faults.set("sydney", (_request, response) => {
    const answer = (): void => void (isHeld ? setTimeout(answer, 50) : response.writeHead(500).end());
    answer();
    return true;
  });

  expect((await world.ask("/v1/scrub", { token: "another-token-of-16+" })).status).toBe(401);
  const startMs = Date.now();
  const first = await world.ask("/v1/scrub", { method: "POST" });
  const { id } = (await first.json()) as { id: string };
  expect(first.status).toBe(201);
  await expect.poll(() => world.fired.get("sydney") ?? 0, { timeout: 30_000 }).toBeGreaterThan(0);
  const second = await world.ask("/v1/scrub", { method: "POST" });
  expect(second.status).toBe(200);
  expect(await second.json()).toEqual({ id, isNew: false });
  isHeld = false;
  await world.walked(startMs);
  await expect.poll(async () => (await world.ask("/v1/scrub", { method: "POST" })).status).toBe(201);
});

test("a scrubber that was deployed before the deployment had keys writes nothing", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  await world.agarose("keys", "new", join(tmpdir(), `scrubber-${crypto.randomUUID()}.pem`));
  const lost = await chunksOf("virginia");
  await world.store("virginia").remove(lost.map(({ name }) => name));

  const startMs = Date.now();
  await world.schedule();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: LENGTHS.length, repaired: 0 });
  expect(totals.failed).toBeGreaterThan(0);
  expect(await chunksOf("virginia")).toEqual([]);
});
