/**
 * The door denies by default: every parameter of S3's own model is obeyed or refused, wherever a client puts it.
 *
 * The model is that of the AWS SDK. Each parameter is sent with a value that no server can obey and answer with
 * success, so that an answer of success shows one that was ignored.
 */
import { createHash } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { OPERATIONS, type OperationName } from "@agarose/s3-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signed, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";

const BUCKET = "agarose";
/** Is copied. */
const SOURCE = "model/source";
const KEY = "model/object";
const OLD = "Sun, 06 Nov 1994 08:49:37 GMT";

/** A parameter of an operation, and where the SDK sends it. */
interface Parameter {
  readonly name: string;
  readonly in: "header" | "query";
}

interface Modelled {
  readonly name: string;
  readonly method: string;
  readonly hasKey: boolean;
  readonly inService: boolean;
  readonly query: Readonly<Record<string, string>>;
  readonly parameters: readonly Parameter[];
}

type Schema = readonly unknown[];
interface Traits {
  readonly httpHeader?: string;
  readonly httpQuery?: string;
  readonly httpPrefixHeaders?: string;
}

/** All operations of the SDK's model, whose schemas are lists: kind, namespace, name, traits, and then what it has. */
function modelOf(): Modelled[] {
  const schemas = Object.values(s3 as Record<string, unknown>).filter(Array.isArray) as Schema[];
  return schemas
    .filter(([kind]) => kind === 9)
    .map((schema): Modelled => {
      const [, , name, { http }, input] = schema as [number, string, string, { http: string[] }, () => Schema];
      const [method = "", path = ""] = http;
      const [, , , , names, types] = input() as [number, string, string, unknown, string[], unknown[]];
      const parameters = names.flatMap((_, at): Parameter[] => {
        const type = types[at];
        const traits = (Array.isArray(type) && typeof type[1] === "object" ? type[1] : {}) as Traits;
        if (traits.httpPrefixHeaders) return [{ name: `${traits.httpPrefixHeaders}model`, in: "header" }];
        if (traits.httpHeader) return [{ name: traits.httpHeader.toLowerCase(), in: "header" }];
        return traits.httpQuery ? [{ name: traits.httpQuery, in: "query" }] : [];
      });
      const query = Object.fromEntries(new URLSearchParams(path.split("?")[1] ?? ""));
      const inService = name === "ListBuckets" || name === "ListDirectoryBuckets";
      return { name, method, hasKey: path.includes("{Key+}"), inService, query, parameters };
    });
}

const MODEL = modelOf();
const SERVED = MODEL.filter(({ name }) => Object.hasOwn(OPERATIONS, name));

/** Values that are refused by whoever obeys the parameter. Those that are not here are unknown to all operations. */
const CONTRADICTIONS: readonly (readonly [RegExp, string])[] = [
  [/^x-amz-checksum-(crc32c?)$/, "AAAAAA=="],
  [/^x-amz-checksum-(crc64nvme|xxhash64|xxhash3)$/, "AAAAAAAAAAA="],
  [/^(x-amz-checksum-(md5|xxhash128)|content-md5)$/, "AAAAAAAAAAAAAAAAAAAAAA=="],
  [/^x-amz-checksum-sha1$/, `${"A".repeat(27)}=`],
  [/^x-amz-checksum-sha256$/, `${"A".repeat(43)}=`],
  [/^x-amz-checksum-sha512$/, `${"A".repeat(86)}==`],
  [/^(x-amz-copy-source-)?if-none-match$/, "*"],
  [/^((x-amz-copy-source-)?if-unmodified-since|x-amz-if-match-(last-modified|initiated)-time)$/, OLD],
  [/^(x-amz-copy-source-)?if-modified-since$/, new Date(Date.now() + 60_000).toUTCString()],
  [/^x-amz-(if-match|mp-object)-size$/, "123456"],
];

/** Parameters that are obeyed whatever their value, with the test that shows it. */
const SHOWN: Readonly<Record<string, RegExp>> = {
  "what an object keeps comes back":
    /^(cache-control|content-(disposition|encoding|language|type)|expires|x-amz-(meta-.*|tagging))$/,
  "a signed request overrides six headers": /^response-/,
  "lists show what is asked for": /^(delimiter|prefix|start-after|key-marker|upload-id-marker|bucket-region)$/,
  "ranges and markers, in the suite of all servers": /^(range|marker)$/,
  "of any request, in the suite of all servers": /^content-length$/,
};

let started: GatewayWorld;
let uploadId = "";
let etag = "";

beforeAll(async () => {
  started = await startGatewayWorld();
  const { headers } = await ask({ method: "PUT", key: KEY, body: "object" });
  expect(headers.get("etag")).toMatch(/^"/);
  await ask({ method: "PUT", key: SOURCE, body: "source" });
  const begun = await ask({ method: "POST", key: KEY, query: { uploads: "" } });
  uploadId = /<UploadId>(.*)<\/UploadId>/.exec(await begun.text())![1]!;
  const part = await ask({ method: "PUT", key: KEY, query: { uploadId, partNumber: "1" }, body: "part" });
  etag = part.headers.get("etag")!;
});

afterAll(() => started.close());

interface Asked {
  readonly method: string;
  readonly key?: string;
  readonly bucket?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

async function ask({ method, key = "", bucket = BUCKET, query, headers = {}, body }: Asked): Promise<Response> {
  const url = await signed(started.gateway, { bucket, key, method, headers, ...(query && { query }) });
  return fetch(url, { method, headers, ...(body !== undefined && { body }) });
}

/** The request of an operation with nothing but what it needs. */
function baseOf({ name, method, hasKey, inService, query }: Modelled): Asked {
  const ids = (OPERATIONS[name as OperationName] ?? {}) as { readonly select?: readonly string[] };
  const needs = {
    ...query,
    ...(ids.select?.includes("uploadId") && { uploadId }),
    // The part that is uploaded is completed later, with its ETag.
    ...(ids.select?.includes("partNumber") && { partNumber: name === "UploadPartCopy" ? "2" : "1" }),
  };
  const bodies: Partial<Record<string, string>> = {
    PutObject: "object",
    UploadPart: "part",
    PutObjectTagging: "<Tagging><TagSet></TagSet></Tagging>",
    DeleteObjects: "<Delete><Object><Key>model/none</Key></Object></Delete>",
    CompleteMultipartUpload: completion(`<PartNumber>1</PartNumber><ETag>${etag}</ETag>`),
  };
  const bucket = inService ? "" : BUCKET;
  const copied = { "x-amz-copy-source": `${BUCKET}/${SOURCE}` };
  const needed: Partial<Record<string, Record<string, string>>> = {
    CopyObject: copied,
    UploadPartCopy: copied,
    GetObjectAttributes: { "x-amz-object-attributes": "ETag" },
  };
  return {
    headers: needed[name] ?? {},
    method,
    query: needs,
    key: hasKey ? KEY : "",
    bucket,
    body: bodies[name] ?? (method === "POST" ? "" : undefined),
  };
}

function completion(part: string): string {
  return `<CompleteMultipartUpload><Part>${part}</Part></CompleteMultipartUpload>`;
}

const statusOf = async (asked: Asked): Promise<number> => {
  const answer = await ask(asked);
  await answer.arrayBuffer();
  return answer.status;
};

test("the model has the operations of S3, with their parameters", () => {
  expect(MODEL.length).toBeGreaterThan(100);
  // Browsers send forms, which no SDK does.
  const served = [...SERVED.map(({ name }) => name), "PostObject"];
  expect(served.toSorted()).toEqual(Object.keys(OPERATIONS).toSorted());
  const put = MODEL.find(({ name }) => name === "PutObject")!;
  expect(put.parameters.length).toBeGreaterThan(40);
});

describe.each(SERVED)("$name", (operation) => {
  const { name, parameters } = operation;
  const shown = (parameter: string): boolean => Object.values(SHOWN).some((pattern) => pattern.test(parameter));
  const tried = parameters.filter((parameter) => !shown(parameter.name));

  test("obeys or refuses every header, in a header and in the query of a presigned URL", async () => {
    const accepted: string[] = [];
    for (const { name: parameter, in: place } of tried) {
      if (["uploadId", "partNumber"].includes(parameter) && operation.query[parameter] === undefined) {
        const { select = [] } = OPERATIONS[name as OperationName] as { select?: readonly string[] };
        if (select.includes(parameter)) continue;
      }
      const value = CONTRADICTIONS.find(([pattern]) => pattern.test(parameter))?.[1] ?? "other";
      const base = baseOf(operation);
      const inQuery = { ...base, query: { ...base.query, [parameter]: value } };
      const inHeader = { ...base, headers: { ...base.headers, [parameter]: value } };
      if (place === "header" && (await statusOf(inHeader)) < 300) {
        accepted.push(`header ${parameter}`);
      }
      if ((await statusOf(inQuery)) < 300) accepted.push(`query ${parameter}`);
    }
    expect(accepted).toEqual([]);
  });

  // The bucket is there, and stays.
  test.skipIf(["CreateBucket", "DeleteBucket"].includes(name))("passes with what it needs", async () => {
    if (["AbortMultipartUpload", "CompleteMultipartUpload", "DeleteObject"].includes(name)) return;
    const answer = await ask(baseOf(operation));
    const isNone = /<Code>(NoSuch(?!Key|Bucket<|Upload)\w+|\w+NotFoundError)</.test(await answer.text());
    expect(isNone || answer.status < 300, `${answer.status}`).toBe(true);
  });
});

test("operations that end something pass with what they need, so that what refused them was the parameter", async () => {
  const named = (name: string): Modelled => SERVED.find((operation) => operation.name === name)!;
  expect(await statusOf(baseOf(named("CompleteMultipartUpload")))).toBe(200);
  expect(await statusOf(baseOf(named("DeleteObject")))).toBe(204);
  const begun = await ask({ method: "POST", key: KEY, query: { uploads: "" } });
  const query = { uploadId: /<UploadId>(.*)<\/UploadId>/.exec(await begun.text())![1]! };
  expect(await statusOf({ method: "DELETE", key: KEY, query })).toBe(204);
});

test("no other operation is taken for one that is served", async () => {
  const others = MODEL.filter((operation) => !SERVED.includes(operation));
  expect(others.length).toBeGreaterThan(60);
  const accepted: string[] = [];
  for (const operation of others) {
    if ((await statusOf(baseOf(operation))) < 300) accepted.push(operation.name);
  }
  expect(accepted).toEqual([]);
});

test.each(["x-amz-rename-source"])("%s copies nothing and empties nothing", async (name) => {
  await ask({ method: "PUT", key: "copy/target", body: "target" });
  const source = `/${BUCKET}/copy/source`;
  expect(await statusOf({ method: "PUT", key: "copy/target", query: { [name]: source } })).toBe(501);
  expect(await statusOf({ method: "PUT", key: "copy/target", headers: { [name]: source } })).toBe(501);
  expect(await (await ask({ method: "GET", key: "copy/target" })).text()).toBe("target");
});

test("a parameter with two values, or an unknown one, is refused", async () => {
  const headers = { "x-amz-acl": "private" };
  const query = { "x-amz-acl": "public-read" };
  expect(await statusOf({ method: "PUT", key: "twice", headers, query, body: "x" })).toBe(400);
  for (const unknown of ["x-amz-unknown", "unknown", "X-AMZ-ACL2", "x-id"]) {
    expect(await statusOf({ method: "GET", key: KEY, query: { [unknown]: "1" } }), unknown).toBe(501);
  }
});

test("the version of the protocol may be named, as the SDK for C++ does, and another one is refused", async () => {
  const named = (version: string) => ({
    key: "arrow",
    query: { uploads: "" },
    headers: { "x-amz-api-version": version },
  });
  expect(await statusOf({ method: "POST", ...named("2006-03-01") })).toBe(200);
  expect(await statusOf({ method: "POST", ...named("2026-01-01") })).toBe(501);
});

describe("signatures", () => {
  test("of queries whose names begin alike hold, as they are sorted by name and then by value", async () => {
    const query = { "list-type": "2", "list-type-": "x", prefix: "b", "prefix-a": "a" };
    const answer = await ask({ method: "GET", query });
    expect([answer.status, await answer.text()], "known, and refused for what is unknown").toEqual([
      501,
      expect.stringContaining("list-type-"),
    ]);
  });

  test("of headers outside ASCII hold, sent as UTF-8 or as ISO-8859-1", async () => {
    const text = "gr\u00fc\u00dfe";
    const url = await signed(started.gateway, { key: "signed", method: "PUT", headers: { "x-amz-meta-a": text } });
    const utf8 = Buffer.from(text).toString("latin1");
    for (const value of [utf8, text]) {
      expect((await fetch(url, { method: "PUT", headers: { "x-amz-meta-a": value }, body: "x" })).status).toBe(200);
    }
    const other = await fetch(url, { method: "PUT", headers: { "x-amz-meta-a": "grusse" }, body: "x" });
    expect(other.status).toBe(403);
  });

  test("of version 2, and two at once, are refused and named", async () => {
    const url = `${started.gateway.url}/${BUCKET}/a`;
    const asked = [
      fetch(`${url}?AWSAccessKeyId=client&Signature=x&Expires=1`),
      fetch(url, { headers: { authorization: "AWS client:signature" } }),
    ];
    for (const answer of await Promise.all(asked)) {
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("Version 2")]);
    }
    const presigned = await signed(started.gateway, { key: KEY });
    expect((await fetch(presigned, { headers: { authorization: "AWS4-HMAC-SHA256 x" } })).status).toBe(400);
  });
});

describe("XML", () => {
  const remove = async (xml: string): Promise<number> => statusOf({ method: "POST", query: { delete: "" }, body: xml });

  test.each([
    ["a version", "<Delete><Object><Key>KEY</Key><VersionId>1</VersionId></Object></Delete>"],
    [
      "a version in a namespace",
      '<Delete><Object><Key>KEY</Key><VersionId xmlns="urn:x">1</VersionId></Object></Delete>',
    ],
    [
      "a version with a prefix",
      '<Delete xmlns:a="urn:x"><Object><Key>KEY</Key><a:VersionId>1</a:VersionId></Object></Delete>',
    ],
    ["an unknown element", "<Delete><Object><Key>KEY</Key><Force>true</Force></Object></Delete>"],
    ["an unknown attribute", '<Delete><Object version="1"><Key>KEY</Key></Object></Delete>'],
    ["a document type", '<!DOCTYPE Delete [<!ENTITY k "KEY">]><Delete><Object><Key>&k;</Key></Object></Delete>'],
    ["an unknown entity", "<Delete><Object><Key>KEY</Key></Object><Quiet>&x;</Quiet></Delete>"],
    ["an end tag that is missing", "<Delete><Object><Key>KEY</Key></Object>"],
    ["another root", "<Remove><Object><Key>KEY</Key></Object></Remove>"],
    ["two roots", "<Delete><Object><Key>KEY</Key></Object></Delete><Delete/>"],
    ["two keys in one object", "<Delete><Object><Key>KEY</Key><Key>other</Key></Object></Delete>"],
    ["another length", "<Delete><Object><Key>KEY</Key><Size>99</Size></Object></Delete>"],
    ["another time", `<Delete><Object><Key>KEY</Key><LastModifiedTime>${OLD}</LastModifiedTime></Object></Delete>`],
    ["another tag", "<Delete><Object><Key>KEY</Key><ETag>other</ETag></Object></Delete>"],
    ["a comment", "<Delete><!-- <Object><Key>KEY</Key></Object> --><Object><Key>model/none</Key></Object></Delete>"],
    ["a text of another element", "<Delete><Object><Key><![CDATA[<Key>KEY</Key>]]></Key></Object></Delete>"],
  ])("with %s deletes nothing", async (_, xml) => {
    const key = "xml/kept";
    await ask({ method: "PUT", key, body: "kept" });
    await remove(xml.replaceAll("KEY", key));
    expect(await (await ask({ method: "GET", key })).text()).toBe("kept");
  });

  test("as clients write it deletes what it names", async () => {
    for (const [key, xml] of [
      [
        "xml/a <&>b",
        '<?xml version="1.0"?><Delete xmlns="urn:x"><Object><Key>xml/a &lt;&amp;&#62;b</Key></Object></Delete>',
      ],
      ["xml/c", "<a:Delete xmlns:a='urn:x'>\n <a:Object>\n <a:Key><![CDATA[xml/c]]></a:Key></a:Object></a:Delete>"],
    ] as const) {
      const { headers } = await ask({ method: "PUT", key, body: "gone" });
      expect(headers.get("etag")).toMatch(/^"/);
      expect(await remove(xml)).toBe(200);
      expect(await statusOf({ method: "GET", key })).toBe(404);
    }
  });

  test("of a completion obeys or refuses every element of a part", async () => {
    const begun = await ask({ method: "POST", key: "xml/parts", query: { uploads: "" } });
    const query = { uploadId: /<UploadId>(.*)<\/UploadId>/.exec(await begun.text())![1]! };
    const part = await ask({ method: "PUT", key: "xml/parts", query: { ...query, partNumber: "1" }, body: "part" });
    const named = `<PartNumber>1</PartNumber><ETag>${part.headers.get("etag")}</ETag>`;
    const complete = (xml: string) => statusOf({ method: "POST", key: "xml/parts", query, body: completion(xml) });
    const [, , , , members] = s3.CompletedPart$ as unknown as [number, string, string, unknown, string[]];
    expect(members.length).toBeGreaterThan(10);
    for (const member of members.filter((name) => name !== "PartNumber" && name !== "ETag")) {
      expect(await complete(`${named}<${member}>AAAA</${member}>`), member).toBe(400);
    }
    expect(await complete(`${named}<Size>4</Size>`)).toBe(400);
    expect(await complete(named)).toBe(200);
  });
});

test("what an object keeps comes back, from a header and from the query of a presigned URL", async () => {
  const kept = {
    "cache-control": "max-age=7",
    "content-disposition": 'attachment; filename="a.txt"',
    "content-language": "de",
    "content-type": "text/plain",
    expires: "Thu, 01 Dec 2095 16:00:00 GMT",
    "x-amz-meta-one": "1",
  };
  const put = { headers: { ...kept, "x-amz-tagging": "a=1&b=" }, query: { "x-amz-meta-two": "2 two" } };
  await ask({ method: "PUT", key: "kept", ...put, body: "x" });
  const { headers } = await ask({ method: "HEAD", key: "kept" });
  const shown = { ...kept, "x-amz-meta-two": "2 two", "x-amz-tagging-count": "2" };
  expect(Object.fromEntries(headers)).toMatchObject(shown);
  for (const name of ["content-disposition", "x-amz-meta-a"]) {
    expect(await statusOf({ method: "PUT", key: "kept", headers: { [name]: "a".repeat(3000) }, body: "y" })).toBe(400);
  }
  expect(await (await ask({ method: "GET", key: "kept" })).text()).toBe("x");
});

test("a signed request overrides six headers, in ISO-8859-1, and no other", async () => {
  const query = {
    "response-cache-control": "no-cache",
    "response-content-disposition": "attachment; filename=\u00fc.pdf",
    "response-content-encoding": "aaa",
    "response-content-language": "esperanto",
    "response-content-type": "foo/bar",
    "response-expires": "123",
  };
  await ask({ method: "PUT", key: "overridden", body: "x" });
  const { headers } = await ask({ method: "HEAD", key: "overridden", query });
  for (const [name, value] of Object.entries(query)) expect(headers.get(name.replace("response-", ""))).toBe(value);
  const outside = { "response-content-disposition": "attachment; filename=\u65e5.pdf" };
  expect(await statusOf({ method: "GET", key: "overridden", query: outside })).toBe(400);
  for (const name of ["response-location", "response-etag", "response-x-amz-meta-a"]) {
    expect(await statusOf({ method: "GET", key: "overridden", query: { [name]: "1" } }), name).toBe(501);
  }
});

describe("a checksum", () => {
  const BODY = "123456789";
  const SHA512 = createHash("sha512").update(BODY).digest("base64");
  const of: Record<string, string> = {
    crc64nvme: "rosUhgp5mIg=",
    sha512: SHA512,
    md5: "JfnnlDI7RTiF9RgfG2JNCw==",
    xxhash64: "jLhB20DmroM=",
    xxhash3: "ctyxi2ehff8=",
    xxhash128: "MxGUd+3l3NXpcWQnaB1YYA==",
  };
  const keptOf = async (key: string, name: string): Promise<(string | null)[]> => {
    const { headers } = await ask({ method: "HEAD", key, headers: { "x-amz-checksum-mode": "ENABLED" } });
    return [headers.get(name), headers.get("x-amz-checksum-type")];
  };

  test.each(Object.entries(of))(
    "of %s is taken from a header, the query and a trailer, and kept",
    async (name, value) => {
      const header = `x-amz-checksum-${name}`;
      const key = `checksum/${name}`;
      const trailer = {
        "content-encoding": "aws-chunked",
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": "9",
        "x-amz-trailer": header,
      };
      const chunked = (line: string): string => `9\r\n${BODY}\r\n0\r\n${line}\r\n`;
      const ways: Omit<Asked, "method" | "key">[] = [
        { headers: { [header]: value }, body: BODY },
        { query: { [header]: value }, body: BODY },
        { headers: trailer, body: chunked(`${header}:${value}\r\n`) },
      ];
      for (const way of ways) {
        await ask({ method: "DELETE", key });
        expect(await statusOf({ method: "PUT", key, ...way })).toBe(200);
        expect(await keptOf(key, header)).toEqual([value, "FULL_OBJECT"]);
      }
      const other = of[name === "md5" ? "xxhash128" : "md5"]!;
      for (const line of [`${header}:${other}\r\n`, "x-amz-checksum-crc32:AAAAAA==\r\n", ""]) {
        expect(await statusOf({ method: "PUT", key, headers: trailer, body: chunked(line) }), line).toBe(400);
      }
      expect(await keptOf(key, header)).toEqual([value, "FULL_OBJECT"]);
    },
  );

  test("that is announced and not there, or one of two, is refused", async () => {
    const headers = { "x-amz-sdk-checksum-algorithm": "CRC32" };
    expect(await statusOf({ method: "PUT", key: "checksum/none", headers, body: BODY })).toBe(400);
    const two = { "x-amz-checksum-md5": of["md5"]!, "x-amz-checksum-sha512": SHA512 };
    expect(await statusOf({ method: "PUT", key: "checksum/none", headers: two, body: BODY })).toBe(400);
    expect(await statusOf({ method: "GET", key: "checksum/none" })).toBe(404);
  });
});

test("lists show what is asked for", async () => {
  for (const key of ["shown/a/1", "shown/b"]) {
    await ask({ method: "PUT", key, body: "x" });
    await ask({ method: "POST", key, query: { uploads: "" } });
  }
  const list = async (query: Record<string, string>, bucket = BUCKET): Promise<string> =>
    (await ask({ method: "GET", bucket, query })).text();
  const objects = { "list-type": "2", prefix: "shown/" };
  const folded = await list({ ...objects, delimiter: "/", "fetch-owner": "true" });
  expect(folded).toMatch(/<Key>shown\/b<\/Key>.*<Owner><ID>client<\/ID>.*<Prefix>shown\/a\/<\/Prefix>/);
  expect(await list({ ...objects, "start-after": "shown/a/1" })).toMatch(/<StartAfter>shown\/a\/1<\/StartAfter>/);
  expect(await list({ ...objects, "start-after": "shown/a/1" })).not.toContain("<Key>shown/a/1");
  expect(await list({ ...objects, "max-keys": "0" })).toMatch(/<IsTruncated>false<.*<KeyCount>0</);
  const uploads = { uploads: "", prefix: "shown/" };
  expect(await list({ ...uploads, delimiter: "/" })).toMatch(/<Key>shown\/b<\/Key>.*<Prefix>shown\/a\/<\/Prefix>/);
  const first = await list({ ...uploads, "max-uploads": "1" });
  const [, keyMarker = "", idMarker = ""] = /<NextKeyMarker>(.*)<\/NextKeyMarker><NextUploadIdMarker>(.*)<\/Next/.exec(
    first,
  )!;
  const second = await list({ ...uploads, "key-marker": keyMarker, "upload-id-marker": idMarker });
  expect([keyMarker, /<Key>(.*)<\/Key>/.exec(second)?.[1]]).toEqual(["shown/a/1", "shown/b"]);
  expect(await list({ "bucket-region": "us-east-1" }, "")).toMatch(/<Name>agarose<.*<CreationDate>\d{4}-/);
  expect(await list({ "bucket-region": "eu-west-1" }, "")).not.toContain("<Name>");
  expect(await list({ prefix: "other" }, "")).not.toContain("<Name>");
});
