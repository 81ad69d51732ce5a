/** The Content Security Policies that docs/SECURITY.md names, on the page and on the worker's script. */
import type { BrowserContext } from "@playwright/test";
import { startAppHost, type CspReport } from "./browsers/app-host.ts";
import { read, sha256, takeServiceWorker, type Answer } from "./fixtures/app.ts";
import { expect, test } from "./fixtures/test.ts";
import type { World } from "./fixtures/world.ts";

const REGION_DOWN = "frankfurt";

/** An origin that no policy allows. */
const FORBIDDEN = "https://elsewhere.test/";
const isOfForbidden = (report: CspReport): boolean => report["blocked-uri"].startsWith(FORBIDDEN);

interface Policy {
  readonly wasm: boolean;
  readonly regions: boolean;
}

function policyOf(world: World, { wasm, regions }: Policy): string {
  const allowed = [...world.pops.map(({ url }) => url), ...(regions ? regionOrigins(world) : [])];
  return [
    "default-src 'none'",
    `script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ""}`,
    "worker-src 'self'",
    `connect-src 'self' ${allowed.join(" ")}`,
    "report-uri /csp-report",
  ].join("; ");
}

function regionOrigins(world: World): string[] {
  return world.regions.map(({ endpoint }) => endpoint);
}

async function readUnder(
  policy: Policy,
  key: string,
  { context, world }: { context: BrowserContext; world: World },
): Promise<{ answer: Answer; reports: readonly CspReport[] }> {
  const host = await startAppHost(world.demo, { "content-security-policy": policyOf(world, policy) });
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await takeServiceWorker(page);
    const answer = await read(page, key);
    // Reports are sent beside the read: the one of this request is the last to come.
    await page.evaluate((url) => fetch(url).catch(() => {}), FORBIDDEN);
    await expect.poll(() => host.reports.some(isOfForbidden)).toBe(true);
    return { answer, reports: host.reports.filter((report) => !isOfForbidden(report)) };
  } finally {
    await host.close();
  }
}

for (const wasm of [true, false]) {
  test(`with script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ""} a degraded read is decoded in ${
    wasm ? "WebAssembly" : "JavaScript"
  }`, async ({ context, world, putRandom }) => {
    const content = await putRandom(`csp/${wasm}`, 5_000_000);
    await world.breakRegion(REGION_DOWN, { down: true });
    const { answer, reports } = await readUnder({ wasm, regions: true }, `csp/${wasm}`, { context, world });
    expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(answer.headers["x-agarose-read"]).toBe("degraded");
    const refused = reports.map((report) => `${report["effective-directive"]} ${report["blocked-uri"]}`);
    expect(new Set(refused)).toEqual(new Set(wasm ? [] : ["script-src wasm-eval"]));
  });
}

test("without the buckets in connect-src no bucket is asked, and the read fails with a code", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("csp/connect", 1_000_000);
  await world.reset();
  const { answer, reports } = await readUnder({ wasm: true, regions: false }, "csp/connect", { context, world });
  expect(answer.status).toBe(502);
  expect(answer.text).toContain("NOT_ENOUGH_CHUNKS");
  const names = world.regions.map(({ name }) => name);
  const asked = (await world.log()).filter(({ from, to }) => from === "client" && names.includes(to));
  expect(asked).toEqual([]);
  const refused = reports.map((report) => new URL(report["blocked-uri"]).origin);
  expect(refused.length).toBeGreaterThan(0);
  expect(regionOrigins(world)).toEqual(expect.arrayContaining([...new Set(refused)]));
});
