import { describe, expect, test } from "vitest";
import { codeOf, errorOf } from "../../test/errors.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { AgaroseError } from "../errors.ts";
import { errorAnswer, etagOf, keyInPath, objectAnswer } from "./object-response.ts";

const { manifest: plain } = await sampleObject({ k: 2, m: 1, bytes: 1000, stripeBytes: 1000 });
const { manifest: empty } = await sampleObject({ k: 2, m: 1, bytes: 0, stripeBytes: 1000 });
const manifest = { ...plain, modified: "1994-11-06T08:49:37.500Z", headers: { "cache-control": "max-age=60" } };
const ETAG = etagOf(manifest);
const OTHER = `"${"f".repeat(32)}"`;

/** The three forms of one HTTP date (RFC 9110 5.6.7), which is when the object was modified. */
const SAME = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
const EARLIER = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER = "Sun, 06 Nov 1994 08:49:38 GMT";
/** Values that no recipient may regard as a date. */
const NO_DATES = ["", "0", "-1", "2099", "1994-11-06T08:49:37Z", "2099-01-01", "tomorrow"];

function answer(headers: Record<string, string>) {
  return objectAnswer(manifest, new Headers(headers));
}

describe("objectAnswer", () => {
  test("sends everything with the object's headers", () => {
    expect(answer({})).toEqual({
      status: 200,
      range: { start: 0, end: 1000 },
      headers: {
        "accept-ranges": "bytes",
        "cache-control": "max-age=60",
        "content-length": "1000",
        "content-type": "image/jpeg",
        etag: ETAG,
        "last-modified": "Sun, 06 Nov 1994 08:49:37 GMT",
        "x-content-type-options": "nosniff",
      },
    });
  });

  test("makes caches revalidate an object without cache headers of its own", () => {
    expect(objectAnswer(plain, new Headers()).headers["cache-control"]).toBe("public, max-age=0, must-revalidate");
  });

  test.each(["text/html", "TEXT/HTML; charset=utf-8", "image/svg+xml", "application/xml", "text/xml", "text/xsl"])(
    "of type %s runs no scripts when it is opened",
    documentIsSandboxed,
  );
  test.each(["application/xhtml+xml", "application/rss+xml", "application/pdf", "text/plain, text/html"])(
    "of type %s runs no scripts when it is opened",
    documentIsSandboxed,
  );

  function documentIsSandboxed(contentType: string): void {
    for (const headers of [{}, { range: "bytes=0-9" }, { "if-none-match": ETAG }]) {
      const { headers: sent } = objectAnswer({ ...manifest, contentType }, new Headers(headers));
      expect(sent["content-security-policy"]).toMatch(/^sandbox; default-src 'none'; /);
      expect(sent["x-content-type-options"]).toBe("nosniff");
    }
  }

  test.each(["image/jpeg", "video/mp4", "application/octet-stream", "application/wasm", "application/json", ""])(
    "of type %j is displayed without a policy",
    (contentType) => {
      const { headers } = objectAnswer({ ...manifest, contentType }, new Headers());
      expect(headers).not.toHaveProperty("content-security-policy");
    },
  );

  test("of a document with a policy of its own is bound by both, and of a script by its own alone", () => {
    const own = { "content-security-policy": "default-src *; sandbox allow-scripts" };
    const policyOf = (contentType: string): string | undefined =>
      objectAnswer({ ...manifest, contentType, headers: own }, new Headers()).headers["content-security-policy"];
    expect(policyOf("text/html")).toMatch(/^default-src \*; sandbox allow-scripts, sandbox; default-src 'none'; /);
    expect(policyOf("text/javascript")).toBe(own["content-security-policy"]);
  });

  test("sends a range as 206 with its place and length", () => {
    const { status, range, headers } = answer({ range: "bytes=10-19" });
    expect({ status, range }).toEqual({ status: 206, range: { start: 10, end: 20 } });
    expect(headers).toMatchObject({ "content-range": "bytes 10-19/1000", "content-length": "10" });
  });

  test("refuses a range outside the object", () => {
    expect(codeOf(() => answer({ range: "bytes=1000-" }))).toBe("RANGE_UNSATISFIABLE");
  });

  describe("to a reader that undoes content codings", () => {
    const decoded = (coding: string, headers: Record<string, string> = {}) =>
      objectAnswer({ ...manifest, headers: { "content-encoding": coding } }, new Headers(headers), true);

    test.each([
      ["gzip", ["gzip"]],
      ["X-GZip", ["x-gzip"]],
      ["deflate, br", ["br", "deflate"]],
      [" zstd ,identity", ["zstd"]],
    ])(
      "is of the decoded bytes where they are coded with %s: whole, of no known length, by a weak tag",
      (coding, codings) => {
        const { status, range, headers, ...rest } = decoded(coding, { range: "bytes=10-19" });
        expect({ status, range, codings: rest.codings }).toEqual({
          status: 200,
          range: { start: 0, end: 1000 },
          codings,
        });
        for (const name of ["content-encoding", "content-length", "accept-ranges"])
          expect(headers).not.toHaveProperty(name);
        expect(headers["etag"]).toBe(`W/${ETAG}`);
      },
    );

    test.each(["identity", "compress", "gzip, made-up", ""])(
      "is of the stored bytes where the coding is %j",
      (coding) => {
        const { status, headers, codings } = decoded(coding, { range: "bytes=10-19" });
        expect({ status, codings, etag: headers["etag"] }).toEqual({ status: 206, codings: undefined, etag: ETAG });
      },
    );

    test("compares the weak tag weakly, and never for If-Match", () => {
      expect(decoded("gzip", { "if-none-match": `W/${ETAG}` }).status).toBe(304);
      expect(decoded("gzip", { "if-none-match": ETAG }).status).toBe(304);
      expect(decoded("gzip", { "if-match": `W/${ETAG}` }).status).toBe(412);
      expect(decoded("gzip", { "if-match": ETAG }).status).toBe(412);
    });
  });

  test("sends an empty object whole for any range", () => {
    for (const range of ["bytes=0-", "bytes=-5", "bytes=0-0", "bytes=7-"]) {
      const { status, headers } = objectAnswer(empty, new Headers({ range }));
      expect({ status, length: headers["content-length"] }).toEqual({ status: 200, length: "0" });
    }
  });

  describe("If-None-Match", () => {
    for (const value of [ETAG, `W/${ETAG}`, `${OTHER}, ${ETAG}`, `${OTHER},W/${ETAG}`, "*"]) {
      test(`${value} is answered 304, without a body or its length`, () => {
        const { status, range, headers } = answer({ "if-none-match": value });
        expect({ status, range }).toEqual({ status: 304, range: undefined });
        expect(headers).toMatchObject({ etag: ETAG, "cache-control": "max-age=60" });
        expect(headers).not.toHaveProperty("content-length");
      });
    }
    test("of other versions is answered in full, even when If-Modified-Since says otherwise", () => {
      expect(answer({ "if-none-match": OTHER, "if-modified-since": LATER }).status).toBe(200);
    });
    test("comes before a range, even an unsatisfiable one", () => {
      expect(answer({ "if-none-match": ETAG, range: "bytes=5000-" }).status).toBe(304);
    });
  });

  describe("If-Match", () => {
    for (const value of [ETAG, `${OTHER}, ${ETAG}`, "*"]) {
      test(`${value} lets the request through`, () => expect(answer({ "if-match": value }).status).toBe(200));
    }
    for (const value of [OTHER, `W/${ETAG}`, ""]) {
      test(`${JSON.stringify(value)} is answered 412: only the strong tag matches`, () => {
        const { status, range } = answer({ "if-match": value });
        expect({ status, range }).toEqual({ status: 412, range: undefined });
      });
    }
    test("is decided before If-None-Match, and overrides If-Unmodified-Since", () => {
      expect(answer({ "if-match": OTHER, "if-none-match": ETAG }).status).toBe(412);
      expect(answer({ "if-match": ETAG, "if-unmodified-since": EARLIER }).status).toBe(200);
    });
  });

  describe("dates", () => {
    for (const date of SAME) {
      test(`the object's own date as ${date}`, () => {
        expect(answer({ "if-modified-since": date }).status).toBe(304);
        expect(answer({ "if-unmodified-since": date }).status).toBe(200);
        expect(answer({ "if-range": date, range: "bytes=0-1" }).status).toBe(206);
      });
    }
    test("an earlier one", () => {
      expect(answer({ "if-modified-since": EARLIER }).status).toBe(200);
      expect(answer({ "if-unmodified-since": EARLIER }).status).toBe(412);
      expect(answer({ "if-range": EARLIER, range: "bytes=0-1" }).status).toBe(200);
    });
    test("a later one", () => {
      expect(answer({ "if-modified-since": LATER }).status).toBe(304);
      expect(answer({ "if-unmodified-since": LATER }).status).toBe(200);
      expect(answer({ "if-range": LATER, range: "bytes=0-1" }).status).toBe(200);
    });
    for (const date of NO_DATES) {
      test(`${JSON.stringify(date)} is not a date: conditions ignore it, and If-Range sends everything`, () => {
        expect(answer({ "if-modified-since": date }).status).toBe(200);
        expect(answer({ "if-unmodified-since": date }).status).toBe(200);
        expect(answer({ "if-range": date, range: "bytes=0-1" }).status).toBe(200);
      });
    }
  });

  describe("If-Range", () => {
    test("with this version sends the range", () => {
      expect(answer({ "if-range": ETAG, range: "bytes=0-1" }).status).toBe(206);
    });
    test("with another version, or a weak tag, sends everything", () => {
      expect(answer({ "if-range": OTHER, range: "bytes=0-1" }).status).toBe(200);
      expect(answer({ "if-range": `W/${ETAG}`, range: "bytes=0-1" }).status).toBe(200);
    });
    test("with another version sends everything rather than 416", () => {
      expect(answer({ "if-range": OTHER, range: "bytes=5000-" }).status).toBe(200);
    });
  });
});

describe("errorAnswer", () => {
  test("of an unsatisfiable range reports the length of the object", () => {
    const { status, headers } = errorAnswer(errorOf(() => answer({ range: "bytes=1000-" })));
    expect(status).toBe(416);
    expect(headers).toMatchObject({ "content-range": "bytes */1000", "x-agarose-error": "RANGE_UNSATISFIABLE" });
  });

  test("carries the error as JSON, and is never stored", () => {
    const { status, headers, body } = errorAnswer(new AgaroseError("OBJECT_NOT_FOUND", "no such", { key: "a" }));
    expect(status).toBe(404);
    expect(headers["cache-control"]).toBe("no-store");
    expect(JSON.parse(body)).toEqual({
      error: { code: "OBJECT_NOT_FOUND", message: "no such", details: { key: "a" } },
    });
  });

  test("of any other error is a defect: 500", () => {
    expect(errorAnswer(new TypeError("x is not a function"))).toMatchObject({
      status: 500,
      headers: { "x-agarose-error": "INTERNAL" },
    });
  });
});

describe("keyInPath", () => {
  test("decodes the path below the prefix", () => {
    expect(keyInPath("/ec/photos/%C3%BC%20b.jpg", "/ec/")).toBe("photos/ü b.jpg");
  });
  test("returns undefined outside the prefix, and for the prefix itself", () => {
    for (const path of ["/", "/e", "/ec", "/ec/", "/ecx/a", "/x/ec/a"]) expect(keyInPath(path, "/ec/")).toBeUndefined();
  });
  test("refuses a path that is not percent-encoded UTF-8", () => {
    for (const path of ["/ec/%", "/ec/%zz", "/ec/%ff"]) {
      expect(codeOf(() => keyInPath(path, "/ec/"))).toBe("KEY_INVALID");
    }
  });
});
