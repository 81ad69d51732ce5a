import { offencesOf } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { listedPage } from "./fetch-store.ts";

const page = (inner: string): string => `<?xml version="1.0"?><ListBucketResult>${inner}</ListBucketResult>`;

test("a page has names, lengths, times and ETags, with entities as characters", () => {
  const contents =
    "<Contents><Key>a&amp;b&lt;c&#39;d&#x2F;</Key><Size>12</Size>" +
    "<LastModified>2026-11-25T10:00:00.000Z</LastModified><ETag>&quot;abc&quot;</ETag></Contents>";
  expect(listedPage(page(contents))).toEqual({
    objects: [{ name: "a&b<c'd/", bytes: 12, modifiedMs: Date.UTC(2026, 10, 25, 10), etag: '"abc"' }],
    isTruncated: undefined,
    next: undefined,
  });
});

test("a page that is not the last names the next one", () => {
  const truncated = "<IsTruncated>true</IsTruncated>";
  expect(listedPage(page(`${truncated}<NextContinuationToken>t+/=</NextContinuationToken>`)).next).toBe("t+/=");
  expect(listedPage(page("<IsTruncated>false</IsTruncated>"))).toMatchObject({ isTruncated: false, next: undefined });
});

test("a control character in a key is what S3 refers to, and elements beside those that are read say nothing", () => {
  const contents = "<Contents><Owner><ID>1</ID><Key>no</Key></Owner><Key><![CDATA[<]]>&#x1;</Key></Contents>";
  const { objects, next } = listedPage(page(`<Name>b</Name>${contents}<CommonPrefixes><Key>p</Key></CommonPrefixes>`));
  expect([objects, next]).toEqual([[{ name: "<\u0001", bytes: 0, modifiedMs: 0 }], undefined]);
});

test.each(["", "<html><body>Sign in</body></html>", "<ListBucketResult><Contents><Key>a</Key>", "{}"])(
  "%j is refused: a walk must not take it for an empty bucket",
  (text) => expect(() => listedPage(text)).toThrow(expect.objectContaining({ code: "SOURCE_FAILED" })),
);

test("hostile bytes in place of a listing end in a typed error, in bounded time", { timeout: 300_000 }, async () => {
  expect(await offencesOf((_, text) => listedPage(text))).toEqual([]);
});
