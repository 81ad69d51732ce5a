/** What the service worker's client measures, and what its PoP in workerd makes of it. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { systemClock, systemSha256 } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { BATCH_MS, ObjectClient } from "@agarose/sw/testing";
import { REGIONS, startTestWorld, type World } from "./world.ts";

let world: World;
let pops: Pops;

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 1_000_000 });
  const regions = world.config.regions.map(({ name, url }) => ({ name, url }));
  const vars = {
    REGIONS: JSON.stringify(regions),
    UNSIGNED: "true",
    ADMIN_TOKEN: "admin-token-of-tests",
    TELEMETRY_KEY: "telemetry-key-of-tests",
  };
  pops = await startPops({ pops: [{ name: "fra", vars }] });
});

afterAll(async () => {
  await pops.dispose();
  await world.close();
});

test("the PoP takes the client's reports with the token of its plan, and learns the time per byte", async () => {
  const answers: Promise<Response>[] = [];
  let reportedBytes = 0;
  const client = new ObjectClient({ prefix: "/ec/", pops: pops.pops, regions: [], delta: undefined } as never, {
    fetch: (url, init) => fetch(url, init),
    post: (url, report) => {
      const headers = { "content-type": "text/plain" };
      for (const { samples, meanBytes } of report.regions) reportedBytes += samples * meanBytes;
      answers.push(fetch(url, { method: "POST", body: JSON.stringify(report), headers }));
    },
    // Reports go out at once.
    clock: { ...systemClock, after: (ms, callback) => systemClock.after(ms === BATCH_MS ? 0 : ms, callback) },
    sha256: systemSha256,
    random: Math.random,
    codec: async () => javascriptCodec(),
    emit: () => {},
    savesData: () => false,
  });
  // A slow transfer: large chunks take longer.
  let delayed = 0;
  for (const region of REGIONS) {
    world.faults.set(region, async (_request, _response, name) => {
      if (!name.startsWith("chunks/large")) return false;
      delayed++;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return false;
    });
  }
  for (const [key, bytes] of [
    ["small", 4_000],
    ["large", 900_000],
  ] as const) {
    const body = randomBytes(bytes);
    await world.put(key, body);
    const answer = await client.answer({ key, method: "GET", headers: new Headers() });
    expect(Buffer.compare(new Uint8Array(await new Response(answer.body).arrayBuffer()), body)).toBe(0);
  }
  await vi.waitFor(() => expect(reportedBytes, "chunks of the large object").toBeGreaterThanOrEqual(900_000), 60_000);
  expect(answers.length).toBeGreaterThanOrEqual(2);
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([204]));
  await pops.cron();
  const headers = { authorization: "Bearer admin-token-of-tests" };
  const status = await fetch(`${pops.pops[0]!.url}/v1/status`, { headers });
  const { regions } = (await status.json()) as { regions: { msPerByte: number; down: boolean }[] };
  expect(delayed).toBeGreaterThanOrEqual(4);
  // 300 ms for 225,000 bytes.
  const perByte = regions.map(({ msPerByte }) => msPerByte);
  expect(Math.max(...perByte)).toBeGreaterThan(150 / 225_000);
  expect(Math.max(...perByte)).toBeLessThan(900 / 225_000);
  expect(regions.some(({ down }) => down)).toBe(false);
});
