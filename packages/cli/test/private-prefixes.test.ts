/** Keys that need a token or a signature, read through the service worker's client from PoPs in workerd. */
import { createHmac, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock, systemSha256 } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { handleOf, ObjectClient } from "@agarose/sw/testing";
import { startTestWorld, type World } from "./world.ts";

const READ_TOKEN = "read-token-of-tests";
const SIGNING_KEY = "signing-key-of-tests";
const KEY = "members/report.bin";
const ODD = "members/Käse & 'co' (1).bin";
const body = randomBytes(100_000);

let world: World;
let pops: Pops;
let client: ObjectClient;
/** Requests of the client, by URL. */
let asked: { url: string; authorization: string | undefined }[];

beforeAll(async () => {
  world = await startTestWorld({ stripeBytes: 50_000 });
  await world.put(KEY, body);
  await world.put(ODD, body);
  await world.put("open.bin", body);
  const regions = world.config.regions.map(({ name, url }) => ({ name, url }));
  const access = { PRIVATE_PREFIXES: '["members/"]', READ_TOKEN, SIGNING_KEY };
  const vars = { REGIONS: JSON.stringify(regions), UNSIGNED: "true", ...access };
  pops = await startPops({ pops: [{ name: "fra", vars }] });
});

afterAll(async () => {
  await pops.dispose();
  await world.close();
});

beforeEach(() => {
  asked = [];
  const config = { prefix: "/ec/", pops: pops.pops, regions: [], delta: undefined };
  client = new ObjectClient(config as never, {
    fetch: (url, init) => {
      asked.push({ url, authorization: init.headers?.["authorization"] });
      return fetch(url, init);
    },
    clock: systemClock,
    sha256: systemSha256,
    random: Math.random,
    codec: async () => javascriptCodec(),
    emit: () => {},
    savesData: () => false,
  });
});

function read(key: string, query = "", headers: Record<string, string> = {}): Promise<Response> {
  return handleOf(client)(new Request(`https://app.test/ec/${key}${query}`, { headers }))!;
}

function signed(key: string, seconds = 60): string {
  const expires = Math.floor(Date.now() / 1000) + seconds;
  const signature = createHmac("sha256", SIGNING_KEY).update(`agarose-read\n${key}\n${expires}`).digest("hex");
  return `?expires=${expires}&signature=${signature}`;
}

async function expectBody(response: Response): Promise<void> {
  expect(response.status).toBe(200);
  expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), body)).toBe(0);
}

const toBuckets = (): typeof asked => asked.filter(({ url }) => url.startsWith(world.endpoint.url));

test("a page's bearer token opens a private key, and no bucket sees it", async () => {
  await expectBody(await read(KEY, "", { authorization: `Bearer ${READ_TOKEN}` }));
  expect(toBuckets().length).toBeGreaterThanOrEqual(4);
  expect(toBuckets().filter(({ authorization }) => authorization !== undefined)).toEqual([]);
});

test("so does a signed URL, which a <video> can have; the rest of its query stays here", async () => {
  await expectBody(await read(KEY, `${signed(KEY)}&session=secret`));
  expect(asked.filter(({ url }) => url.includes("signature=")).length).toBeGreaterThan(0);
  expect(toBuckets().filter(({ url }) => url.includes("signature="))).toEqual([]);
  expect(asked.filter(({ url }) => url.includes("session"))).toEqual([]);
});

test.each([
  ["nothing", "", {}],
  ["a wrong token", "", { authorization: "Bearer read-token-of-others" }],
  ["the signature of another key", signed("members/other.bin"), {}],
  ["a signature that has expired", signed(KEY, -3600), {}],
])("with %s the answer is 403, and the buckets are not asked instead", async (_name, query, headers) => {
  const response = await read(KEY, query, headers as Record<string, string>);
  expect(response.status).toBe(403);
  expect(response.headers.get("x-agarose-error")).toBe("FORBIDDEN");
  expect(toBuckets()).toEqual([]);
});

test("`agarose share` prints a link that opens one private key, and another expiry or key does not", async () => {
  const KEYS = { AGAROSE_SIGNING_KEY: SIGNING_KEY };
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: pops.pops }));
  const run = (...args: string[]) => world.run(["share", ...args], KEYS);
  const link = async (...args: string[]): Promise<string> => (await run(...args)).stdout.toString().trim();
  await expectBody(await fetch(await link(KEY, "--expires", "7d", "--pop", "fra")));
  const odd = await link(ODD);
  expect(odd, "percent-encoded").toMatch(/^[\w:/.%?=&-]+$/);
  await expectBody(await fetch(odd));
  expect((await fetch(odd.replace("expires=", "expires=1"))).status).toBe(403);
  const late = await link(KEY, "--expires", "1s");
  const leftS = Number(new URL(late).searchParams.get("expires")) - Date.now() / 1000;
  expect(leftS).toBeLessThanOrEqual(1);
  expect(leftS).toBeGreaterThan(-60);
  expect((await fetch(late.replace(/\/o\/[^?]*/, "/o/members/other.bin"))).status).toBe(403);
  for (const [code, problem, ...args] of [
    [2, /at most|1s to 7d/, KEY, "--expires", "8d"],
    [2, /the PoP tokyo, and `pops` of the configuration has fra/, KEY, "--pop", "tokyo"],
    [1, /OBJECT_NOT_FOUND/, "members/none"],
  ] as const) {
    expect(await run(...args)).toMatchObject({ code, stderr: expect.stringMatching(problem) });
  }
  expect(await world.run(["share", KEY])).toMatchObject({ code: 2, stderr: expect.stringMatching(/is not set/) });
});

test("`agarose share --prefix` prints a link that opens what is below a prefix, also through the service worker", async () => {
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: pops.pops }));
  const env = { AGAROSE_SIGNING_KEY: SIGNING_KEY };
  const run = (...args: string[]) => world.run(["share", "--prefix", ...args], env);
  const printed = await run("members/", "--expires", "7d");
  expect(printed).toMatchObject({ code: 0, stderr: "" });
  const link = new URL(printed.stdout.toString().trim());
  expect(link.pathname).toBe("/o/members/");
  const at = (key: string, query: string): Promise<Response> => {
    const url = new URL(`/o/${encodeURI(key)}`, link);
    url.search = query;
    return fetch(url);
  };
  for (const key of [KEY, ODD]) {
    await expectBody(await at(key, link.search));
    await expectBody(await read(encodeURI(key), link.search));
  }
  expect(toBuckets().length).toBeGreaterThan(0);
  expect(asked.filter(({ url }) => url.includes("signature=")).length).toBeGreaterThan(0);
  expect(toBuckets().filter(({ url }) => /signature=|prefix=/.test(url))).toEqual([]);
  const narrow = new URL((await run("members/a b & 'c'/")).stdout.toString().trim());
  expect(narrow.href, "percent-encoded").toMatch(/^[\w:/.%?=&-]+$/);
  expect((await at("members/a b & 'c'/none", narrow.search)).status).toBe(404);
  const refused: [string, string][] = [
    [KEY, narrow.search],
    [KEY, link.search.replace("members/", "")],
    [KEY, link.search.replace("prefix=members/&", "")],
    [KEY, link.search.replace("expires=", "expires=1")],
    ["members/a b & 'c'/none", narrow.search.replace(/prefix=[^&]*/, "prefix=members/")],
  ];
  for (const [key, query] of refused) expect((await at(key, query)).status, query).toBe(403);
  for (const wrong of ["members", "members/re"]) {
    expect(await run(wrong)).toMatchObject({ code: 2, stderr: expect.stringContaining("end it with a slash") });
  }
  const long = `${"x".repeat(2_000)}/`;
  expect(await run(long)).toMatchObject({ code: 2, stderr: expect.stringContaining("KEY_TOO_LONG") });
});

test("`agarose share --password` prints a link for which the browser asks for the password that is printed, too", async () => {
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: pops.pops }));
  const share = async (...args: string[]) => {
    const { stdout } = await world.run(["share", "--password", ...args], { AGAROSE_SIGNING_KEY: SIGNING_KEY });
    const [url = "", password = ""] = stdout.toString().trim().split("\npassword: ");
    return { url, password };
  };
  const ask = (url: string, password: string) =>
    fetch(url, { headers: { authorization: `Basic ${Buffer.from(`:${password}`).toString("base64")}` } });
  const { url, password } = await share(KEY);
  const closed = await fetch(url);
  expect([closed.status, closed.headers.get("www-authenticate")]).toEqual([401, expect.stringMatching(/^Basic /)]);
  await expectBody(await ask(url, password));
  const other = await share(KEY);
  expect(other.password).toMatch(/^[\w-]{16}$/);
  expect((await ask(url, other.password)).status).toBe(401);
  expect((await fetch(url.replace("password&", ""))).status, "no way around it").toBe(403);
  const late = await ask(url.replace(/expires=\d+/, "expires=1"), password);
  expect(late.status, "an old link asks for no password").toBe(403);
  const all = await share("members/", "--prefix");
  await expectBody(await ask(all.url.replace("/o/members/", `/o/${KEY}`), all.password));
});

test("what one page may read is not kept for another that may not", async () => {
  await expectBody(await read(KEY, "", { authorization: `Bearer ${READ_TOKEN}` }));
  expect((await read(KEY)).status).toBe(403);
  await expectBody(await read(KEY, signed(KEY)));
});

test("public keys need none of it, and their plans are kept", async () => {
  await expectBody(await read("open.bin"));
  expect(client.plans.get("open.bin")).toBeDefined();
  expect(client.plans.get(KEY)).toBeUndefined();
});
