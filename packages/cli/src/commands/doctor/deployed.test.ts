/**
 * `agarose doctor --deployed` against PoPs in workerd: sound ones, ones with faults, and ones behind a proxy that plays
 * what only Cloudflare or a proxy of the user does to headers.
 */
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { freePort } from "@agarose/dev-world/free-port";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { parseConfig } from "@agarose/storage/config/config";
import { startTestWorld, type RunResult, type World } from "../../../test/world.ts";
import { checkDeployed } from "@agarose/storage/doctor/check-deployed";
import type { Check } from "@agarose/storage/doctor/check";

const ADMIN_TOKEN = "admin-token-of-tests";
const ENV = { AGAROSE_ADMIN_TOKEN: ADMIN_TOKEN };
const PEER_KEY = "a key that all PoPs share";

let world: World;
let pops: Pops;
let servers: Server[];

beforeAll(async () => {
  world = await startTestWorld();
  servers = [];
  await world.put("page", Buffer.alloc(3_000, 1));
  const [fra, lhr] = [await freePort(), await freePort()];
  const regions = world.config.regions.map(({ name, url }) => ({ name, url }));
  const PEERS = JSON.stringify([
    { name: "fra", url: `http://127.0.0.1:${fra}` },
    { name: "lhr", url: `http://127.0.0.1:${lhr}` },
  ]);
  const vars = { REGIONS: JSON.stringify(regions), ADMIN_TOKEN, UNSIGNED: "true" };
  pops = await startPops({
    pops: [
      { name: "fra", port: fra, vars: { ...vars, PEERS, PEER_KEY, LOCATION: "weur" } },
      { name: "lhr", port: lhr, vars: { ...vars, PEERS, PEER_KEY, LOCATION: "weur" } },
      {
        name: "wrong",
        environment: "iad",
        vars: {
          REGIONS: JSON.stringify([...regions.slice(1), { name: "old", url: regions[0]!.url }]),
          ADMIN_TOKEN,
          PUBLISHER_KEYS: JSON.stringify([`ed25519:${"A".repeat(43)}=`]),
        },
      },
    ],
  });
  for (let i = 0; i < 2; i++) for (const { name } of pops.pops) await pops.cron(name);
});

afterAll(async () => {
  for (const server of servers) server.close();
  await pops.dispose();
  await world.close();
});

/** A proxy in front of a PoP that changes headers of answers. It plays what is between a user and a Worker. */
async function behind(url: string, change: Readonly<Record<string, string | undefined>>): Promise<string> {
  const server = createServer((request, response) => {
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name !== "host"));
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const hasBody = request.method === "POST";
      void fetch(`${url}${request.url}`, {
        method: request.method!,
        headers: headers as Record<string, string>,
        ...(hasBody && { body: Buffer.concat(parts) }),
      }).then(async (answer) => {
        for (const [name, value] of answer.headers) if (name !== "content-encoding") response.setHeader(name, value);
        for (const [name, value] of Object.entries(change)) {
          if (value === undefined) response.removeHeader(name);
          else response.setHeader(name, value);
        }
        response.removeHeader("transfer-encoding");
        response.writeHead(answer.status);
        response.end(Buffer.from(await answer.arrayBuffer()));
      });
    });
  });
  servers.push(server);
  return listenLocally(server);
}

interface Given {
  readonly name: string;
  readonly url: string;
  readonly placement?: string;
}

async function doctor(given: readonly Given[], ...args: string[]): Promise<{ run: RunResult; checks: Check[] }> {
  const path = join(world.dir, "deployed.json");
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(path, JSON.stringify({ ...config, pops: given }));
  const run = await world.run(["doctor", "--deployed", "--json", "--config", path, ...args], ENV);
  return { run, checks: (JSON.parse(run.stdout.toString()) as { checks: Check[] }).checks };
}

const found = (checks: readonly Check[], name: string): Check | undefined => checks.find((one) => one.name === name);
const sound = (): Given[] => pops.pops.slice(0, 2).map(({ name, url }) => ({ name, url }));

test("sound PoPs: every line is ok, and the exit code is 0", async () => {
  const { run, checks } = await doctor(sound());
  expect(checks.filter(({ state }) => state !== "ok")).toEqual([]);
  expect(run.code).toBe(0);
  expect(checks.filter(({ subject }) => subject === "fra").map(({ name }) => name)).toEqual([
    "health",
    ...(found(checks, "entry") ? ["entry"] : []),
    ...(found(checks, "version") ? ["version"] : []),
    "cors",
    "preflight",
    "place",
    "place",
    "periods and regions",
    "buckets",
    "denials",
    "keys",
    "peers",
  ]);
});

test("a PoP with other regions, other keys and no peers, each with what to do", async () => {
  const { run, checks } = await doctor([...sound(), { name: "wrong", url: pops.pops[2]!.url }]);
  expect(run.code).toBe(1);
  const own = checks.filter(({ subject }) => subject === "wrong");
  expect(found(own, "buckets")).toMatchObject({
    state: "fail",
    message: expect.stringMatching(/^lacks frankfurt and has old, .* deploy it again/),
  });
  expect(found(own, "keys")).toMatchObject({ state: "fail", message: expect.stringContaining("`agarose deploy`") });
  expect(found(own, "peers")).toMatchObject({ state: "warn", message: expect.stringContaining("works without peers") });
  expect(found(own, "place")).toMatchObject({ state: "warn", message: expect.stringContaining("agarose init") });
});

test("a name that is another PoP's, and an address where none is", async () => {
  const { checks } = await doctor([
    { name: "ams", url: pops.pops[0]!.url },
    { name: "gone", url: `http://127.0.0.1:${await freePort()}` },
  ]);
  expect(found(checks, "health")).toMatchObject({ state: "fail", message: expect.stringContaining('is PoP "fra"') });
  expect(checks.filter(({ subject }) => subject === "gone")).toEqual([
    { subject: "gone", name: "health", state: "fail", message: expect.stringContaining("ECONNREFUSED") },
  ]);
});

test.each(["null", "{}", '{"cache":{"objects":null}}', "[1]"])(
  "an address that answers everything with %s is no PoP, and keeps none of the others from being checked",
  async (body) => {
    const server = createServer((_request, response) => response.end(body));
    servers.push(server);
    const url = await listenLocally(server);
    const { run, checks } = await doctor([{ name: "other", url }, sound()[0]!]);
    expect(checks.filter(({ subject, name }) => subject === "other" && name === "status")).toEqual([
      { subject: "other", name: "status", state: "fail", message: expect.stringContaining("check its url") },
    ]);
    expect(checks.filter(({ subject }) => subject === "fra").map(({ name }) => name)).toContain("buckets");
    expect(run.code).toBe(1);
  },
);

test("a Worker that is not placed, and one of which Cloudflare does not say it", async () => {
  const { url } = pops.pops[0]!;
  const local = await behind(url, { "cf-placement": "local-SYD" });
  const silent = await doctor([{ name: "fra", url, placement: "aws:eu-central-1" }]);
  expect(found(silent.checks, "place")).toMatchObject({ state: "ok" });
  expect(silent.checks.filter(({ name }) => name === "place").at(-1)).toMatchObject({ state: "warn" });
  const { run, checks } = await doctor([{ name: "fra", url: local, placement: "aws:eu-central-1" }]);
  expect(run.code).toBe(1);
  expect(found(checks, "place")).toMatchObject({ state: "fail", message: expect.stringContaining("SYD") });
});

test("a Worker that is placed far from its region is a warning, in doctor and in status", async () => {
  const { url } = pops.pops[0]!;
  const far = await behind(url, { "cf-placement": "remote-SYD" });
  const given = [{ name: "fra", url: far, placement: "aws:eu-central-1" }];
  const { run, checks } = await doctor(given);
  expect(run.code).toBe(0);
  const message = expect.stringMatching(/ran in SYD, 16,\d00 km from aws:eu-central-1: deploy it again/) as string;
  expect(checks).toContainEqual({ subject: "fra", name: "place", state: "warn", message });
  const status = await world.run(["status", "--config", join(world.dir, "deployed.json")], ENV);
  expect(status.code).toBe(0);
  expect(status.stdout.toString()).toMatch(/^fra +warn /m);
  expect(status.stdout.toString()).toMatch(/^fra: warning: the Worker ran in SYD/m);
});

test("healthz says where a request enters, and where the Worker and its objects run as soon as that is known", async () => {
  const { url } = pops.pops[0]!;
  const healthz = async (): Promise<unknown> => (await fetch(`${url}/healthz`)).json();
  // No data center runs a local world.
  const place = {
    location: "weur",
    worker: null,
    popState: null,
    requestMonitor: [null, null, null, null],
    peerState: null,
  };
  await expect.poll(healthz).toMatchObject({ ok: true, pop: "fra", location: "weur", place });
});

test.each<[string, Record<string, string | undefined>, string, string]>([
  ["a proxy that hides headers", { "access-control-expose-headers": "etag" }, "cors", "hides content-range"],
  ["a proxy that allows one origin", { "access-control-allow-origin": "https://a.example" }, "cors", "not any origin"],
  ["a proxy that answers preflights", { "access-control-allow-headers": "range" }, "preflight", "if-match"],
  ["a wrong clock", { date: "Mon, 01 Jan 2024 00:00:00 GMT" }, "clock", "behind this machine"],
])("%s", async (_name, change, name, message) => {
  const url = await behind(pops.pops[0]!.url, change);
  const { checks } = await doctor([{ name: "fra", url }]);
  expect(found(checks, name)).toMatchObject({ state: "fail", message: expect.stringContaining(message) });
});

test("a clock that agrees", async () => {
  const url = await behind(pops.pops[0]!.url, { date: new Date().toUTCString() });
  const { checks } = await doctor([{ name: "fra", url }]);
  expect(found(checks, "clock")).toMatchObject({ state: "ok" });
});

test("a peer that is gone, and a token that is wrong", async () => {
  const config = parseConfig(await readFile(join(world.dir, "deployed.json"), "utf8"), "deployed.json");
  const two = { ...config, pops: sound() };
  // The real clock of the PoPs, and an answer by which the other one is silent.
  const without: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).endsWith("/v1/status")) return response;
    const body = (await response.json()) as { peers: { peers: { silent: boolean }[] } };
    for (const peer of body.peers.peers) peer.silent = true;
    return Response.json(body);
  };
  process.env["AGAROSE_ADMIN_TOKEN"] = ADMIN_TOKEN;
  const checks = await checkDeployed(two, { fetch: without, nowMs: Date.now });
  expect(found(checks, "peers")).toMatchObject({ state: "fail", message: expect.stringContaining("one PEER_KEY") });
  process.env["AGAROSE_ADMIN_TOKEN"] = "another";
  const refused = await checkDeployed(two, { fetch, nowMs: Date.now });
  expect(found(refused, "status")).toMatchObject({ state: "fail", message: expect.stringContaining("FORBIDDEN") });
  delete process.env["AGAROSE_ADMIN_TOKEN"];
  const unasked = await checkDeployed(two, { fetch, nowMs: Date.now });
  expect(found(unasked, "status")).toMatchObject({ state: "warn" });
});
