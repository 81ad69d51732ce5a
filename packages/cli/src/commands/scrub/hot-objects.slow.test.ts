/** Extra chunks follow what readers ask PoPs for. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { chunkNameOf, manifestName, type Manifest } from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

const CODE = { k: 2, m: 1 };
/** Milliseconds from the PoPs. With one more chunk in dublin, a read waits for no other region. */
const LATENCIES_MS = { frankfurt: 100, dublin: 10, virginia: 200, paulo: 300, tokyo: 300, sydney: 300 };
const BYTES = 40_000;
const KEYS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const TOKEN = { AGAROSE_ADMIN_TOKEN: "a token of sixteen" };

let world: World;
let pops: Server[];
let urls: string[];
/** Requests per period that each PoP reports, by key; undefined: it fails. */
let popular: (Record<string, number> | undefined)[];
/** The contents of each PoP's cache. */
let cached: { readonly key: string; readonly chunks: readonly number[] }[];

beforeEach(async () => {
  world = await startTestWorld({ ...CODE, survive: { regions: 1, providers: 0 } });
  popular = [{}, {}];
  cached = [];
  // Servers that report what a test needs: what a PoP counts is tested where it counts.
  pops = popular.map((_, index) =>
    createServer(({ url }, response) => {
      const name = `pop-${index}`;
      const counts = popular[index];
      if (!counts) return void response.writeHead(503).end();
      if (url === "/healthz") return void response.end(JSON.stringify({ pop: name }));
      response.end(JSON.stringify(statusWith(counts)));
    }),
  );
  urls = await Promise.all(pops.map((pop) => listenLocally(pop)));
  await configure({ storage: 0.07 });
  for (const key of KEYS) await world.put(key, randomBytes(BYTES));
});

afterEach(async () => {
  for (const server of pops) server.close();
  await world.close();
});

function statusWith(counts: Record<string, number>): object {
  const keys = Object.entries(counts).map(([key, popularity]) => ({ key, popularity }));
  return {
    epoch: 1,
    policy: "exact",
    cache: { capacityBytes: 1, cachedBytes: 0, objects: cached },
    regions: Object.entries(LATENCIES_MS).map(([name, meanMs]) => ({
      name,
      down: false,
      slow: false,
      meanMs,
      sdMs: 1,
    })),
    lastPeriod: { at: Date.now(), errors: [], popular: keys },
    isolate: { chunkCache: { hits: 0, misses: 0 } },
  };
}

async function configure(hot: object | undefined): Promise<void> {
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const own = urls.map((url, index) => ({ name: `pop-${index}`, url }));
  await writeFile(world.configPath, JSON.stringify({ ...json, code: CODE, pops: own, hot }));
}

async function scrub(...args: string[]) {
  const { code, stdout, stderr } = await world.run(["scrub", "--json", ...args], TOKEN);
  return { code, stderr, hot: (JSON.parse(stdout.toString()) as { hot?: object }).hot };
}

/** Stores an object by the configuration as it is, and returns what was printed. */
async function put(key: string, body: Uint8Array): Promise<string> {
  const path = `${world.dir}/upload-file`;
  await writeFile(path, body);
  const { code, stdout } = await world.run(["put", path, "--key", key]);
  expect(code).toBe(0);
  return stdout.toString();
}

async function manifestOf(key: string): Promise<Manifest> {
  const { crc32: _, ...manifest } = JSON.parse(String(await world.read("tokyo", manifestName(key)))) as {
    readonly crc32: string;
  };
  return manifest as Manifest;
}

function extraName(manifest: Manifest): string {
  return chunkNameOf(manifest, manifest.placement.length);
}

/** The keys that have extra chunks. */
async function hotKeys(): Promise<string[]> {
  const manifests = await Promise.all(KEYS.map(manifestOf));
  return manifests.flatMap(({ key, extra }) => (extra ? [key] : []));
}

/** The uploads that gc would delete. */
async function garbage(): Promise<string[]> {
  const { stdout } = await world.run(["gc", "--json-lines"]);
  const lines = stdout.toString().trimEnd().split("\n");
  return lines.flatMap((line) => (JSON.parse(line) as { upload?: string }).upload ?? []);
}

test("what all PoPs together wait for most gets an extra chunk near them, within the storage, under the same version", async () => {
  // Each is 20 kB of 600, of which 7% have room for two.
  popular = [
    { a: 3, b: 9, c: 1 },
    { a: 8, c: 2, gone: 50 },
  ];
  const before = await manifestOf("a");
  const { code, hot } = await scrub();
  expect([code, hot]).toEqual([0, { hot: 2, heated: 2, cooled: 0, failed: 0 }]);
  expect(await hotKeys()).toEqual(["a", "b"]);
  const { generation, extra, signature: _, ...after } = await manifestOf("a");
  const { generation: first, signature: _before, ...same } = before;
  expect([generation, after]).toEqual([first + 1, same]);
  expect(extra).toMatchObject({ placement: ["dublin"] });
  expect(await world.verify("a")).toMatchObject({ sound: true, chunks: 3, beyondK: 1 });
  expect((await scrub()).hot, "once").toEqual({ hot: 2, heated: 0, cooled: 0, failed: 0 });
});

test("an extra chunk serves a read that would have too few, and the object is without it where it is gone", async () => {
  popular[0] = { a: 5 };
  const content = await world.get("a");
  await scrub();
  for (const region of ["frankfurt", "virginia"]) world.faults.set(region, DOWN);
  expect((await world.get("a", undefined, "eventual")).equals(content)).toBe(true);
  world.faults.clear();
  await world.tamper("dublin", extraName(await manifestOf("a")), () => undefined);
  expect((await world.get("a")).equals(content)).toBe(true);
});

test("what waits in a cache of the PoP needs no extra chunk", async () => {
  popular[0] = { a: 9, b: 1 };
  cached = [{ key: "a", chunks: [0, 1] }];
  expect((await scrub()).hot).toMatchObject({ hot: 1, heated: 1 });
  expect(await hotKeys()).toEqual(["b"]);
});

test("an object keeps its chunk until another one has twice its requests, and while there is room", async () => {
  popular[0] = { a: 5, b: 4 };
  await scrub();
  popular[0] = { a: 5, b: 4, c: 7 };
  expect((await scrub()).hot).toMatchObject({ heated: 0, cooled: 0 });
  popular[0] = { a: 5, b: 4, c: 9 };
  expect((await scrub()).hot).toMatchObject({ heated: 1, cooled: 1 });
  expect(await hotKeys()).toEqual(["a", "c"]);
  popular[0] = {};
  expect((await scrub()).hot, "there is room").toMatchObject({ hot: 2, cooled: 0 });
});

test("a put of the same bytes, recode and a new type leave it, other bytes begin without it, and rm removes it", async () => {
  popular[0] = { a: 5 };
  await scrub();
  expect(await put("a", await world.get("a"))).toContain("unchanged");
  expect(JSON.parse((await world.run(["recode", "--json"])).stdout.toString())).toMatchObject({ recoded: 0 });
  expect(await hotKeys()).toEqual(["a"]);
  const { extra } = await manifestOf("a");
  await put("a", randomBytes(BYTES));
  expect(await hotKeys()).toEqual([]);
  expect((await scrub()).hot).toMatchObject({ heated: 1 });
  expect((await world.run(["rm", "a"])).code).toBe(0);
  const left = (await world.names("chunks/a!")).filter((name) => !name.includes(extra!.upload));
  expect(left.filter((name) => name.endsWith("/3"))).toEqual([]);
});

test.each(["missing", "wrong"])(
  "verify finds an extra chunk that is %s, repair goes without it, scrub stores another",
  async (what) => {
    popular[0] = { a: 5 };
    await scrub();
    const { extra, version } = await manifestOf("a");
    await world.tamper("dublin", extraName(await manifestOf("a")), (bytes) =>
      what === "missing" ? undefined : bytes.fill(0, 7, 8),
    );
    const code = what === "missing" ? "CHUNK_MISSING" : "CHUNK_CORRUPT";
    expect(await world.verify("a")).toMatchObject({
      sound: false,
      readable: true,
      beyondK: 1,
      chunksSound: 3,
      damage: [{ chunk: 3, region: "dublin", code }],
    });
    popular[0] = {};
    expect((await world.run(["repair", "a", "--json"])).code).toBe(0);
    expect(await manifestOf("a")).not.toHaveProperty("extra");
    expect(await world.verify("a")).toMatchObject({ sound: true, version });
    popular[0] = { a: 5 };
    expect((await scrub()).hot).toMatchObject({ heated: 1 });
    expect((await manifestOf("a")).extra!.upload).not.toBe(extra!.upload);
    expect(await world.verify("a")).toMatchObject({ sound: true });
  },
);

test("what has cooled is garbage, which gc finds, and what is hot is none", async () => {
  popular[0] = { a: 5, b: 5 };
  await scrub();
  const { extra } = await manifestOf("a");
  expect(await garbage()).toEqual([]);
  await configure({ storage: 0.04 });
  popular[0] = { b: 50 };
  expect((await scrub()).hot).toMatchObject({ cooled: 1 });
  expect(await garbage()).toEqual([extra!.upload]);
  expect(await world.verify("a")).toMatchObject({ sound: true });
});

test("a share of 0 removes all extra chunks, also where no PoP answers, and is not mentioned again", async () => {
  popular[0] = { a: 5, b: 4 };
  await scrub();
  await configure({ storage: 0 });
  popular = [undefined, undefined];
  expect((await scrub("--dry-run")).hot).toEqual({ hot: 0, heated: 0, cooled: 2, failed: 0 });
  expect(await scrub()).toEqual({ code: 0, stderr: "", hot: { hot: 0, heated: 0, cooled: 2, failed: 0 } });
  expect(await hotKeys()).toEqual([]);
  expect(await scrub()).toEqual({ code: 0, stderr: "", hot: undefined });
});

test("a token file that cannot be read stops no repair, and the walk warns of it", async () => {
  const { pops: own, ...json } = JSON.parse(await readFile(world.configPath, "utf8")) as { readonly pops: object[] };
  const withFile = own.map((pop) => ({ ...pop, adminTokenFile: `${world.dir}/nowhere` }));
  await writeFile(world.configPath, JSON.stringify({ ...json, pops: withFile }));
  const manifest = await manifestOf("a");
  await world.tamper(manifest.placement[0]!, chunkNameOf(manifest, 0), () => undefined);
  const { code, stderr } = await world.run(["scrub"]);
  expect([code, stderr]).toEqual([0, expect.stringContaining("the admin token of pop-0")]);
  expect(await world.verify("a")).toMatchObject({ sound: true });
});

test("an object that is removed while it gets its chunk is no failure", async () => {
  popular[0] = { a: 5, b: 4 };
  let removals = 0;
  world.faults.set("dublin", async (request, _response, name) => {
    if (request.method !== "PUT" || !/^chunks\/a!.*\/3$/.test(name) || removals++ > 0) return false;
    // In a process of its own, because the walk is in this one.
    expect((await world.spawn(["rm", "a"])).code).toBe(0);
    return false;
  });
  expect(await scrub()).toMatchObject({ code: 0, hot: { hot: 2, heated: 1, failed: 0 } });
  expect(removals).toBeGreaterThan(0);
  world.faults.clear();
  expect((await world.run(["stat", "a"])).code).not.toBe(0);
  expect(await garbage()).toHaveLength(1);
});

test("two walks at once do each other no harm", async () => {
  popular[0] = { a: 5, b: 4 };
  // Each waits until both are about to claim a generation of the object.
  let claims = 0;
  const both = Promise.withResolvers<void>();
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "PUT" || !name.startsWith("claims/a!")) return false;
      if (++claims > REGIONS.length) both.resolve();
      await both.promise;
      return false;
    });
  }
  const runs = await Promise.all([1, 2].map(() => world.spawn(["scrub", "--json"], { env: TOKEN })));
  expect(claims).toBeGreaterThan(REGIONS.length);
  expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ""],
    [0, ""],
  ]);
  world.faults.clear();
  const { code, hot } = await scrub();
  expect([code, hot]).toMatchObject([0, { hot: 2, failed: 0 }]);
  expect(await hotKeys()).toEqual(["a", "b"]);
  for (const key of ["a", "b"]) expect(await world.verify(key)).toMatchObject({ sound: true });
});

test("a dry run, a walk with a cursor, and a prefix that has nothing popular store nothing", async () => {
  popular[0] = { a: 5 };
  expect((await scrub("--dry-run")).hot).toMatchObject({ heated: 1 });
  const { hot, stderr } = await scrub("--cursor", `${world.dir}/cursor`);
  expect([hot, stderr]).toEqual([undefined, expect.stringContaining("with --cursor")]);
  expect((await scrub("--prefix", "b")).hot).toMatchObject({ hot: 0, heated: 0 });
  expect(await hotKeys()).toEqual([]);
});

test("no object gets or loses a chunk while a PoP is silent", async () => {
  popular[0] = { a: 5, b: 4 };
  await scrub();
  popular = [undefined, { c: 100 }];
  const { hot, stderr } = await scrub();
  expect([hot, stderr]).toEqual([undefined, expect.stringContaining("PoP pop-0 does not say what is popular")]);
  popular = [{}, { c: 100 }];
  expect(await world.run(["scrub"]), "without the tokens").toMatchObject({ code: 0, stderr: "" });
  expect(await hotKeys()).toEqual(["a", "b"]);
});

test("no object gets or loses a chunk while a region does not answer, whose chunks are part of what is stored", async () => {
  popular[0] = { a: 5, b: 4 };
  await scrub();
  popular[0] = { a: 5, b: 4, c: 100 };
  world.faults.set("sydney", DOWN);
  const { hot, stderr } = await scrub();
  expect(world.fired.get("sydney")).toBeGreaterThan(0);
  expect([hot, stderr]).toEqual([undefined, expect.stringContaining("a region did not answer: no object gets")]);
  world.faults.clear();
  expect(await hotKeys()).toEqual(["a", "b"]);
});

test("what a PoP names that no object can have is left out", async () => {
  popular[0] = { "": 9, "x//y": 9, ["k".repeat(5_000)]: 9, "../a": 9, a: 1 };
  expect(await scrub()).toMatchObject({ code: 0, hot: { hot: 1, heated: 1, failed: 0 } });
  expect(await hotKeys()).toEqual(["a"]);
});

test("a PoP that counts less than nothing is not believed, and no object gets or loses a chunk", async () => {
  popular = [{ a: 5 }, { a: -9, b: 1 }];
  const { code, hot, stderr } = await scrub();
  expect([code, hot, stderr]).toEqual([
    0,
    undefined,
    expect.stringContaining("PoP pop-1 does not say what is popular"),
  ]);
  expect(await hotKeys()).toEqual([]);
});

test("an object that cannot get its chunk is reported, and keeps its readers", async () => {
  popular[0] = { a: 5 };
  // A majority does not answer for the manifest of that object alone.
  for (const region of REGIONS.slice(0, 4)) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "PUT" || !name.includes("claims/a!")) return false;
      return DOWN(request, response, name);
    });
  }
  const { code, stdout } = await world.run(["scrub", "--json-lines"], TOKEN);
  expect([...world.fired.values()].some((count) => count > 0)).toBe(true);
  const lines = stdout.toString().trimEnd().split("\n");
  expect([code, ...lines.map((line) => JSON.parse(line) as object)]).toMatchObject([
    1,
    { key: "a", outcome: "failed" },
    { summary: { hot: { hot: 1, heated: 0, cooled: 0, failed: 1 } } },
  ]);
  world.faults.clear();
  expect(await hotKeys()).toEqual([]);
  expect((await world.get("a")).length).toBe(BYTES);
});

test("a machine without the key of the publisher leaves hot objects as they are", async () => {
  await configure({ storage: 1 });
  expect((await world.run(["keys", "new", "publisher.pem"])).code).toBe(0);
  expect((await world.run(["keys", "apply", "--vouch"])).code).toBe(0);
  const { signing, ...json } = JSON.parse(await readFile(world.configPath, "utf8")) as { readonly signing: object };
  await writeFile(world.configPath, JSON.stringify(json));
  popular[0] = { a: 5 };
  expect(await scrub()).toEqual({ code: 0, stderr: "", hot: undefined });
  await writeFile(world.configPath, JSON.stringify({ ...json, signing }));
  expect(await scrub()).toMatchObject({ code: 0, hot: { hot: 1, heated: 1, failed: 0 } });
});

test("a share above 1 is refused", async () => {
  await configure({ storage: 5 });
  const { code, stderr } = await world.run(["ls"]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/is above 1/)]);
});
