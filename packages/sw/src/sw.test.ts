/** The worker as its browser sees it. The network is the global fetch, replaced by a fake world's. */
import * as zlib from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FetchInit } from "@agarose/core";
import { javascriptCodec } from "@agarose/ec-wasm";
import { parseConfig } from "./common/config.ts";
import { wire, wireFromUrl } from "./worker/install.ts";
import { OFFLINE_CACHE_NAME } from "./common/cache-names.ts";
import { offlineStore } from "./offline/offline-store.ts";
import { FakeCache } from "../test/fake-cache.ts";
import { FakeScope } from "../test/fake-scope.ts";
import { FakeWorld, sampleBytes } from "../test/fake-world.ts";

const BYTES = sampleBytes(5_000);
const OPTIONS = { codec: async () => javascriptCodec(), store: offlineStore };
const CONFIG_URL = "https://app.test/agarose.json";
let world: FakeWorld;
let scope: FakeScope;
let configFile: () => Response;

beforeEach(() => {
  world = new FakeWorld();
  world.put("cat.jpg", BYTES);
  scope = new FakeScope();
  const { pops, regions } = world;
  const endpoints = {
    unsigned: true,
    pops: pops.map(({ name, url }) => ({ name, url })),
    regions: regions.map(({ name, url }) => ({ name, url })),
  };
  configFile = () => Response.json(endpoints);
  const { fetch } = world;
  vi.stubGlobal("fetch", (url: string, init: FetchInit) =>
    // Virtual time passes as fast as it is waited for.
    url === CONFIG_URL ? Promise.resolve(configFile()) : world.clock.settle(fetch(url, init)),
  );
});

afterEach(() => vi.unstubAllGlobals());

function install(): void {
  wire(scope, { prefix: "/ec/", url: CONFIG_URL }, OPTIONS);
}

describe("requests", () => {
  test.each([
    ["another path", "/photos/cat.jpg", {}],
    ["the prefix itself", "/ec/", {}],
    ["another origin", "https://elsewhere.test/ec/cat.jpg", {}],
    ["a POST", "/ec/cat.jpg", { method: "POST" }],
    ["a DELETE", "/ec/cat.jpg", { method: "DELETE" }],
  ])("lets %s pass untouched", async (_, url, init) => {
    install();
    expect(await scope.request(url, init)).toBeUndefined();
  });

  test("answers a GET below its prefix with the object", async () => {
    install();
    const response = await scope.request("/ec/cat.jpg");
    expect(response!.status).toBe(200);
    expect(response!.headers.get("x-agarose-read")).toBe("origin");
    expect(new Uint8Array(await response!.arrayBuffer())).toEqual(BYTES);
  });

  test("answers a range with 206, one that cannot be met with 416, an unknown key with 404", async () => {
    install();
    const part = await scope.request("/ec/cat.jpg", { headers: { range: "bytes=10-19" } });
    expect([part!.status, part!.headers.get("content-range")]).toEqual([206, "bytes 10-19/5000"]);
    expect(new Uint8Array(await part!.arrayBuffer())).toEqual(BYTES.subarray(10, 20));
    const beyond = await scope.request("/ec/cat.jpg", { headers: { range: "bytes=5000-" } });
    expect([beyond!.status, beyond!.headers.get("content-range")]).toEqual([416, "bytes */5000"]);
    const absent = await scope.request("/ec/dog.jpg");
    expect([absent!.status, (await absent!.json()).error.code]).toEqual([404, "OBJECT_NOT_FOUND"]);
  });

  test("answers a path that is no key with 400", async () => {
    install();
    expect((await scope.request("/ec/%FF"))!.status).toBe(400);
    expect((await scope.request("/ec/a%00b"))!.status).toBe(400);
  });
});

describe("content codings", () => {
  const text = "the same line again\n".repeat(50);
  const { brotliCompressSync, gzipSync } = zlib;

  test.each([
    ["gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["br", brotliCompressSync(text)],
    ["gzip, br", brotliCompressSync(gzipSync(text))],
    ["identity, gzip", gzipSync(text)],
  ])("of a whole object are undone: %s, as a browser does for the network", async (coding, coded) => {
    world.put("lines.txt", coded, { headers: { "content-encoding": coding } });
    install();
    const plain = await scope.request("/ec/lines.txt");
    const { headers } = plain!;
    expect(await plain!.text()).toBe(text);
    for (const name of ["content-encoding", "content-length", "accept-ranges"]) expect(headers.get(name)).toBeNull();
    const head = await scope.request("/ec/lines.txt", { method: "HEAD" });
    expect([head!.headers.get("etag"), head!.headers.get("content-length")]).toEqual([headers.get("etag"), null]);
    const known = await scope.request("/ec/lines.txt", { headers: { "if-none-match": headers.get("etag")! } });
    expect(known!.status).toBe(304);
  });

  test.each([["bytes=5-"], ["bytes=0-9"], ["bytes=9999999-"]])(
    "leave no ranges: a reader that resumes by %s gets the whole text again",
    async (range) => {
      world.put("lines.txt", gzipSync(text), { headers: { "content-encoding": "gzip" } });
      install();
      const etag = (await scope.request("/ec/lines.txt"))!.headers.get("etag")!;
      for (const ifRange of [{}, { "if-range": etag }, { "if-range": etag.replace("W/", "") }]) {
        const again = await scope.request("/ec/lines.txt", { headers: { range, ...ifRange } });
        expect([again!.status, await again!.text()]).toEqual([200, text]);
      }
    },
  );

  test.each(["gzip", "br", "deflate", "gzip, br"])("of an empty object have nothing to undo: %s", async (coding) => {
    world.put("lines.txt", new Uint8Array(), { headers: { "content-encoding": coding } });
    install();
    const response = await scope.request("/ec/lines.txt");
    expect([response!.status, await response!.text()]).toEqual([200, ""]);
  });

  test.each([gzipSync(text).subarray(0, -9), Buffer.from(text)])(
    "that the bytes do not follow error the body, so that no reader takes a part for the whole",
    async (coded) => {
      world.put("lines.txt", coded, { headers: { "content-encoding": "gzip" } });
      install();
      const response = await scope.request("/ec/lines.txt");
      await expect(response!.text()).rejects.toThrow();
    },
  );

  test("that browsers do not know leave the object as it is, with its ranges", async () => {
    world.put("lines.txt", new TextEncoder().encode(text), { headers: { "content-encoding": "made-up" } });
    install();
    const response = await scope.request("/ec/lines.txt", { headers: { range: "bytes=4-7" } });
    expect([response!.status, await response!.text()]).toEqual([206, "same"]);
    expect(response!.headers.get("content-encoding")).toBe("made-up");
  });

  test.each([
    ["zstd", "zstd"],
    ["deflate", ""],
    ["gzip, deflate", ""],
  ])("that this browser's worker cannot undo are left to its network: %s by a PoP", async (coding, format) => {
    const { DecompressionStream: own } = globalThis;
    const refused: string[] = [];
    vi.stubGlobal(
      "DecompressionStream",
      class extends own {
        constructor(asked: CompressionFormat) {
          if ((asked as string) === format) refused.push(asked);
          super(asked);
        }
      },
    );
    world.put("lines.txt", new TextEncoder().encode(text), { headers: { "content-encoding": coding } });
    install();
    const response = await scope.request("/ec/lines.txt", { headers: { range: "bytes=0-9" } });
    expect(refused.length, "the fault fired").toBeGreaterThan(0);
    // The network of the fake world has undone it.
    expect([response!.status, await response!.text()]).toEqual([200, text]);
    expect(world.log.filter(({ url }) => url.includes("/o/lines.txt"))).toMatchObject([{ range: undefined }]);
  });
});

describe("life cycle", () => {
  test("takes control of open pages when it is installed for the first time, without skipWaiting", async () => {
    install();
    await scope.fire("install");
    await scope.fire("activate");
    expect(scope.calls).toEqual(["claim"]);
  });

  test("waits its turn as an update, until a page asks it to skip waiting", async () => {
    scope.registration.active = {};
    install();
    await scope.fire("install");
    await scope.fire("activate");
    expect(scope.calls).toEqual([]);
    await scope.fire("message", { data: { type: "SKIP_WAITING" } });
    await scope.fire("message", { data: "something of the page's own" });
    expect(scope.calls).toEqual(["skipWaiting"]);
  });

  test("spares itself requests outside its prefix where it is alone and the browser can, and only there", async () => {
    const routes: object[] = [];
    const addRoutes = async (route: object): Promise<void> => void routes.push(route);
    install();
    await scope.fire("install", { addRoutes });
    expect(routes).toEqual([]);
    wire(scope, { prefix: "/ec.v1/", url: CONFIG_URL }, { ...OPTIONS, alone: true });
    configFile = () =>
      Response.json({ prefix: "/ec.v1/", pops: [{ name: "p0", url: "https://p0.test" }], unsigned: true });
    await scope.fire("install", { addRoutes });
    expect(routes).toEqual([
      { condition: { not: { urlPattern: { pathname: String.raw`/ec\.v1/*` } } }, source: "network" },
    ]);
    await scope.fire("install", { addRoutes: () => Promise.reject(new TypeError("not is unknown")) });
  });

  test("is not installed with a configuration that is no JSON, is missing, or unsound", async () => {
    install();
    for (const file of [
      () => new Response("<html>"),
      () => new Response(null, { status: 404 }),
      () => Response.json({ pops: [], unsigned: true }),
    ]) {
      configFile = file;
      await expect(scope.fire("install")).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    }
  });

  test.each(["text/html", "text/plain", "image/svg+xml", "application/octet-stream", "application/jsonp"])(
    "is not installed with a configuration of type %s",
    async (type) => {
      install();
      const text = await configFile().text();
      configFile = () => new Response(text, { headers: { "content-type": type } });
      await expect(scope.fire("install")).rejects.toMatchObject({ code: "CONFIG_INVALID", details: { type } });
      configFile = () => new Response(text, { headers: { "content-type": "application/json; charset=utf-8" } });
      await scope.fire("install");
    },
  );

  test("opens no object as a page, unless its URL opts in", async () => {
    const headers = new Headers();
    const opened = {
      method: "GET",
      mode: "navigate",
      url: "https://app.test/ec/cat.jpg",
      headers,
    } as unknown as Request;
    const respondsAt = async (query: string): Promise<boolean> => {
      let responded = false;
      const href = `${CONFIG_URL}?config=/agarose.json${query}`;
      scope = Object.assign(new FakeScope(), { location: new URL(href) });
      wireFromUrl(scope, { codec: async () => javascriptCodec() });
      await scope.fire("fetch", { request: opened, respondWith: () => void (responded = true), waitUntil: () => {} });
      return responded;
    };
    expect(await respondsAt("")).toBe(false);
    expect(await respondsAt("&navigations=yes")).toBe(true);
  });

  test("starts by the copy of its configuration, and follows the file where that has changed", async () => {
    const stored = new Map<string, Response>();
    const cache = {
      match: async (url: string) => stored.get(url)?.clone(),
      put: async (url: string, response: Response) => void stored.set(url, response),
    };
    vi.stubGlobal("caches", { open: async () => cache });
    install();
    await scope.fire("install");
    expect([...stored.keys()]).toEqual([CONFIG_URL]);

    configFile = () => Response.error();
    scope = new FakeScope();
    install();
    expect((await scope.request("/ec/cat.jpg"))!.status).toBe(200);

    const [, pop] = world.pops;
    configFile = () => Response.json({ pops: [{ name: pop!.name, url: pop!.url }], unsigned: true });
    scope = new FakeScope();
    install();
    await scope.request("/ec/cat.jpg");
    world.log.length = 0;
    await scope.request("/ec/cat.jpg");
    expect(world.requests("p0")).toEqual([]);
    expect(world.requests("p1")).toHaveLength(1);
  });

  test("repeats a read that fails by an outdated configuration, by the one that the app serves now", async () => {
    const [old, moved] = world.pops as [(typeof world.pops)[0], (typeof world.pops)[0]];
    const naming = ({ name, url }: typeof old) => Response.json({ pops: [{ name, url }], unsigned: true });
    configFile = () => naming(old);
    old.fault = "refuses";
    install();
    expect((await (await scope.request("/ec/cat.jpg"))!.json()).error.code).toBe("NO_SOURCE");
    configFile = () => naming(moved);
    // A worker that has just started does not fetch its configuration for each failure.
    await vi.waitFor(async () => expect((await scope.request("/ec/cat.jpg"))!.status).toBe(200), 10_000);
  });

  test("fetches its configuration again when a page registers", async () => {
    install();
    await scope.request("/ec/cat.jpg");
    const [, pop] = world.pops;
    configFile = () => Response.json({ pops: [{ name: pop!.name, url: pop!.url }], unsigned: true });
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    await scope.fire("message", { data: { agarose: "configure" } });
    world.log.length = 0;
    await scope.request("/ec/cat.jpg");
    expect([world.requests("p0").length, world.requests("p1").length]).toEqual([0, 1]);
  });

  test("passes what a signed URL and a token prove on to PoPs, and to no bucket", async () => {
    install();
    const headers = { authorization: "Bearer secret" };
    await (await scope.request("/ec/cat.jpg?expires=7&signature=abc&width=9", { headers }))!.arrayBuffer();
    const [first, ...others] = world.requests();
    expect(first).toMatchObject({ to: "p0", authorization: "Bearer secret" });
    expect(first!.url).toMatch(/expires=7&signature=abc$/);
    const withToken = others.filter(
      ({ url, authorization }) => url.includes("signature") || authorization !== undefined,
    );
    expect(withToken.filter(({ to }) => to.startsWith("r"))).toEqual([]);
    expect(others.some(({ to }) => to.startsWith("r"))).toBe(true);
  });

  test("leaves open pages alone where its URL says so, until one of them asks", async () => {
    scope = Object.assign(new FakeScope(), { location: new URL(`${CONFIG_URL}?config=/agarose.json&claim=no`) });
    wireFromUrl(scope, { codec: async () => javascriptCodec() });
    await scope.fire("install");
    await scope.fire("activate");
    expect(scope.calls).toEqual([]);
    await scope.fire("message", { data: { agarose: "claim" } });
    expect(scope.calls).toEqual(["claim"]);
  });

  test("asks again for the plans of changed objects, and for those that will be needed", async () => {
    install();
    await (await scope.request("/ec/cat.jpg"))!.arrayBuffer();
    const requestsAfter = async (data: object): Promise<string[]> => {
      world.log.length = 0;
      await scope.fire("message", { data });
      return world.requests().map(({ url }) => new URL(url).pathname + new URL(url).search);
    };
    expect(await requestsAfter({ agarose: "preload", keys: ["cat.jpg"] }), "it is known").toEqual([]);
    expect(await requestsAfter({ agarose: "update", keys: ["cat.jpg"] })).toEqual(["/v1/plans?key=cat.jpg"]);
    expect(await requestsAfter({ agarose: "preload", keys: ["cat.jpg", "dog.jpg"] })).toEqual([
      "/v1/plans?key=dog.jpg",
      "/v1/read/dog.jpg?from=0&to=0",
    ]);
  });

  test("answers a page that waits: when its work is done, or why it cannot be", async () => {
    install();
    const answersTo = async (data: object): Promise<unknown[]> => {
      const answers: unknown[] = [];
      await scope.fire("message", { data, ports: [{ postMessage: (answer: unknown) => void answers.push(answer) }] });
      return answers;
    };
    expect(await answersTo({ agarose: "preload", keys: ["cat.jpg"] })).toEqual([undefined]);
    const [error] = await answersTo({ agarose: "update", keys: ["dog.jpg", "cat.jpg"] });
    expect(error).toMatchObject({ code: "OBJECT_NOT_FOUND" });
    expect(await answersTo({ agarose: "preload", keys: ["cat.jpg"] }), "the others are there").toEqual([undefined]);
    expect(await answersTo({ agarose: "purge", prefix: "" })).toEqual([undefined]);
  });

  test("keeps what was read where the configuration says how much", async () => {
    const opened = vi.fn<(name: string) => Promise<Cache>>(async () => new FakeCache() as unknown as Cache);
    vi.stubGlobal("caches", { open: opened });
    const file = await configFile().json();
    configFile = () => Response.json({ ...file, offline: { bytes: 100_000 } });
    install();
    await (await scope.request("/ec/cat.jpg"))!.arrayBuffer();
    await vi.waitFor(() => expect(opened.mock.calls.flat()).toContain(OFFLINE_CACHE_NAME), 60_000);
  });

  test("forgets its plans on request", async () => {
    install();
    await (await scope.request("/ec/cat.jpg"))!.arrayBuffer();
    await scope.fire("message", { data: { agarose: "purge", prefix: "" } });
    world.log.length = 0;
    // Two reads within 20 ms would be a batch, which names no version whatever is known.
    await new Promise((resolve) => setTimeout(resolve, 25));
    await (await scope.request("/ec/cat.jpg"))!.arrayBuffer();
    // Round trips are measured for real: any PoP may be the nearest.
    const asked = world.requests().filter(({ url }) => url.includes("/v1/read/"));
    expect(asked.map(({ url }) => new URL(url).searchParams.get("version"))).toEqual([null]);
  });
});

test("a configuration given in the call needs no file", async () => {
  configFile = () => expect.fail("the file was fetched");
  const [pop] = world.pops;
  const config = parseConfig(
    { prefix: "/m/", pops: [{ name: pop!.name, url: pop!.url }], unsigned: true },
    "https://app.test/",
  );
  wire(scope, { prefix: "/m/", config }, OPTIONS);
  expect((await scope.request("/m/cat.jpg"))!.status).toBe(200);
});
