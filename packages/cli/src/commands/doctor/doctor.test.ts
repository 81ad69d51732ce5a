import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Config } from "@agarose/storage/config/config";
import { checkLayout, checkSigning } from "@agarose/storage/doctor/check-deployment";
import { checkRegion } from "@agarose/storage/doctor/check-region";
import { publicReadPolicy } from "@agarose/storage/buckets/public-read";
import type { Check } from "@agarose/storage/doctor/check";
import { CREDENTIALS, startTestWorld, storesOf, type World } from "../../../test/world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

const { signal } = new AbortController();

async function check(nowMs = Date.now, uploads = false): Promise<Check[]> {
  return checkRegion(world.store("tokyo"), { fetch, nowMs, signal, uploads });
}

function stateOf(checks: readonly Check[], name: string): string | undefined {
  return checks.find((candidate) => candidate.name === name)?.state;
}

/** Lets the endpoint answer, but changes the headers of what it answers. */
function rewrite(change: (name: string) => boolean): void {
  world.faults.set("tokyo", (_request, response) => {
    const { setHeader } = response;
    response.setHeader = function (this: ServerResponse, name, value) {
      return change(name.toLowerCase()) ? this : setHeader.call(this, name, value);
    } as typeof setHeader;
    return false;
  });
}

/** Lets the endpoint answer, with other values for some headers. */
function rewriteTo(headers: Readonly<Record<string, string>>): void {
  world.faults.set("tokyo", (_request, response) => {
    const { setHeader } = response;
    response.setHeader = function (this: ServerResponse, name, value) {
      return setHeader.call(this, name, headers[name.toLowerCase()] ?? value);
    } as typeof setHeader;
    return false;
  });
}

test("doctor warns in unsigned mode, and of the development key", async () => {
  expect(await checkSigning({ ...world.config, unsigned: true })).toMatchObject({ state: "warn", name: "signing" });
  expect(await checkSigning(world.config)).toMatchObject({ message: expect.stringContaining("development key") });
});

test("doctor fails when readers would refuse what the configured key signs", async () => {
  await world.run(["keys", "new", "a.pem"]);
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as Config;
  const signing = { keyFile: join(world.dir, "a.pem") };
  expect(await checkSigning({ ...config, signing })).toMatchObject({ state: "ok" });
  const publicKeys = [`ed25519:${"A".repeat(43)}=`];
  expect(await checkSigning({ ...config, signing, publicKeys })).toMatchObject({ state: "fail" });
  expect(await checkSigning({ ...config, signing: { keyFile: "nowhere.pem" } })).toMatchObject({ state: "fail" });
});

test("a sound region passes, and nothing is left behind", async () => {
  const checks = await check();
  expect(checks.filter(({ state }) => state !== "ok")).toEqual([]);
  expect(checks.map(({ name }) => name)).toEqual([
    "credentials",
    "write",
    "checksums",
    "stream",
    "conditional writes",
    "conditional deletes",
    "public read",
    "range",
    "cors",
    "exposed headers",
    "clock",
    "preflight",
    "remove",
  ]);
  expect(await world.names()).toEqual([]);
});

test("a private region must refuse unsigned reads, and still let the app's origin see that", async () => {
  const { config } = world;
  const regions = config.regions.map((region) => ({ ...region, private: true }));
  const stores = storesOf({ ...config, regions }, CREDENTIALS);
  const asPrivate = stores.find(({ region }) => region.name === "tokyo")!;
  const open = await checkRegion(asPrivate, { fetch, nowMs: Date.now, signal });
  expect(stateOf(open, "private read")).toBe("fail");
  let refused = 0;
  world.faults.set("tokyo", (request, response) => {
    if (request.headers.authorization !== undefined || request.method !== "GET") return false;
    refused++;
    response.writeHead(403, { "access-control-allow-origin": "*", "access-control-expose-headers": "*" }).end();
    return true;
  });
  const closed = await checkRegion(asPrivate, { fetch, nowMs: Date.now, signal });
  expect(refused).toBe(1);
  expect(closed.filter(({ state }) => state !== "ok")).toEqual([]);
  expect(stateOf(closed, "private read")).toBe("ok");
  for (const store of stores) store.close();
});

test("an endpoint that does not answer fails after three tries of its listing", async () => {
  world.faults.set("tokyo", (request) => {
    request.destroy();
    return true;
  });
  expect(await check()).toEqual([expect.objectContaining({ name: "credentials", state: "fail" })]);
  expect(world.fired.get("tokyo")).toBe(3);
});

test("wrong credentials are CREDENTIALS_REFUSED", async () => {
  const [store] = storesOf(world.config, { ...CREDENTIALS, secretAccessKey: "wrong" });
  const [found] = await checkRegion(store!, { fetch, nowMs: Date.now, signal });
  expect(found).toMatchObject({ state: "fail", message: expect.stringContaining("CREDENTIALS_REFUSED") });
  store!.close();
});

test("with uploads, a bucket that does not let pages PUT fails, and says with which rule it would", async () => {
  expect(stateOf(await check(Date.now, true), "uploads")).toBe("ok");
  for (const headers of [
    { "access-control-allow-methods": "GET, HEAD" },
    { "access-control-allow-headers": "content-type, range" },
    { "access-control-allow-origin": "https://other.example" },
  ]) {
    rewriteTo(headers);
    const found = (await check(Date.now, true)).find(({ name }) => name === "uploads");
    expect(found, JSON.stringify(headers)).toMatchObject({
      state: "fail",
      message: expect.stringContaining('"AllowedMethods":["PUT"]'),
    });
  }
});

test("a bucket without CORS fails, one that hides headers is warned of", async () => {
  rewrite((name) => name.startsWith("access-control-"));
  expect(stateOf(await check(), "cors")).toBe("fail");
  rewrite((name) => name === "access-control-expose-headers");
  const hidden = await check();
  expect([stateOf(hidden, "cors"), stateOf(hidden, "exposed headers")]).toEqual(["ok", "warn"]);
});

test("a bucket that is not public fails", async () => {
  world.faults.set("tokyo", (request, response) => {
    if (request.headers.authorization || request.method !== "GET") return false;
    response.writeHead(403).end();
    return true;
  });
  expect(stateOf(await check(), "public read")).toBe("fail");
  expect(world.fired.get("tokyo")).toBe(1);
});

test("a server that ignores Range fails", async () => {
  world.faults.set("tokyo", (request) => {
    if (!request.headers.authorization) delete request.headers.range;
    return false;
  });
  expect(stateOf(await check(), "range")).toBe("fail");
});

test.each([
  [2, "warn"],
  [20, "fail"],
  [-20, "fail"],
])("a clock that is %i minutes ahead: %s", async (minutes, state) => {
  const checks = await check(() => Date.now() + minutes * 60_000);
  expect(stateOf(checks, "clock")).toBe(state);
});

/** A store that refuses checksums behind the bytes, as some do. */
function refuseTrailers(): () => number {
  let refused = 0;
  world.faults.set("tokyo", (request, response) => {
    if (!request.headers["x-amz-trailer"]) return false;
    refused++;
    request.resume();
    response.writeHead(501, { "content-type": "application/xml" });
    response.end("<Error><Code>NotImplemented</Code><Message>trailing checksum is not supported</Message></Error>");
    return true;
  });
  return () => refused;
}

test("a store that refuses checksum trailers is warned of, and takes streams without", async () => {
  const refused = refuseTrailers();
  const store = storesOf(world.config, CREDENTIALS).find(({ region }) => region.name === "tokyo")!;
  const checks = await checkRegion(store, { fetch, nowMs: Date.now, signal });
  store.close();
  expect(refused()).toBe(1);
  expect(stateOf(checks, "stream")).toBe("warn");
  expect(await world.names()).toEqual([]);
});

test("put stores a large object in a store that refuses checksum trailers", async () => {
  const refused = refuseTrailers();
  const body = randomBytes(10_000);
  expect((await world.put("streamed", body)).outcome).toBe("stored");
  expect(refused()).toBe(1);
  expect((await world.verify("streamed")).sound).toBe(true);
  expect((await world.get("streamed")).equals(body)).toBe(true);
});

test("a stream that comes back changed fails", async () => {
  world.faults.set("tokyo", (request, response, name) => {
    if (request.method !== "GET" || !name.endsWith("-stream")) return false;
    response.writeHead(200, { "content-length": "3" }).end("bad");
    return true;
  });
  expect(stateOf(await check(), "stream")).toBe("fail");
  expect(world.fired.get("tokyo")).toBe(1);
});

test.each([
  [["if-none-match"], "support If-None-Match:"],
  [["if-none-match", "if-match"], "If-None-Match and If-Match:"],
])("a store that ignores %j is warned of", async (ignored, message) => {
  let taken = 0;
  world.faults.set("tokyo", (request, response) => {
    if (request.method !== "PUT" || !ignored.some((name) => request.headers[name] !== undefined)) return false;
    taken++;
    request.resume();
    response.writeHead(200, { etag: '"0"' }).end();
    return true;
  });
  const found = (await check()).find(({ name }) => name === "conditional writes");
  expect(found).toMatchObject({ state: "warn", message: expect.stringContaining(message) });
  expect(taken).toBeGreaterThan(0);
});

test("a store that ignores If-Match on deletions is warned of", async () => {
  let deleted = 0;
  world.faults.set("tokyo", async (request, response, name) => {
    if (request.method !== "DELETE" || request.headers["if-match"] === undefined) return false;
    deleted++;
    // Through another name of the same endpoint, without the condition.
    await storesOf(world.config, CREDENTIALS)
      .find(({ region }) => region.name === "tokyo")!
      .remove([name]);
    response.writeHead(204).end();
    return true;
  });
  const found = (await check()).find(({ name }) => name === "conditional deletes");
  expect(found).toMatchObject({ state: "warn", message: expect.stringContaining("is ignored") });
  expect(deleted).toBe(1);
  expect(await world.names()).toEqual([]);
});

test("regions that pass the same checks are one line, a failure is a line, and --verbose prints all", async () => {
  const lines = async (...args: string[]): Promise<string[]> =>
    (await world.run(["doctor", ...args])).stdout.toString().trim().split("\n");
  const brief = await lines();
  expect(brief.length).toBeLessThanOrEqual(10);
  expect(brief.filter((line) => /^ok .*dublin, .*: credentials, write, /.test(line))).toHaveLength(1);
  expect((await lines("--verbose")).length).toBeGreaterThan(30);
});

test("regions without keys are one line, which says where keys are looked for", async () => {
  const env = {
    AWS_ACCESS_KEY_ID: "",
    AWS_SECRET_ACCESS_KEY: "",
    AWS_CONFIG_FILE: "/nowhere",
    AWS_SHARED_CREDENTIALS_FILE: "/nowhere",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const { code, stdout } = await world.run(["doctor"], env);
  expect(code).toBe(1);
  const lines = stdout
    .toString()
    .split("\n")
    .filter((line) => line.includes("CREDENTIALS_REFUSED"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(
    /^FAIL {2}(\S+, ){5}\S+: credentials: CREDENTIALS_REFUSED: there are no keys for the region /,
  );
  expect(lines[0]).toContain("AWS_ACCESS_KEY_ID");
});

test("when all regions refuse the keys, the first line says so", async () => {
  const { code, stdout } = await world.run(["doctor", "--json"], { AWS_SECRET_ACCESS_KEY: "wrong" });
  expect(code).toBe(1);
  const { checks } = JSON.parse(stdout.toString()) as { checks: Check[] };
  expect(checks[0]).toMatchObject({
    subject: "configuration",
    name: "credentials",
    state: "fail",
    message: expect.stringContaining("all 6 regions refused the keys"),
  });
  const sound = JSON.parse((await world.run(["doctor", "--json"])).stdout.toString()) as { checks: Check[] };
  expect(sound.checks.some(({ message }) => message.includes("refused the keys"))).toBe(false);
});

test("the CORS rule that the documents give passes", async () => {
  rewriteTo({ "access-control-expose-headers": "Content-Length, Content-Range, ETag" });
  expect((await check()).filter(({ state }) => state !== "ok")).toEqual([]);
});

test("the policy for public reads is given", async () => {
  world.faults.set("tokyo", (request, response) => {
    if (request.headers.authorization || request.method !== "GET") return false;
    response.writeHead(403).end();
    return true;
  });
  const found = (await check()).find(({ name }) => name === "public read");
  expect(found?.message).toContain(publicReadPolicy("bucket-tokyo"));
});

test("the layout is measured against the promise", () => {
  expect(checkLayout(world.config)).toMatchObject([{ state: "ok", message: expect.stringContaining("2 regions") }]);
  const threeProviders = world.config.regions.map((region, at) => ({ ...region, provider: `p${at % 3}` }));
  const nine = {
    ...world.config,
    code: { k: 9, m: 3 },
    regions: threeProviders,
    survive: { regions: 1, providers: 1 },
  };
  expect(checkLayout(nine)).toMatchObject([{ state: "fail", message: expect.stringContaining("0 providers") }]);
});
