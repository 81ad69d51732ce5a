/** How many paid operations one hostile request of each route takes: what docs/reference/request-costs.md says. */
import { setTimeout } from "node:timers/promises";
import { mapFile } from "@agarose/core/testing";
import { zxyToTileId } from "pmtiles";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOSTILE_REQUESTS, type HostileRequest, type RequestCost } from "../scripts/hostile-costs.ts";
import { ROUTES } from "../src/http/routes.ts";
import { takeCounts } from "./platform/counts.ts";
import type { InvocationReport } from "./platform/platform-limits.ts";
import { clientHeaders, randomBytes, readBundle, startWorld, type TestWorld } from "./world.ts";

const BYTES = 8 * 2 ** 20;
const STRIPE_BYTES = 4 * 2 ** 20;
const LARGE = ["large/0", "large/1", "large/2", "large/3", "large/4"];
const SMALL = Array.from({ length: 100 }, (_, i) => `small/${i}`);
const SMALL_BYTES = 20_000;
/** While an answer continues, what was counted of it is handed on at this interval. */
const HAND_OVER_MS = 2_000;
/** Counts are handed on two seconds after the request. */
const FLUSH_MS = 2_500;
/** The costs that each hand-over repeats. */
const PER_HAND_OVER: ReadonlySet<keyof RequestCost> = new Set(["objectCalls", "rows"]);
const ADDRESS = "198.51.100.7";

let world: TestWorld;
let version: string;
beforeAll(async () => {
  world = await startWorld(
    {
      MANIFEST_TTL_SECONDS: "3600",
      PRIVATE_PREFIXES: '["private/"]',
      READ_TOKEN: "read-token-of-tests",
      FILL_CLIENTS_MIN: "2",
    },
    { limited: true },
  );
  for (const [i, key] of LARGE.entries()) {
    ({ version } = await world.put(key, randomBytes(BYTES, i + 1), { stripeBytes: STRIPE_BYTES }));
  }
  for (const [i, key] of SMALL.entries()) await world.put(key, randomBytes(SMALL_BYTES, i + 100));
  const map = mapFile(zxyToTileId, (id) => randomBytes(20_000, id));
  await world.put("map", map, { stripeBytes: STRIPE_BYTES });
  // The work that an isolate does once, and all manifests but those of keys that the request is the first to read.
  const headers = clientHeaders("192.0.2.1");
  for (const key of LARGE.slice(1)) await readBundle(`${world.url}/v1/read/${key}`, key, headers);
  await (await fetch(`${world.url}${plansOf(SMALL)}`, { headers })).arrayBuffer();
  await setTimeout(FLUSH_MS);
  await readBundle(`${world.url}/v1/read/${LARGE[1]}`, LARGE[1]!, clientHeaders(ADDRESS));
  // One key after the other is confirmed by a majority, and its manifest stored, which counts for the newest request.
  for (let requests = -1; requests !== world.buckets.requests.length || (await isBusy());) {
    requests = world.buckets.requests.length;
    await setTimeout(FLUSH_MS);
  }
});
afterAll(() => world.close());

const plansOf = (keys: readonly string[], more = ""): string =>
  `/v1/plans?${new URLSearchParams(keys.map((key) => ["key", key]))}${more}`;

interface Sent extends RequestInit {
  readonly path: string;
  readonly status: number;
}

const range = (value: string): RequestInit => ({ headers: { range: value } });
const guess: RequestInit = { headers: { authorization: "Bearer a-guess-of-the-token" } };

/** How each row of the table is sent, after the rows above it. */
const SENT: Readonly<Record<HostileRequest, () => Sent>> = {
  "GET /o/, one byte, the first request for the key": () => ({
    path: `/o/${LARGE[0]}`,
    status: 206,
    ...range("bytes=0-0"),
  }),
  "GET /o/, one byte": () => ({ path: `/o/${LARGE[1]}`, status: 206, ...range("bytes=5000000-5000000") }),
  "GET /o/, 16 ranges of one byte": () => {
    const starts = Array.from({ length: 16 }, (_, i) => (i * BYTES) / 16);
    return { path: `/o/${LARGE[2]}`, status: 206, ...range(`bytes=${starts.map((start) => `${start}-${start}`)}`) };
  },
  "GET /o/, whole, 8 MiB": () => ({ path: `/o/${LARGE[3]}`, status: 200 }),
  "GET /o/, If-None-Match: *": () => ({ path: `/o/${LARGE[1]}`, status: 304, headers: { "if-none-match": "*" } }),
  "HEAD /o/": () => ({ path: `/o/${LARGE[1]}`, status: 200, method: "HEAD" }),
  "GET /o/, a key without an object": () => ({ path: "/o/nothing", status: 404 }),
  "GET /o/, the same key again within 10 s": () => ({ path: "/o/nothing", status: 404 }),
  "GET /o/, a private key, a wrong token": () => ({ path: "/o/private/x", status: 403, ...guess }),
  "GET /t/, the first tile of an archive": () => ({ path: "/t/map/3/2/1", status: 200 }),
  "GET /v1/read/, whole, 8 MiB": () => ({ path: `/v1/read/${LARGE[1]}`, status: 200 }),
  "GET /v1/read/, one byte": () => ({ path: `/v1/read/${LARGE[4]}?range=bytes%3D5000000-5000000`, status: 200 }),
  "GET /v1/read/, a key without an object": () => ({ path: "/v1/read/nothing-either", status: 404 }),
  "GET /v1/plans, 100 objects": () => ({ path: plansOf(SMALL), status: 200 }),
  "GET /v1/plans, 100 objects of 20 kB with bodies": () => ({ path: plansOf(SMALL, "&bodies=1"), status: 200 }),
  "GET /v1/plans, 100 keys without an object": () => {
    return { path: plansOf(Array.from({ length: 100 }, (_, i) => `ghosts/${i}`)), status: 200 };
  },
  "GET /v1/chunk/, not cached": () => ({
    path: `/v1/chunk/${LARGE[1]}?version=${version}&stripe=0&chunk=0`,
    status: 404,
  }),
  "POST /v1/peers, without a signature": () => ({ path: "/v1/peers", status: 403, method: "POST", body: "{}" }),
  "GET /healthz": () => ({ path: "/healthz", status: 200 }),
  "GET /v1/status, a wrong token": () => ({ path: "/v1/status", status: 401, ...guess }),
  "GET /metrics, a wrong token": () => ({ path: "/metrics", status: 401, ...guess }),
  "POST /v1/purge, a wrong token": () => ({ path: "/v1/purge", status: 401, method: "POST", body: "{}", ...guess }),
  "GET of a path without a route": () => ({ path: "/wp-login.php", status: 404 }),
};

/** Whether work of requests before goes on. */
async function isBusy(): Promise<boolean> {
  await takeCounts(world);
  await fetch(`${world.url}/healthz`);
  await setTimeout(FLUSH_MS);
  return subrequestsOf((await takeCounts(world)).invocations) > 0;
}

function subrequestsOf(invocations: readonly InvocationReport[]): number {
  return invocations.reduce((sum, { subrequests }) => sum + subrequests, 0);
}

/** The operations of the request until its counts have been handed on, and how often they may have been. */
async function costOf({ path, status, headers, ...init }: Sent): Promise<RequestCost & { readonly handOvers: number }> {
  await takeCounts(world);
  world.buckets.requests.length = 0;
  world.buckets.sentBytes = 0;
  const startMs = performance.now();
  const response = await fetch(`${world.url}${path}`, { ...init, headers: { ...clientHeaders(ADDRESS), ...headers } });
  await response.arrayBuffer();
  const ms = performance.now() - startMs;
  expect(response.status, path).toBe(status);
  await setTimeout(FLUSH_MS);
  const parts = [await takeCounts(world)];
  // A busy machine hands counts on later, and they must not count as those of the next row.
  for (let isQuiet = false; !isQuiet;) {
    await setTimeout(500);
    const late = await takeCounts(world);
    parts.push(late);
    isQuiet = late.rowsWritten === 0 && Object.values(late.objectCalls).every((calls) => calls === 0);
  }
  const invocations = parts.flatMap((part) => part.invocations);
  const rowsWritten = parts.reduce((all, part) => all + part.rowsWritten, 0);
  const calls = parts.flatMap((part) => Object.values(part.objectCalls));
  return {
    subrequests: subrequestsOf(invocations),
    gets: world.buckets.requests.length,
    kvReads: invocations.reduce((sum, { kvOperations }) => sum + kvOperations, 0),
    objectCalls: calls.reduce((all, one) => all + one, 0),
    rows: rowsWritten,
    egressBytes: world.buckets.sentBytes,
    handOvers: 1 + Math.floor(ms / HAND_OVER_MS),
  };
}

test("every route is in the table", () => {
  for (const { method, path } of Object.values(ROUTES)) {
    const rows = Object.keys(HOSTILE_REQUESTS).filter((name) => name.startsWith(`${method} ${path}`));
    expect(rows.length, path).toBeGreaterThan(0);
  }
});

/** Late answers and the shape of a hedge move a row by so much. */
const isFarBelow = (said: number, counted: number): boolean => said > 2 * counted + 6;

test("each request costs no more than the table says, and not far less", async () => {
  for (const [name, said] of Object.entries(HOSTILE_REQUESTS) as [HostileRequest, RequestCost][]) {
    const counted = await costOf(SENT[name]());
    if (process.env["PRINT_COSTS"]) console.log(JSON.stringify([name, counted]));
    for (const what of Object.keys(said) as (keyof RequestCost)[]) {
      const times = PER_HAND_OVER.has(what) ? counted.handOvers : 1;
      expect.soft(counted[what], `${name}: ${what}`).toBeLessThanOrEqual(said[what] * times);
      const unit = what === "egressBytes" ? 100_000 : 1;
      expect.soft(isFarBelow(said[what] / unit, counted[what] / unit), `${name}: ${what} ${counted[what]}`).toBe(false);
    }
  }
});
