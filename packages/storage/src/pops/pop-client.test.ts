import { rejectionOf } from "@agarose/core/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keysBehind, PopClient, type PopClientOptions } from "./pop-client.ts";

const FRA = { name: "fra", url: "https://fra.test" };
const STATUS = {
  epoch: 1,
  policy: "exact",
  cache: { capacityBytes: 1, cachedBytes: 0, objects: [] },
  regions: [],
  lastPeriod: null,
  isolate: { chunkCache: { hits: 0, misses: 0 } },
};

/** The requests of the client: method, path, admin token and body. */
let requested: unknown[];
beforeEach(() => {
  requested = [];
  vi.stubEnv("AGAROSE_ADMIN_TOKEN", "secret");
});
afterEach(() => vi.unstubAllEnvs());

/** A client of a PoP that gives `answer` to everything. */
function clientOf(answer: (signal: AbortSignal) => Response | Promise<Response>, more?: PopClientOptions): PopClient {
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { method = "GET", body } = init;
    requested.push([method, String(url), new Headers(init.headers).get("authorization"), body]);
    return answer(init.signal!);
  };
  return new PopClient(FRA, { fetch, ...more });
}

test("health sends no token, and reads name, entry and version", async () => {
  const client = clientOf(() => Response.json({ ok: true, pop: "lhr", entry: "FRA", version: null }));
  expect((await client.health()).answer).toEqual({ pop: "lhr", entry: "FRA", version: undefined });
  expect(requested).toEqual([["GET", "https://fra.test/healthz", null, undefined]]);
});

test.each([[null], [[1]], ["text"]])("health of %j names no PoP", async (body) => {
  expect((await clientOf(() => Response.json(body)).health()).answer).toEqual({});
});

test("status sends the token, and says where the Worker ran", async () => {
  const headers = { "cf-placement": "remote-FRA" };
  const answer = { ...STATUS, peers: { peers: [{ name: "lhr", down: false, silent: true }] } };
  const found = await clientOf(() => Response.json(answer, { headers })).status();
  expect(found).toEqual({ answer, placement: "remote-FRA" });
  expect(requested).toEqual([["GET", "https://fra.test/v1/status", "Bearer secret", undefined]]);
});

test.each([{ peers: { peers: [{ name: "lhr" }] } }, { behind: [{ key: 1 }] }, { ideas: [{ name: "caching" }] }])(
  "a status with %j is no PoP's of this version",
  async (wrong) => {
    const error = await rejectionOf(clientOf(() => Response.json({ ...STATUS, ...wrong })).status());
    expect(error).toMatchObject({ code: "SOURCE_FAILED", message: expect.stringContaining("or deploy it again") });
  },
);

test("a purge names keys or a prefix", async () => {
  const client = clientOf(() => Response.json({}));
  await client.purge({ keys: ["a"] });
  await client.purge({ prefix: "docs/" });
  expect(requested).toEqual([
    ["POST", "https://fra.test/v1/purge", "Bearer secret", '{"keys":["a"]}'],
    ["POST", "https://fra.test/v1/purge", "Bearer secret", '{"prefix":"docs/"}'],
  ]);
});

test("a preflight resolves to the headers that are allowed, in lower case", async () => {
  const headers = { "access-control-allow-headers": "Range, IF-Match" };
  const client = clientOf(() => new Response(null, { status: 204, headers }));
  expect(await client.preflight(["range"])).toEqual(new Set(["range", "if-match"]));
});

test("without a token nothing is requested that needs one", async () => {
  vi.stubEnv("AGAROSE_ADMIN_TOKEN", "");
  const client = clientOf(() => Response.json(STATUS));
  for (const refused of [client.status(), client.purge({ keys: ["a"] })]) {
    const error = await rejectionOf(refused);
    expect(error).toMatchObject({ code: "FORBIDDEN", message: expect.stringContaining("set AGAROSE_ADMIN_TOKEN") });
  }
  expect([client.hasToken, requested]).toEqual([false, []]);
  expect(await keysBehind([FRA])).toEqual([]);
});

test("an error of the PoP has its status, what the PoP says, and the next step", async () => {
  const answer = { error: { code: "BUSY", message: "a period runs" } };
  const error = await rejectionOf(clientOf(() => Response.json(answer, { status: 503 })).status());
  expect(error).toMatchObject({
    code: "SOURCE_FAILED",
    message: "https://fra.test/v1/status answered 503 (a period runs): deploy it again, or read its log",
    details: { url: "https://fra.test/v1/status", status: 503, reason: "a period runs" },
  });
});

test.each([200, 502])("an answer of %i without an end is given up", async (status) => {
  let parts = 0;
  const part = new Uint8Array(1024 * 1024).fill(0x20);
  const endless = (): ReadableStream => new ReadableStream({ pull: (to) => void (parts++, to.enqueue(part)) });
  const error = await rejectionOf(clientOf(() => new Response(endless(), { status })).health());
  expect(error).toMatchObject({ code: "SOURCE_FAILED" });
  expect(parts).toBeLessThan(20);
});

test.each([401, 403])("a refusal of %i is FORBIDDEN, and its body is given up", async (status) => {
  let left = 0;
  const silent = (): ReadableStream => new ReadableStream({ cancel: () => void left++ });
  const error = await rejectionOf(clientOf(() => new Response(silent(), { status })).status());
  expect(error).toMatchObject({ code: "FORBIDDEN", details: { status } });
  expect(left).toBe(1);
});

test("a PoP that is silent is given up after the time-out", async () => {
  const silent = (signal: AbortSignal): Promise<Response> =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  const error = await rejectionOf(clientOf(silent, { timeoutMs: 10 }).health());
  expect(error).toMatchObject({ code: "SOURCE_FAILED", message: expect.stringContaining("did not answer in 10 ms") });
});

test("an abort of the caller is no failure of the PoP", async () => {
  const abort = new AbortController();
  const reason = new DOMException("interrupted", "AbortError");
  const client = clientOf(() => Promise.reject((abort.abort(reason), reason)), { signal: abort.signal });
  await expect(client.health()).rejects.toBe(reason);
});
