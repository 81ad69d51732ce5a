import fc from "fast-check";
import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import type { RegionConfig } from "../config/config.ts";
import { checkedListing, PAGE_BYTES_MAX, type ListedPage } from "./checked-listing.ts";
import { S3Store } from "./s3-store.ts";

const REGION = {
  name: "near",
  provider: "p",
  endpoint: "http://s3",
  bucket: "b",
  awsRegion: "us-east-1",
} as RegionConfig;

/** The names of a listing that is made of these pages, whatever token is asked for. */
async function namesOf(pages: readonly ListedPage[], { prefix = "", after = "" } = {}): Promise<string[]> {
  let at = 0;
  const fetchPage = (): Promise<ListedPage> => Promise.resolve(pages[Math.min(at++, pages.length - 1)]!);
  const names: string[] = [];
  for await (const { name } of checkedListing(REGION, { prefix, after }, fetchPage)) names.push(name);
  return names;
}

function page(names: readonly string[], next?: string): ListedPage {
  const objects = names.map((name) => ({ name, bytes: 1, modifiedMs: 0 }));
  return { objects, isTruncated: next !== undefined, next };
}

function pageOfBytes(bytes: number): ListedPage {
  return { objects: [{ name: "a", bytes, modifiedMs: 0 }], isTruncated: false, next: undefined };
}

describe("a listing", () => {
  test("has the names of all pages, empty ones between them, and begins after a name even where the store does not", async () => {
    const pages = [page(["a/1", "a/2"], "t1"), page([], "t2"), page(["a/3"])];
    expect(await namesOf(pages, { prefix: "a/" })).toEqual(["a/1", "a/2", "a/3"]);
    expect(await namesOf(pages, { prefix: "a/", after: "a/1" })).toEqual(["a/2", "a/3"]);
  });

  test("leaves the order of other programs' names alone, because it can be that of UTF-16", async () => {
    const names = ["\u{1f600}", "\uff5e", "a", "b"];
    expect(await namesOf([page(names)])).toEqual(names);
  });

  test.each<[string, ListedPage[], string]>([
    [
      "no ListBucketResult, as an empty body is",
      [{ ...page([]), isTruncated: undefined }],
      "not with a ListBucketResult",
    ],
    ["more that cannot be had", [{ ...page(["a"]), isTruncated: true }], "not how to get it"],
    ["the token that was asked for", [page(["a"], "t"), page(["b"], "t")], "same continuation token"],
    ["pages without names that never end", Array.from({ length: 300 }, (_, i) => page([], `t${i}`)), "101 pages"],
    ["a name that was not asked for", [page(["other/a"])], "not asked for"],
    ["a name twice", [page(["p/a", "p/a"])], "twice"],
    ["a length that is no number", [pageOfBytes(Number.NaN)], "with NaN bytes"],
    ["a length below 0", [pageOfBytes(-1)], "with -1 bytes"],
    ["names in another order", [page(["p/b", "p/a"])], "not in order"],
    ["a page again under another token", [page(["p/a", "p/b"], "t1"), page(["p/a", "p/b"], "t2")], "not in order"],
  ])("fails where the store sends %s", async (_, pages, message) => {
    const listed = namesOf(pages, { prefix: message === "not asked for" ? "p/" : "" });
    await expect(listed).rejects.toMatchObject({ code: "SOURCE_FAILED", details: { region: "near" } });
    await expect(listed).rejects.toThrow(message);
  });

  test("is right or fails, whatever the pages are: no name twice, none missing before its end", async () => {
    const name = fc.constantFrom("p/a", "p/b", "p/c", "p/d", "q");
    const pages = fc.array(
      fc.record({
        names: fc.array(name, { maxLength: 4 }),
        isTruncated: fc.constantFrom(true, false, undefined),
        next: fc.option(fc.constantFrom("t1", "t2", ""), { nil: undefined }),
      }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(pages, async (drawn) => {
        const sent = drawn.map(({ names, ...rest }) => ({ ...page(names), ...rest }));
        const listed = await namesOf(sent, { prefix: "p/" }).catch(() => undefined);
        if (!listed) return;
        expect(listed).toEqual([...new Set(listed)].toSorted());
        const end = sent.findIndex(({ isTruncated }) => isTruncated === false);
        expect(listed).toEqual(sent.slice(0, end + 1).flatMap(({ objects }) => objects.map((object) => object.name)));
      }),
    );
  });
});

describe("a store over TCP that sends", () => {
  let server: Server | undefined;
  let store: S3Store | undefined;
  let requests = 0;

  afterEach(() => {
    store?.close();
    server?.closeAllConnections();
    server?.close();
  });

  async function storeBehind(answer: RequestListener): Promise<S3Store> {
    requests = 0;
    server = createServer((request, response) => {
      requests++;
      request.resume();
      response.on("error", () => {});
      answer(request, response);
    });
    const endpoint = await listenLocally(server);
    const credentials = { accessKeyId: "AKIATEST", secretAccessKey: "secret" };
    store = new S3Store({ ...REGION, endpoint }, { credentials, attempts: 1 });
    return store;
  }

  async function list(of: S3Store): Promise<string[]> {
    const names: string[] = [];
    for await (const { name } of of.list("")) names.push(name);
    return names;
  }

  test.each([
    ["an empty body", ""],
    ["a page for people", "<html><body>Sign in</body></html>"],
  ])("%s with 200 is no empty bucket", async (_, body) => {
    const opened = await storeBehind((_request, response) => response.end(body));
    await expect(list(opened)).rejects.toMatchObject({ code: "SOURCE_FAILED" });
    expect(requests).toBeGreaterThan(0);
  });

  test("a page without an end is given up once it is longer than any page, without keeping it", async () => {
    let sent = 0;
    const opened = await storeBehind((_request, response) => {
      response.write("<ListBucketResult><IsTruncated>false</IsTruncated>");
      const more = (): void => {
        while (!response.destroyed) {
          sent += 65_536;
          if (!response.write(" ".repeat(65_536))) break;
        }
      };
      response.on("drain", more);
      more();
    });
    await expect(list(opened)).rejects.toMatchObject({ code: "SOURCE_FAILED" });
    expect(sent).toBeGreaterThan(PAGE_BYTES_MAX);
    expect(sent).toBeLessThan(4 * PAGE_BYTES_MAX);
  });

  test("a removal that hangs ends with its caller's signal", async () => {
    const stop = new AbortController();
    const opened = await storeBehind(() => stop.abort(new DOMException("given up", "AbortError")));
    const removed = opened.remove(["a"], stop.signal);
    expect(await removed).toMatchObject([{ name: "a" }]);
    expect(requests).toBe(1);
  });
});
