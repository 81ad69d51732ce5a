/** The Content Security Policies of docs/guides/web-app.md, and others, on the page and on the worker's script. */
import { expect } from "@playwright/test";
import type { CspReport } from "../fixtures/origin-host.ts";
import { read, sha256, takeServiceWorker, type Answer } from "../fixtures/app.ts";
import type { LocalWorld } from "@agarose/dev-world/client";
import type { BrowserCase, Surroundings } from "./case.ts";

const REGION_DOWN = "frankfurt";

/** An origin that no policy allows. */
const FORBIDDEN = "https://elsewhere.test/";
const isOfForbidden = (report: CspReport): boolean => report["blocked-uri"].startsWith(FORBIDDEN);

interface Policy {
  readonly wasm: boolean;
  readonly regions: boolean;
}

function policyOf(world: LocalWorld, { wasm, regions }: Policy): string {
  const allowed = [...world.pops.map(({ url }) => url), ...(regions ? regionOrigins(world) : [])];
  return [
    "default-src 'none'",
    `script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ""}`,
    "worker-src 'self'",
    // Some browsers ask for /favicon.ico.
    "img-src 'self'",
    `connect-src 'self' ${allowed.join(" ")}`,
    "report-uri /csp-report",
  ].join("; ");
}

function regionOrigins(world: LocalWorld): string[] {
  return world.regions.map(({ endpoint }) => endpoint);
}

async function readUnder(
  policy: Policy,
  key: string,
  { openAppServedWith, world }: Surroundings,
): Promise<{ answer: Answer; reports: readonly CspReport[] }> {
  const { page, reports } = await openAppServedWith({ "content-security-policy": policyOf(world, policy) });
  await takeServiceWorker(page);
  const answer = await read(page, key);
  // Reports are sent beside the read: the one of this request is the last to come.
  await page.evaluate((url) => fetch(url).then(String, String), FORBIDDEN);
  await expect.poll(() => reports.some(isOfForbidden)).toBe(true);
  return { answer, reports: reports.filter((report) => !isOfForbidden(report)) };
}

export const cspCases: readonly BrowserCase[] = [
  ...[true, false].map((wasm): BrowserCase => ({
    name: `with script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ""} a degraded read is decoded in ${
      wasm ? "WebAssembly" : "JavaScript"
    }`,
    async run(surroundings) {
      const { folder, putRandom, world } = surroundings;
      const content = await putRandom(`${folder}csp/${wasm}`, 5_000_000);
      await world.region(REGION_DOWN).down();
      const { answer, reports } = await readUnder({ wasm, regions: true }, `${folder}csp/${wasm}`, surroundings);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(answer.headers["server-timing"], "something was lost").toContain("decode;");
      const refused = reports.map((report) => `${report["effective-directive"]} ${report["blocked-uri"]}`);
      expect(new Set(refused)).toEqual(new Set(wasm || !surroundings.workersReport ? [] : ["script-src wasm-eval"]));
    },
  })),
  {
    name: "without the buckets in connect-src no bucket is asked, and the read fails with a code",
    async run(surroundings) {
      const { folder, putRandom, world } = surroundings;
      await putRandom(`${folder}csp/connect`, 1_000_000);
      await world.reset();
      const policy = { wasm: true, regions: false };
      const { answer, reports } = await readUnder(policy, `${folder}csp/connect`, surroundings);
      expect(answer.status).toBe(502);
      expect(answer.text).toContain("NOT_ENOUGH_CHUNKS");
      const names = world.regions.map(({ name }) => name);
      const asked = (await world.log()).filter(({ from, to }) => from === "client" && names.includes(to));
      expect(asked).toEqual([]);
      const refused = reports.map((report) => new URL(report["blocked-uri"]).origin);
      expect(refused.length > 0).toBe(surroundings.workersReport);
      expect(regionOrigins(world)).toEqual(expect.arrayContaining([...new Set(refused)]));
    },
  },
];
