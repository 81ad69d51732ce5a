/** Actions that the service worker must refuse, whatever the request. */
import { AgaroseError } from "@agarose/core";
import { chunkName, keyName, keyOfName, manifestName, objectUrl, parseKey } from "@agarose/core/format";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import { fetchPort } from "../ports/browser-ports.ts";
import { route } from "./routing.ts";

const APP = "https://app.test";
const OURS = { origin: APP, prefix: "/ec/", navigations: false };
const BUCKET = "https://bucket.test/media";
const VERSION = "0".repeat(32);

describe("a request of the service worker", () => {
  const POLICY = { credentials: "omit", redirect: "error", cache: "no-store" };

  test("carries no cookies, follows no redirect and leaves nothing in the HTTP cache, whatever is passed with it", async () => {
    const fetch = vi.fn(async () => new Response());
    const init = { headers: { range: "bytes=0-1" }, credentials: "include", redirect: "follow", cache: "default" };
    await fetchPort(fetch)("https://bucket.test/chunk", init as never);
    expect(fetch).toHaveBeenCalledExactlyOnceWith("https://bucket.test/chunk", { ...init, ...POLICY });
  });
});

describe("a path", () => {
  const segment = fc.oneof(
    fc.constantFrom(".", "..", "%2e%2e", "%2E.", "%2f", "%5c", "\\", "%00", "@", "", "%", "%ff", "ec", "chunks", "é"),
    fc.string({ maxLength: 8 }),
  );
  const tail = fc.array(segment, { maxLength: 6 }).map((segments) => segments.join("/"));

  test("below the prefix is refused or names one object below the bucket's own folders; others are let pass", () => {
    const seen = { passed: 0, refused: 0, read: 0 };
    fc.assert(
      fc.property(tail, (path) => {
        const url = new URL(`/ec/${path}`, APP);
        const routed = route({ method: "GET", url: url.href }, OURS);
        if (!routed) {
          seen.passed++;
          expect(url.pathname.startsWith("/ec/") && url.pathname !== "/ec/").toBe(false);
          return;
        }
        const key = keyOf(routed.key);
        if (key === undefined) return void seen.refused++;
        seen.read++;
        expect(new URL(objectUrl(BUCKET, manifestName(key))).href).toMatch(
          /^https:\/\/bucket\.test\/media\/manifests\//,
        );
        const chunk = new URL(objectUrl(BUCKET, chunkName(key, VERSION, 0)));
        expect(chunk.href).toMatch(/^https:\/\/bucket\.test\/media\/chunks\//);
        // Nothing was folded on the way: the name is that of this key and of no other.
        expect(keyOfName(keyName(key))).toBe(key);
      }),
      { numRuns: 2000 },
    );
    expect(Math.min(seen.passed, seen.refused, seen.read), JSON.stringify(seen)).toBeGreaterThan(10);
  });

  test("that opens an object as a page passes, unless the app opts in", () => {
    const request = { method: "GET", mode: "navigate", url: `${APP}/ec/a.html` } as const;
    expect(route(request, OURS)).toBeUndefined();
    expect(route(request, { ...OURS, navigations: true })).toMatchObject({ method: "GET" });
    expect(route({ ...request, mode: "no-cors" }, OURS)).toMatchObject({ method: "GET" });
  });

  test("of another origin, or of another method, is none of ours", () => {
    expect(route({ method: "GET", url: "https://other.test/ec/a" }, OURS)).toBeUndefined();
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      expect(route({ method, url: `${APP}/ec/a` }, OURS)).toBeUndefined();
    }
  });
});

/** The key, or undefined when it is refused with a code. */
function keyOf(key: () => string): string | undefined {
  try {
    return parseKey(key());
  } catch (error) {
    expect(error).toBeInstanceOf(AgaroseError);
    return undefined;
  }
}

describe("a browser without Ed25519", () => {
  const publicKeys = [`ed25519:${"A".repeat(43)}=`];

  // The fault cannot be had from the runtimes that tests run in, so the import of the key is made to fail.
  const withoutEd25519 = (): { readonly mock: { readonly calls: unknown[][] } } =>
    vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(new DOMException("Unrecognized name.", "NotSupportedError"));
  afterEach(() => vi.restoreAllMocks());

  const readAll = async (world: FakeWorld, config: object) => {
    const request = { key: "a", method: "GET", headers: new Headers() } as const;
    const reading = world.client({ publicKeys, unsigned: undefined, ...config }).answer(request);
    const { status, body } = await world.clock.settle(reading);
    return { status, bytes: new Uint8Array(await new Response(body).arrayBuffer()) };
  };

  test("reads through a PoP, which checks the signatures", async () => {
    const importKey = withoutEd25519();
    const world = new FakeWorld();
    world.put("a", sampleBytes(5_000));
    expect(await readAll(world, {})).toEqual({ status: 200, bytes: sampleBytes(5_000) });
    expect(importKey.mock.calls.length, "the fault fired").toBeGreaterThan(0);
    expect(world.log.filter(({ url }) => url.includes("/o/a")).length).toBe(1);
    expect(
      world.log.filter(({ url }) => url.includes("/chunks/")),
      "no chunk was asked for",
    ).toEqual([]);
  });

  test("is given the reason where there is no PoP", async () => {
    withoutEd25519();
    const world = new FakeWorld();
    world.put("a", sampleBytes(5_000));
    await expect(readAll(world, { pops: [] })).rejects.toMatchObject({ code: "SIGNATURE_UNSUPPORTED" });
  });
});

test("a region whose manifest is not used is asked last for the next object", async () => {
  const world = new FakeWorld();
  for (const key of ["a", "b"]) world.put(key, sampleBytes(5_000));
  const [nearest] = world.regions;
  nearest!.store.set(manifestName("a"), new TextEncoder().encode("{}"));
  const client = world.client({ pops: [] });
  const askedFor = async (key: string): Promise<string[]> => {
    const { body } = await world.clock.settle(client.answer({ key, method: "GET", headers: new Headers() }));
    expect(new Uint8Array(await new Response(body).arrayBuffer())).toEqual(sampleBytes(5_000));
    return world.log.filter(({ url }) => url.includes(`/manifests/${key}`)).map(({ to }) => to);
  };
  expect((await askedFor("a"))[0], "the fault fired").toBe(nearest!.name);
  expect(await askedFor("b")).not.toContain(nearest!.name);
});
