import { afterEach, describe, expect, test, vi } from "vitest";
import { explainError } from "@agarose/core";
import { createClient, fetchObject } from "./fetch-object.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const BYTES = sampleBytes(5_000);

afterEach(() => vi.unstubAllGlobals());

async function whole(world: FakeWorld, response: Promise<Response>): Promise<Uint8Array> {
  const bytes: ArrayBuffer = await world.clock.settle(response.then((answered) => answered.arrayBuffer()));
  return new Uint8Array(bytes);
}

/** Distinguishes an answer of our worker from others. */
const OURS = { "x-agarose-read": "edge" };

/** A page under a service worker that answers so. */
function control(answer: (url: string, init: RequestInit) => Response, scriptURL = "https://app.test/sw.js"): void {
  vi.stubGlobal("navigator", { serviceWorker: { controller: { scriptURL } } });
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => answer(url, init));
}

describe("without a service worker", () => {
  test("reads an object, and a range of it", async () => {
    const world = new FakeWorld();
    world.put("a/b.bin", BYTES);
    const client = world.client();
    expect(await whole(world, fetchObject("a/b.bin", { client }))).toEqual(BYTES);
    const ranges = [
      [{ start: 10, end: 20 }, BYTES.subarray(10, 20)],
      [{ start: 4_990 }, BYTES.subarray(4_990)],
      [{ start: -7 }, BYTES.subarray(-7)],
    ] as const;
    for (const [range, bytes] of ranges) {
      expect(await whole(world, fetchObject("a/b.bin", { client, range }))).toEqual(bytes);
    }
  });

  test("makes a client from the configuration file and its defaults, or reports what is wrong with it", () => {
    const pops = [{ name: "p", url: "https://p.test/" }];
    expect(createClient({ pops, unsigned: true }).config).toEqual({
      unsigned: true,
      prefix: "/ec/",
      pops: [{ name: "p", url: "https://p.test" }],
      regions: [],
    });
    for (const wrong of [{}, "agarose.json", { pops: [{ name: "p", url: "/relative" }] }]) {
      expect(() => createClient(wrong as object)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    }
  });

  test("a token goes to the PoPs and to no bucket", async () => {
    const world = new FakeWorld();
    world.put("members/a", BYTES);
    await whole(world, fetchObject("members/a", { client: world.client(), token: "secret" }));
    for (const { to, authorization } of world.requests())
      expect([to, authorization]).toEqual([to, to.startsWith("p") ? "Bearer secret" : undefined]);
    expect(new Set(world.requests().map(({ to }) => to[0]))).toEqual(new Set(["p", "r"]));
  });

  test("reports its progress up to the length of the object", async () => {
    const world = new FakeWorld();
    world.put("a", BYTES);
    const reported: number[] = [];
    const onProgress = ({ bytes, totalBytes }: { bytes: number; totalBytes: number | undefined }): void => {
      expect(totalBytes).toBe(5_000);
      reported.push(bytes);
    };
    await whole(world, fetchObject("a", { client: world.client(), onProgress }));
    expect(reported.at(-1)).toBe(5_000);
    expect(reported).toEqual(reported.toSorted((a, b) => a - b));
  });

  test("rejects with the code of what is wrong", async () => {
    const world = new FakeWorld();
    const client = world.client();
    const settled = (promise: Promise<unknown>): Promise<unknown> =>
      world.clock.settle(promise.catch((error: unknown) => error));
    expect(await settled(fetchObject("nothing", { client }))).toMatchObject({ code: "OBJECT_NOT_FOUND" });
    expect(await settled(fetchObject("a/../b", { client }))).toMatchObject({ code: "KEY_INVALID" });
    expect(await settled(fetchObject("a", { client, range: { start: 5, end: 5 } }))).toMatchObject({
      code: "RANGE_UNSATISFIABLE",
    });
    expect(await settled(fetchObject("a", { client, signal: AbortSignal.abort() }))).toMatchObject({ code: "ABORTED" });
    expect(await settled(fetchObject("a"))).toMatchObject({ code: "CONFIG_INVALID" });
  });
});

describe("through a service worker in charge", () => {
  test("asks below its prefix, with the key encoded and the range as a header", async () => {
    const part = { status: 206, headers: OURS };
    control((url, { headers }) => new Response(`${url} ${(headers as Headers).get("range")}`, part));
    const response = await fetchObject("ü/a b", { prefix: "/m/", range: { start: 1, end: 3 } });
    expect(await response.text()).toBe("/m/%C3%BC/a%20b bytes=1-2");
  });

  test("asks below the prefix that the worker's URL names", async () => {
    const scriptURL = "https://app.test/agarose-sw.js?config=/agarose.json&prefix=/media/";
    control((url) => new Response(url, { headers: OURS }), scriptURL);
    expect(await (await fetchObject("a")).text()).toBe("/media/a");
    expect(await (await fetchObject("a", { prefix: "/m/" })).text()).toBe("/m/a");
  });

  test.each([
    ["a page in the place of the object", 200],
    ["an error of its own", 404],
  ])("takes no answer of another worker for the object: %s", async (_name, status) => {
    let cancelled = 0;
    control(() => new Response(new ReadableStream({ cancel: () => void cancelled++ }), { status }));
    await expect(fetchObject("a")).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    const world = new FakeWorld();
    world.put("a", BYTES);
    expect(await whole(world, fetchObject("a", { client: world.client() }))).toEqual(BYTES);
    expect(cancelled).toBe(2);
  });

  test("errors when the worker that would continue a read is gone", async () => {
    const headers = { ...OURS, etag: '"v"', "content-length": "9" };
    let isAsked = false;
    control(() => {
      if (isAsked) return new Response("<html>");
      isAsked = true;
      return new Response("12345", { headers });
    });
    await expect((await fetchObject("a")).text()).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  });

  test.each([
    ["high", "u=1"],
    ["low", "u=5"],
    ["auto", null],
  ] as const)("says in a header that its priority is %s", async (priority, header) => {
    control((_, init) => new Response(String((init.headers as Headers).get("priority")), { headers: OURS }));
    expect(await (await fetchObject("a", { priority })).text()).toBe(String(header));
  });

  test("gives an error that came without words some of its own", async () => {
    const error = { code: "NOT_ENOUGH_CHUNKS", message: "NOT_ENOUGH_CHUNKS", details: { needed: 9 } };
    control(() => Response.json({ error }, { status: 502, headers: { "x-agarose-error": error.code } }));
    await expect(fetchObject("a")).rejects.toThrow(`a: ${explainError("NOT_ENOUGH_CHUNKS")} Details: {"needed":9}`);
  });

  test("turns an error answer back into the error", async () => {
    const error = { code: "NOT_ENOUGH_CHUNKS", message: "needs 9", details: { needed: 9 } };
    control(() => Response.json({ error }, { status: 502, headers: { "x-agarose-error": error.code } }));
    await expect(fetchObject("a")).rejects.toMatchObject({ ...error, details: { needed: 9, status: 502 } });
  });
});
