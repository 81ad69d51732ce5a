/** The worked examples of the AWS documentation ("Authenticating Requests: AWS Signature Version 4"). */
import { describe, expect, test } from "vitest";
import { decodeAwsChunked } from "./aws-chunked.ts";
import { checkSignature, type SignedRequest } from "./signature.ts";

const CREDENTIALS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const NOW_MS = Date.UTC(2013, 4, 24);
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

function authorization(signedHeaders: string, signature: string): string {
  const credential = `${CREDENTIALS.accessKeyId}/20130524/us-east-1/s3/aws4_request`;
  return `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=${signedHeaders},Signature=${signature}`;
}

const GET: SignedRequest = {
  method: "GET",
  path: "/test.txt",
  query: "",
  headers: {
    host: "examplebucket.s3.amazonaws.com",
    range: "bytes=0-9",
    "x-amz-content-sha256": EMPTY,
    "x-amz-date": "20130524T000000Z",
    authorization: authorization(
      "host;range;x-amz-content-sha256;x-amz-date",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
  },
};

const LIST: SignedRequest = {
  method: "GET",
  path: "/",
  query: "max-keys=2&prefix=J",
  headers: {
    host: "examplebucket.s3.amazonaws.com",
    "x-amz-content-sha256": EMPTY,
    "x-amz-date": "20130524T000000Z",
    authorization: authorization(
      "host;x-amz-content-sha256;x-amz-date",
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
  },
};

const PRESIGNED: SignedRequest = {
  method: "GET",
  path: "/test.txt",
  query: [
    "X-Amz-Algorithm=AWS4-HMAC-SHA256",
    "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request",
    "X-Amz-Date=20130524T000000Z",
    "X-Amz-Expires=86400",
    "X-Amz-SignedHeaders=host",
    "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
  ].join("&"),
  headers: { host: "examplebucket.s3.amazonaws.com" },
};

describe("a signature of the documentation", () => {
  test.each([
    ["GET with a range", GET],
    ["list", LIST],
    ["presigned GET", PRESIGNED],
  ])("is accepted: %s", (_name, request) => {
    expect(checkSignature(request, [CREDENTIALS], NOW_MS)).toBeDefined();
  });

  test.each([
    ["another method", { ...GET, method: "PUT" }],
    ["another path", { ...GET, path: "/test.tx" }],
    ["another header", { ...GET, headers: { ...GET.headers, range: "bytes=0-8" } }],
    ["another query", { ...LIST, query: "max-keys=3&prefix=J" }],
  ])("does not fit %s", (_name, request) => {
    expect(() => checkSignature(request, [CREDENTIALS], NOW_MS)).toThrow(
      expect.objectContaining({ code: "SignatureDoesNotMatch" }),
    );
  });

  test.each([
    ["host", { ...GET, headers: { ...GET.headers, authorization: authorization("range;x-amz-date", "0") } }],
    ["x-amz-acl", { ...GET, headers: { ...GET.headers, "x-amz-acl": "public-read" } }],
    ["x-amz-copy-source", { ...PRESIGNED, headers: { ...PRESIGNED.headers, "x-amz-copy-source": "/other/key" } }],
  ])("is refused beside a header that is not signed: %s", (name, request) => {
    expect(() => checkSignature(request, [CREDENTIALS], NOW_MS)).toThrow(
      expect.objectContaining({ code: "AccessDenied", message: expect.stringContaining(name) }),
    );
  });

  test("is refused 16 minutes early or late, and after the expiry of a presigned URL", () => {
    const at = (request: SignedRequest, ms: number) => () => checkSignature(request, [CREDENTIALS], NOW_MS + ms);
    const minute = 60_000;
    expect(at(GET, 14 * minute)).not.toThrow();
    expect(at(GET, 16 * minute)).toThrow(expect.objectContaining({ code: "RequestTimeTooSkewed" }));
    expect(at(GET, -16 * minute)).toThrow(expect.objectContaining({ code: "RequestTimeTooSkewed" }));
    expect(at(PRESIGNED, 86_399_000)).not.toThrow();
    expect(at(PRESIGNED, 86_401_000)).toThrow(expect.objectContaining({ code: "AccessDenied" }));
  });

  test("may name its time in Date, in either form, and is refused for another time or none", () => {
    const signature = "c4aebcbeb35b4df2a201e8f3bfef8af8c85a66f23a1f626ec0e744928317461d";
    const signed = authorization("host;x-amz-content-sha256", signature);
    const at = (date?: string) => () => {
      const { range: _range, "x-amz-date": _date, ...rest } = GET.headers;
      const headers = { ...rest, authorization: signed, ...(date !== undefined && { date }) };
      checkSignature({ ...GET, headers }, [CREDENTIALS], NOW_MS);
    };
    expect(at("Fri, 24 May 2013 00:00:00 GMT")).not.toThrow();
    expect(at("20130524T000000Z")).not.toThrow();
    expect(at("Fri, 24 May 2013 00:00:01 GMT")).toThrow(expect.objectContaining({ code: "SignatureDoesNotMatch" }));
    expect(at("24 May 2013, no time")).toThrow(expect.objectContaining({ code: "AuthorizationHeaderMalformed" }));
    expect(at()).toThrow(expect.objectContaining({ code: "AuthorizationHeaderMalformed" }));
  });

  test("a request without one is anonymous", () => {
    expect(checkSignature({ ...GET, headers: { host: "x" } }, [CREDENTIALS], NOW_MS)).toBeUndefined();
  });
});

describe("signed chunks of the documentation", () => {
  const request: SignedRequest = {
    method: "PUT",
    path: "/examplebucket/chunkObject.txt",
    query: "",
    headers: {
      host: "s3.amazonaws.com",
      "content-encoding": "aws-chunked",
      "content-length": "66824",
      "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
      "x-amz-date": "20130524T000000Z",
      "x-amz-decoded-content-length": "66560",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
      authorization: authorization(
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
      ),
    },
  };
  const chunk = (bytes: number, signature: string): string =>
    `${bytes.toString(16)};chunk-signature=${signature}\r\n${"a".repeat(bytes)}\r\n`;
  const body = Buffer.from(
    chunk(65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648") +
      chunk(1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497") +
      chunk(0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
  );

  async function decode(encoded: Buffer, partBytes: number): Promise<Buffer> {
    const signing = checkSignature(request, [CREDENTIALS], NOW_MS);
    const parts = (async function* () {
      for (let at = 0; at < encoded.length; at += partBytes) yield encoded.subarray(at, at + partBytes);
    })();
    const decoded: Uint8Array[] = [];
    for await (const part of decodeAwsChunked(parts, { signing, onTrailer: () => {} })) decoded.push(part);
    return Buffer.concat(decoded);
  }

  test.each([1000, 65_537, 1_000_000])("decode, in parts of %i bytes", async (partBytes) => {
    expect((await decode(body, partBytes)).equals(Buffer.alloc(66_560, "a"))).toBe(true);
  });

  test("are refused when one byte differs", async () => {
    const changed = Buffer.from(body);
    changed[66_000] = "b".charCodeAt(0);
    await expect(decode(changed, 10_000)).rejects.toMatchObject({ code: "SignatureDoesNotMatch" });
  });

  test("are refused when the body ends early, wherever it does", async () => {
    for (const bytes of [10, 60_000, 65_700, body.length - 90]) {
      await expect(decode(body.subarray(0, bytes), 9000)).rejects.toMatchObject({ code: "IncompleteBody" });
    }
  });
});
