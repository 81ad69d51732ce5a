/**
 * One Worker everywhere, in workerd. Two isolates of one Worker play data centers of two continents, which a shim of
 * `request.cf` names.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { startBuckets, type BucketServer } from "../../test/bucket-server.ts";
import { putObject, randomBytes } from "../../test/objects.ts";
import { ADMIN_TOKEN, REGIONS } from "../../test/world.ts";

const POP = "fra";
const authorization = `Bearer ${ADMIN_TOKEN}`;

let buckets: BucketServer;
let pops: Pops;

beforeEach(async () => {
  buckets = await startBuckets();
  const REGIONS_OF_ALL = JSON.stringify(
    REGIONS.map((name) => ({ name, url: `http://public.invalid/${name}`, popUrl: `${buckets.url}/${name}` })),
  );
  const vars = {
    REGIONS: REGIONS_OF_ALL,
    ADMIN_TOKEN,
    UNSIGNED: "true",
    EVERYWHERE: "true",
    MANIFEST_TTL_SECONDS: "0",
  };
  pops = await startPops({
    pops: [
      { name: POP, vars },
      { name: "sydney", isolateOf: POP, vars },
    ],
  });
});
afterEach(async () => {
  await pops.dispose();
  await buckets.close();
});

interface Answer {
  readonly status: number;
  readonly json: <T>() => Promise<T>;
  readonly arrayBuffer: () => Promise<ArrayBuffer>;
}

/** A request that enters Cloudflare at the data center of `isolate`, from a client of `continent`. */
async function ask(isolate: string, continent: string, path: string, init: object = {}): Promise<Answer> {
  const worker = await pops.miniflare.getWorker(isolate);
  return worker.fetch(`http://pop.example${path}`, {
    ...init,
    cf: { continent },
  } as never) as unknown as Promise<Answer>;
}

interface State {
  readonly continent: string;
  readonly epoch: number;
  readonly regions: readonly unknown[];
  readonly cache: { readonly objects: readonly { readonly key: string }[] };
}

const stateAt = async (isolate: string, continent: string): Promise<State> =>
  (await ask(isolate, continent, "/v1/status", { headers: { authorization } })).json<State>();
const cachedAt = async (isolate: string, continent: string): Promise<string[]> =>
  (await stateAt(isolate, continent)).cache.objects.map(({ key }) => key);

async function read(isolate: string, continent: string, key: string): Promise<Uint8Array> {
  const response = await ask(isolate, continent, `/o/${key}`);
  expect(response.status).toBe(200);
  return new Uint8Array(await response.arrayBuffer());
}

test("each continent caches what is read there, from estimates of its own, and a purge reaches all", async () => {
  const content = { europe: randomBytes(20_000), oceania: randomBytes(20_000) };
  await putObject(buckets, "europe", content.europe);
  await putObject(buckets, "oceania", content.oceania);
  for (let i = 0; i < 5; i++) {
    expect(await read(POP, "EU", "europe")).toEqual(content.europe);
    expect(await read("sydney", "OC", "oceania")).toEqual(content.oceania);
  }
  // The trigger fires in one machine: each isolate hands on its own counts.
  await pops.cron("sydney");
  await pops.cron(POP);
  expect([await cachedAt(POP, "EU"), await cachedAt("sydney", "OC")]).toEqual([["europe"], ["oceania"]]);
  const kv = await pops.miniflare.getKVNamespace("CHUNKS", POP);
  const names = (await kv.list()).keys.map(({ name }) => name);
  expect(new Set(names.map((name) => name.slice(0, 3)))).toEqual(new Set(["EU:", "OC:"]));

  buckets.requests.length = 0;
  expect(await read(POP, "EU", "europe")).toEqual(content.europe);
  expect(buckets.requests.filter(({ name }) => name.startsWith("chunks/"))).toEqual([]);

  const purged = await ask(POP, "EU", "/v1/purge", {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({ prefix: "" }),
  });
  expect(await purged.json()).toMatchObject({ objects: 2, errors: [] });
  expect([await cachedAt(POP, "EU"), await cachedAt("sydney", "OC")]).toEqual([[], []]);
});

test("periods run for continents that have requests, and measure nothing for the others", async () => {
  await ask(POP, "EU", "/healthz");
  buckets.requests.length = 0;
  await pops.cron(POP);
  const ofOne = buckets.requests.length;
  expect(ofOne).toBeGreaterThan(0);
  expect(await stateAt(POP, "EU")).toMatchObject({ continent: "EU", regions: REGIONS.map(() => ({})) });
  await ask("sydney", "OC", "/healthz");
  expect(await stateAt("sydney", "OC")).toMatchObject({ continent: "OC", epoch: 0, regions: [] });
});

test("the first continent that is said decides for the isolate, and a client who says none changes nothing", async () => {
  const continentAt = async (said: string): Promise<string> =>
    (await (await ask(POP, said, "/healthz")).json<{ continent: string }>()).continent;
  expect(await continentAt("T1")).toBe("NA");
  expect(await continentAt("SA")).toBe("SA");
  expect(await continentAt("EU")).toBe("SA");
  expect(await continentAt("T1")).toBe("SA");
});

test("peers beside EVERYWHERE are refused, because one Worker has none", async () => {
  const peers = JSON.stringify([{ name: "lhr", url: "https://lhr.example" }]);
  const regions = JSON.stringify([{ name: "a", url: `${buckets.url}/a` }]);
  const vars = { EVERYWHERE: "true", PEERS: peers, PEER_KEY: "k".repeat(16), REGIONS: regions, UNSIGNED: "true" };
  const wrong = await startPops({ pops: [{ name: "iad", vars }] });
  const response = await fetch(`${wrong.pops[0]!.url}/healthz`);
  expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("PEERS")]);
  await wrong.dispose();
});
