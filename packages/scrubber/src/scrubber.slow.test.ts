import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { ListedObject } from "@agarose/storage/buckets/store";
import { REGIONS, startScrubberWorld, type ScrubberWorld } from "../test/scrubber-world.ts";

let world: ScrubberWorld;
afterEach(() => world.close());

/** Inside a manifest, one stripe, and several. */
const LENGTHS = [0, 10, 50_000, 99_999, 250_000, 1_000_000];

const SMALL_PARTS = `
  import { createScrubber } from "@agarose/scrubber";
  import config from "./agarose.config.json";
  const { worker, ScrubWalk } = createScrubber(config, { age: "1d", objectsPerPart: 2 });
  export { ScrubWalk };
  export default worker;
`;

async function chunksOf(region: string): Promise<ListedObject[]> {
  const listed: ListedObject[] = [];
  for await (const object of world.store(region).list("chunks/")) listed.push(object);
  return listed;
}

const withoutTimes = (objects: readonly ListedObject[]) => objects.map(({ name, etag }) => ({ name, etag }));

test("a Cron Trigger begins a walk, which makes a region that lost its chunks whole again", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  const before = await chunksOf("virginia");
  expect(before.length).toBeGreaterThan(0);
  expect(await world.store("virginia").remove(before.map(({ name }) => name))).toEqual([]);
  expect(await chunksOf("virginia")).toEqual([]);

  const startMs = Date.now();
  await world.cron();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: LENGTHS.length, damaged: 0, failed: 0, unchecked: 0 });
  expect(totals.repaired).toBeGreaterThan(0);
  expect(withoutTimes(await chunksOf("virginia"))).toEqual(withoutTimes(before));
  await world.agarose("verify", "--prefix", "objects/");
});

test("a walk in parts finds wrong bytes, and counts each object once", async () => {
  world = await startScrubberWorld(SMALL_PARTS);
  await world.put([...LENGTHS, ...LENGTHS]);
  const [, victim] = await chunksOf("tokyo");
  const { name, bytes } = victim!;
  await world.store("tokyo").put(name, new Uint8Array(bytes), { bytes, contentType: "application/octet-stream" });

  const startMs = Date.now();
  await world.cron();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: 2 * LENGTHS.length, repaired: 1, damaged: 0, failed: 0 });
  expect(totals.readBytes).toBeGreaterThan(0);
  expect(withoutTimes(await chunksOf("tokyo"))).toContainEqual({ name, etag: victim!.etag });
});

const FEW_STEPS = SMALL_PARTS.replace("objectsPerPart: 2", "objectsPerPart: 2, stepsMax: 4");

test("a walk that needs more steps than a Workflow has is continued by the next ones, over every object once", async () => {
  world = await startScrubberWorld(FEW_STEPS);
  const lengths = [...LENGTHS, ...LENGTHS];
  await world.put(lengths);
  const state = async () =>
    (await (await world.ask("/v1/scrub")).json()) as {
      current: { status: string } | null;
      open: { startMs: number; position: { totals: { objects: number } } } | null;
    };
  const counts: number[] = [];
  const startMs = Date.now();
  // A Workflow of four steps walks over two parts of two objects.
  for (let walk = 0; walk < 3; walk++) {
    await world.cron();
    await expect.poll(async () => (await state()).current?.status, { timeout: 30_000 }).toBe("complete");
    const { open } = await state();
    counts.push(open?.position.totals.objects ?? -1);
    const metrics = await (await world.ask("/metrics")).text();
    if (open) expect(metrics).toContain(`agarose_scrub_open_walk_start_timestamp_seconds ${open.startMs / 1000}\n`);
  }
  await world.cron();
  const { totals } = await world.walked(startMs);
  expect(counts.slice(0, 2)).toEqual([4, 8]);
  expect(totals).toMatchObject({ objects: lengths.length, damaged: 0, failed: 0, unchecked: 0 });
  expect(await (await world.ask("/metrics")).text()).toContain("agarose_scrub_open_walk_start_timestamp_seconds 0\n");
});

test("while a region refuses everything, nothing is written, and the metrics say that objects are unchecked", async () => {
  world = await startScrubberWorld();
  await world.put(LENGTHS);
  world.faults.set("dublin", (_request, response) => {
    response.writeHead(500).end();
    return true;
  });

  const startMs = Date.now();
  await world.cron();
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
  await world.cron();
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
  await wait(200);
  const second = await world.ask("/v1/scrub", { method: "POST" });
  expect(second.status).toBe(200);
  expect(await second.json()).toEqual({ id, isNew: false });
  expect(world.fired.get("sydney")).toBeGreaterThan(0);
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
  await world.cron();
  const { totals } = await world.walked(startMs);

  expect(totals).toMatchObject({ objects: LENGTHS.length, repaired: 0 });
  expect(totals.failed).toBeGreaterThan(0);
  expect(await chunksOf("virginia")).toEqual([]);
});
