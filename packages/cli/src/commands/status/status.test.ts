/** `agarose status` against PoPs in workerd. */
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { manifestName } from "@agarose/core/format";
import type { PopReport } from "@agarose/storage/pops/pop-report";
import { DOWN, far, REGIONS, startTestWorld, type RunResult, type World } from "../../../test/world.ts";

const ADMIN_TOKEN = "admin-token-of-tests";
let world: World;
let pops: Pops;

beforeAll(async () => {
  world = await startTestWorld();
  await world.put("page", Buffer.alloc(3_000, 1));
  const regions = world.config.regions.map(({ name, url }) => ({ name, url, egressUsdPerGb: 0.09 }));
  const vars = { REGIONS: JSON.stringify(regions), ADMIN_TOKEN, UNSIGNED: "true" };
  pops = await startPops({ pops: ["fra", "lhr"].map((name) => ({ name, vars })) });
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: pops.pops }));
});

afterAll(async () => {
  await pops.dispose();
  await world.close();
});

const status = (
  env: Record<string, string> = { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN },
  ...args: string[]
): Promise<RunResult> => world.run(["status", "--json", ...args], env);
const popsOf = ({ stdout }: RunResult): PopReport[] => (JSON.parse(stdout.toString()) as { pops: PopReport[] }).pops;

test("a PoP whose Cron Trigger has never run is starting, and the exit code is 1", async () => {
  const run = await status();
  expect(run.code).toBe(1);
  const table = (await world.run(["status"], { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN })).stdout.toString();
  expect(table).toMatch(/^fra +STARTING/m);
  expect(table).not.toContain("not at work");
  expect(table).toMatch(/^fra, lhr: no period has run yet/m);
  expect(popsOf(run).map(({ problems }) => problems)).toEqual(
    Array.from({ length: 2 }, () => [expect.stringContaining("no period has run")]),
  );
});

test("PoPs that are well: exit code 0, a table, and JSON of the same", async () => {
  await fetch(`${pops.pops[0]!.url}/o/page`);
  await pops.cron();
  const run = await status();
  expect(run.code).toBe(0);
  const [fra] = popsOf(run);
  expect(fra).toMatchObject({ name: "fra", problems: [], notes: [], state: { epoch: 1, regionsDown: [] } });
  expect(fra!.state!.periodAgeSeconds).toBeLessThan(60);
  const table = (await world.run(["status"], { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN })).stdout.toString().split("\n");
  expect(table[0]).toMatch(/^PoP +epoch +policy +cache/);
  expect(table[1]).toMatch(/^fra +ok +1 /);
  expect(table[2]).toMatch(/^lhr +ok +1 /);
  expect(table[3]).toMatch(/^fra: saves a read, by estimate: caching \d+ ms and \$0\.\d\d of egress a million reads/);
  expect(table[4]).toMatch(/^fra: not at work: .*cooperation \(PEERS or PEER_KEY is not set\)/);
  // Each of the five ideas is on one of the two lines.
  expect(table[3]).toMatch(/late binding \d+ ms/);
  expect(table[4]).toMatch(/functional chunks \(no requested object is cached in part\)/);
  expect(table[4]).toMatch(/recovered chunks \(no region is down\)/);
  expect(table[5]).toMatch(/^fra: the best contents for the last period would have saved \d+ ms more a read$/);
  expect(fra!.state!.regretMs).toBeGreaterThanOrEqual(0);
  expect(table[6]).toMatch(/^fra: the busiest region gets \d+% more requests than the mean$/);
});

test("a region that is down is named, and the exit code is 1", async () => {
  world.faults.set(REGIONS[1], DOWN);
  await pops.cron();
  await pops.cron();
  const run = await status();
  world.faults.clear();
  expect(world.fired.get(REGIONS[1])).toBeGreaterThan(0);
  expect(run.code).toBe(1);
  expect(popsOf(run)[0]).toMatchObject({ problems: [`regions down: ${REGIONS[1]}`] });
  await pops.cron();
  await pops.cron();
  expect((await status()).code).toBe(0);
});

test("asks only for health without a token, reports a wrong token, and prefers a PoP's own", async () => {
  const without = await status({ AGAROSE_ADMIN_TOKEN: "" });
  expect(without.code).toBe(0);
  expect(popsOf(without)[0]).toMatchObject({
    problems: [],
    notes: ["without AGAROSE_ADMIN_TOKEN, only its health was checked"],
  });
  const wrong = await status({ AGAROSE_ADMIN_TOKEN: "wrong", AGAROSE_ADMIN_TOKEN_FRA: ADMIN_TOKEN });
  expect(wrong.code).toBe(1);
  expect(popsOf(wrong)[0]).toMatchObject({ problems: [] });
  expect(popsOf(wrong)[1]).toMatchObject({ problems: [expect.stringMatching(/^FORBIDDEN: /)] });
});

/** An address where no server listens. */
async function closedPort(): Promise<string> {
  const server = createServer();
  const url = await listenLocally(server);
  server.close();
  await once(server, "close");
  return url;
}

test("a PoP that does not answer, and something else at its address, are wrong; the others are still reported", async () => {
  const text = await readFile(world.configPath, "utf8");
  const other = [pops.pops[0]!, { name: "gone", url: await closedPort() }, { name: "s3", url: world.endpoint.url }];
  const path = join(world.dir, "other.json");
  await writeFile(path, JSON.stringify({ ...(JSON.parse(text) as object), pops: other }));
  const run = await world.run(["status", "--json", "--config", path], { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN });
  expect(run.code).toBe(1);
  const [fra, gone, s3] = popsOf(run);
  expect(fra!.problems).toEqual([]);
  expect(gone!.problems[0]).toContain("ECONNREFUSED");
  expect(s3!.problems[0]).toContain("refused the request with 403");
});

test("repair --queued heals what a PoP has found a region to lack, because PoPs cannot write", async () => {
  const env = { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN };
  await world.put("late", Buffer.alloc(3_000, 1));
  const old = await world.read(REGIONS[0], manifestName("late"));
  await world.put("late", Buffer.alloc(3_000, 2));
  await world.tamper(REGIONS[0], manifestName("late"), () => old);
  // A look-up ends with the majority, and only that of the first read sees the region that is late.
  for (const region of REGIONS.slice(4)) world.faults.set(region, far(200));
  await vi.waitFor(async () => {
    const response = await fetch(`${pops.pops[0]!.url}/o/late`);
    expect(new Uint8Array(await response.arrayBuffer())[0]).toBe(2);
    const { behind } = await statusOfPop();
    expect(behind).toEqual([{ key: "late", regions: [REGIONS[0]] }]);
  }, 20_000);
  world.faults.clear();
  const repaired = await world.run(["repair", "--queued", "--json"], env);
  expect(JSON.parse(repaired.stdout.toString())).toMatchObject({ repaired: 1, failed: 0 });
  expect(await world.read(REGIONS[0], manifestName("late"))).toEqual(
    await world.read(REGIONS[1], manifestName("late")),
  );
});

async function statusOfPop(): Promise<{ behind?: unknown }> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  return (await (await fetch(`${pops.pops[0]!.url}/v1/status`, { headers })).json()) as { behind?: unknown };
}

test("a PoP that has spent its egress for fills is a warning, which names both numbers", async () => {
  const vars = {
    REGIONS: JSON.stringify(world.config.regions.map(({ name, url }) => ({ name, url }))),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    POLICY: "exact",
    FILL_CLIENTS_MIN: "1",
    FILL_EGRESS_BYTES_PER_DAY: "3100",
  };
  const spent = await startPops({ pops: [{ name: "fra", vars }] });
  // Where the regions are as near as the cache, it depends on the measured milliseconds whether caching pays.
  for (const region of REGIONS) world.faults.set(region, far(40));
  try {
    const path = join(world.dir, "spent.json");
    const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
    await writeFile(path, JSON.stringify({ ...config, pops: spent.pops }));
    // Not `/o/`, whose chunks a fill takes without egress.
    await (await fetch(`${spent.pops[0]!.url}/v1/read/page`)).arrayBuffer();
    await spent.cron();
    const env = { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN };
    const run = await world.run(["status", "--config", path, "--json"], env);
    const [report] = popsOf(run);
    expect(report!.state!.fillEgress).toMatchObject({ bytes: 3_000, bytesPerDayMax: 3_100 });
    expect(run.code, "nothing is wrong").toBe(0);
    const { stdout } = await world.run(["status", "--config", path], env);
    expect(stdout.toString()).toContain("fra: warning: fills have fetched 2.9 KiB of the 3.0 KiB");
  } finally {
    world.faults.clear();
    await spent.dispose();
  }
});

test("a configuration without PoPs is refused", async () => {
  const path = join(world.dir, "none.json");
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(path, JSON.stringify({ ...config, pops: [] }));
  expect((await world.run(["status", "--config", path])).code).toBe(2);
});
