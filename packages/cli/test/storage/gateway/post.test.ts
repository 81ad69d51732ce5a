/** Uploads by forms at the gateway, with policies signed as `createPresignedPost` of the AWS SDK signs them. */
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetObjectCommand, GetObjectTaggingCommand, type S3Client } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { BUCKET as Bucket } from "@agarose/storage/gateway/bucket";
import type { Gateway } from "@agarose/storage/gateway/gateway";
import { GATEWAY_KEYS, gatewayOver, s3ClientOf } from "../../gateway.ts";
import { startTestWorld, type World } from "../../world.ts";

const READER = { accessKeyId: "reader", secretAccessKey: "reader-secret", readOnly: true };
const LIMITED = { accessKeyId: "limited", secretAccessKey: "limited-secret", prefix: "a/" };
const body = randomBytes(300_000);

let world: World;
let gateway: Gateway;
let client: S3Client;
let uploads: string;
beforeAll(async () => {
  world = await startTestWorld();
  uploads = await mkdtemp(join(tmpdir(), "agarose-post-"));
  gateway = await gatewayOver(world, { pairs: [GATEWAY_KEYS, READER, LIMITED], uploads, spoolBytes: 2 ** 20 });
  client = s3ClientOf(gateway);
});
afterEach(async () => {
  const [spool = ""] = (await readdir(uploads)).filter((name) => name.startsWith("agarose-gateway-"));
  await vi.waitFor(async () => expect(await readdir(join(uploads, spool))).toEqual([]));
});
afterAll(async () => {
  client?.destroy();
  await gateway?.close(0);
  await world?.close();
  await rm(uploads, { recursive: true });
});

interface Asked {
  readonly key: string;
  readonly bucket?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly conditions?: readonly unknown[];
  readonly credentials?: typeof GATEWAY_KEYS;
  readonly seconds?: number;
}

/** The fields of a form that may be sent for an hour. */
function presignedPost({
  key,
  bucket = Bucket,
  fields = {},
  conditions = [],
  credentials = GATEWAY_KEYS,
  seconds = 3600,
}: Asked) {
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = [date.slice(0, 8), "us-east-1", "s3", "aws4_request"];
  const shown = {
    ...fields,
    bucket,
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": [credentials.accessKeyId, ...scope].join("/"),
    "X-Amz-Date": date,
  };
  const isOpen = key.endsWith("${filename}");
  const keyCondition = isOpen ? ["starts-with", "$key", key.replace("${filename}", "")] : { key };
  const policy = {
    expiration: new Date(Date.now() + seconds * 1000).toISOString(),
    conditions: [...conditions, ...Object.entries(shown).map(([name, value]) => ({ [name]: value })), keyCondition],
  };
  const Policy = Buffer.from(JSON.stringify(policy)).toString("base64");
  const signingKey = scope.reduce<Buffer | string>(
    (secret, part) => hmac(secret, part),
    `AWS4${credentials.secretAccessKey}`,
  );
  return { ...shown, key, Policy, "X-Amz-Signature": hmac(signingKey, Policy).toString("hex") };
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

/** Sends fields and then a file. */
function send(fields: Readonly<Record<string, string>>, file: Uint8Array = body, name = "a b.bin"): Promise<Response> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append("file", new Blob([new Uint8Array(file)]), name);
  return fetch(`${gateway.url}/${Bucket}`, { method: "POST", body: form, redirect: "manual" });
}

async function get(Key: string) {
  const answer = await client.send(new GetObjectCommand({ Bucket, Key }));
  return { ...answer, bytes: Buffer.from(await answer.Body!.transformToByteArray()) };
}

const codeOf = async (answer: Response): Promise<[number, string | undefined]> => [
  answer.status,
  /<Code>(\w+)</.exec(await answer.text())?.[1],
];

test("a form stores its file under its name, with type and metadata, and leads back to the page", async () => {
  const fields = {
    "Content-Type": "image/png",
    "Cache-Control": "no-cache",
    "x-amz-meta-Of": "Zürich",
    acl: "private",
    tagging: "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>",
    success_action_redirect: "https://page.example/done?from=1#top",
  };
  const answer = await send(presignedPost({ key: "photos/${filename}", fields }));
  const { ETag, bytes, ...stored } = await get("photos/a b.bin");
  expect(answer.status).toBe(303);
  const told = new URLSearchParams({ bucket: Bucket, key: "photos/a b.bin", etag: ETag! });
  expect(answer.headers.get("location")).toBe(`https://page.example/done?from=1&${told}#top`);
  expect(bytes.equals(body)).toBe(true);
  expect(stored).toMatchObject({ ContentType: "image/png", CacheControl: "no-cache", TagCount: 1 });
  expect(stored.Metadata).toEqual({ of: `=?UTF-8?B?${Buffer.from("Zürich").toString("base64")}?=` });
  const { TagSet } = await client.send(new GetObjectTaggingCommand({ Bucket, Key: "photos/a b.bin" }));
  expect(TagSet).toEqual([{ Key: "a", Value: "1" }]);
});

test.each([
  [{}, 204],
  [{ success_action_status: "200" }, 200],
  [{ success_action_status: "404" }, 204],
  [{ success_action_redirect: "javascript:alert(1)" }, 204],
  [{ success_action_redirect: "/relative" }, 204],
])("%j answers %i, and where the object is", async (fields, status) => {
  const answer = await send(presignedPost({ key: "status/ä", fields }));
  expect([answer.status, await answer.text()]).toEqual([status, ""]);
  expect(answer.headers.get("location")).toBe(`/${Bucket}/status/%C3%A4`);
  expect(answer.headers.get("etag")).toBe((await get("status/ä")).ETag);
});

test("201 answers a document", async () => {
  const answer = await send(presignedPost({ key: "status/<b>", fields: { success_action_status: "201" } }));
  const { ETag } = await get("status/<b>");
  expect(answer.status).toBe(201);
  expect(await answer.text()).toContain(
    `<PostResponse><Location>/${Bucket}/status/%3Cb%3E</Location><Bucket>${Bucket}</Bucket><Key>status/&lt;b&gt;</Key>` +
      `<ETag>${ETag!.replaceAll('"', "&quot;")}</ETag></PostResponse>`,
  );
});

test("no line break of a redirect begins another header", async () => {
  const success_action_redirect = "https://page.example/\r\nset-cookie: a=b\r\n\r\n<html>";
  const answer = await send(presignedPost({ key: "injected", fields: { success_action_redirect } }));
  expect(answer.headers.get("location")).toMatch(/^https:\/\/page\.example\/set-cookie:%20a=b%3Chtml%3E\?bucket=/);
  expect(answer.headers.get("set-cookie")).toBe(null);
});

const RANGE = [["content-length-range", body.length, body.length]];
test("a file of exactly the allowed length is stored, one byte more or less is not", async () => {
  const allowed = presignedPost({ key: "bounded", conditions: RANGE });
  expect(await codeOf(await send(allowed, Buffer.alloc(body.length + 1)))).toEqual([400, "EntityTooLarge"]);
  expect(await codeOf(await send(allowed, body.subarray(1)))).toEqual([400, "EntityTooSmall"]);
  await expect(get("bounded")).rejects.toMatchObject({ name: "NoSuchKey" });
  expect((await send(allowed)).status).toBe(204);
  expect((await get("bounded")).bytes.equals(body)).toBe(true);
});

const refused = "refused/key";
/** Signs a form with these fields. */
const withFields = (fields: Readonly<Record<string, string>>) => () => presignedPost({ key: refused, fields });
const sound = () => presignedPost({ key: refused });
const without = (name: string, { [name]: _gone, ...fields }: Record<string, string> = sound()) => fields;
test.each<[string, number, string, () => Record<string, string>]>([
  ["no policy", 403, "AccessDenied", () => without("Policy")],
  ["no signature", 400, "InvalidArgument", () => without("X-Amz-Signature")],
  ["no key", 403, "AccessDenied", () => without("key")],
  ["an empty key", 400, "InvalidArgument", () => presignedPost({ key: "" })],
  ["another key", 403, "AccessDenied", () => ({ ...sound(), key: `${refused}2` })],
  ["a changed signature", 403, "SignatureDoesNotMatch", () => ({ ...sound(), "X-Amz-Signature": "0".repeat(64) })],
  [
    "a signature outside ASCII",
    403,
    "SignatureDoesNotMatch",
    () => ({ ...sound(), "X-Amz-Signature": "é".repeat(64) }),
  ],
  ["a changed policy", 403, "SignatureDoesNotMatch", () => ({ ...sound(), Policy: `${sound().Policy} ` })],
  ["another date", 400, "AuthorizationHeaderMalformed", () => ({ ...sound(), "X-Amz-Date": "20200101T000000Z" })],
  [
    "an unknown signer",
    403,
    "InvalidAccessKeyId",
    () => ({ ...sound(), "X-Amz-Credential": "x/20300101/r/s3/aws4_request" }),
  ],
  ["another algorithm", 400, "InvalidArgument", () => ({ ...sound(), "X-Amz-Algorithm": "AWS4-ECDSA-P256-SHA256" })],
  ["a signature of version 2", 400, "InvalidRequest", () => ({ ...sound(), AWSAccessKeyId: "client", signature: "x" })],
  ["a policy that has expired", 403, "AccessDenied", () => presignedPost({ key: refused, seconds: -1 })],
  ["a policy of another bucket", 403, "AccessDenied", () => presignedPost({ key: refused, bucket: "other" })],
  ["a field that the policy does not name", 403, "AccessDenied", () => ({ ...sound(), "x-amz-meta-a": "b" })],
  ["a pair that may only read", 403, "AccessDenied", () => presignedPost({ key: refused, credentials: READER })],
  ["a pair of another prefix", 403, "AccessDenied", () => presignedPost({ key: refused, credentials: LIMITED })],
  ["public-read", 501, "NotImplemented", withFields({ acl: "public-read" })],
  ["encryption", 501, "NotImplemented", withFields({ "x-amz-server-side-encryption": "AES256" })],
  ["another owner", 403, "AccessDenied", withFields({ "x-amz-expected-bucket-owner": "me" })],
  ["another MD5", 400, "BadDigest", withFields({ "Content-MD5": Buffer.alloc(16).toString("base64") })],
  ["a header in metadata", 400, "InvalidArgument", withFields({ "x-amz-meta-a": "b\r\nset-cookie: c" })],
  ["a header in the type", 400, "InvalidArgument", withFields({ "Content-Type": "text/html\r\nset-cookie: c" })],
  ["a name that no header has", 400, "InvalidArgument", withFields({ "x-amz-meta-a b": "c" })],
  ["too much metadata", 400, "MetadataTooLarge", withFields({ "x-amz-meta-a": "b".repeat(2048) })],
])("a form with %s is refused with %i %s, and nothing is stored", async (_what, status, code, fields) => {
  expect(await codeOf(await send(fields()))).toEqual([status, code]);
  await expect(get(refused)).rejects.toMatchObject({ name: "NoSuchKey" });
  expect(await world.names("manifests/refused")).toEqual([]);
});

test("a file before the policy is refused", async () => {
  const form = new FormData();
  form.append("file", new Blob(["x"]));
  for (const [field, value] of Object.entries(sound())) form.append(field, value);
  const answer = await fetch(`${gateway.url}/${Bucket}`, { method: "POST", body: form });
  expect(await codeOf(answer)).toEqual([403, "AccessDenied"]);
});

test("what is no form is refused, signed or not", async () => {
  for (const type of ["application/x-www-form-urlencoded", "multipart/form-data"]) {
    const answer = await fetch(`${gateway.url}/${Bucket}`, {
      method: "POST",
      body: "a=b",
      headers: { "content-type": type },
    });
    expect(await codeOf(answer)).toEqual([403, "AccessDenied"]);
  }
});

test("a pair with a prefix signs forms below it", async () => {
  expect((await send(presignedPost({ key: "a/own", credentials: LIMITED }))).status).toBe(204);
  const outside = presignedPost({ key: "${filename}", credentials: LIMITED });
  expect(await codeOf(await send(outside, body, "b"))).toEqual([403, "AccessDenied"]);
});

test("two forms of one key at once both succeed, and one of them is read whole", async () => {
  const bodies = [randomBytes(200_000), randomBytes(100_000)];
  const answers = await Promise.all(bodies.map((file) => send(presignedPost({ key: "both" }), file)));
  expect(answers.map(({ status }) => status)).toEqual([204, 204]);
  const { bytes } = await get("both");
  expect(bodies.some((file) => file.equals(bytes))).toBe(true);
  expect(await world.verify("both")).toMatchObject({ sound: true });
});

test("If-None-Match is a field too: a form that may be sent once stores once", async () => {
  const single = presignedPost({ key: "once", fields: { "If-None-Match": "*" } });
  expect((await send(single)).status).toBe(204);
  expect(await codeOf(await send(single, Buffer.from("again")))).toEqual([412, "PreconditionFailed"]);
  expect((await get("once")).bytes.equals(body)).toBe(true);
});

test.each([
  ["in its file, and its connection", false],
  ["in its file, by its own length", true],
])("a form that ends %s, stores nothing", async (_where, isShort) => {
  const fields = Object.entries(presignedPost({ key: "left" })).map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nonly a part';
  const sent = fields.join("") + file;
  const head = [
    `POST /${Bucket} HTTP/1.1`,
    "host: a",
    "content-type: multipart/form-data; boundary=b",
    `content-length: ${Buffer.byteLength(sent) + (isShort ? 0 : 1000)}`,
    "connection: close",
  ];
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (part) => (answer += part));
  socket.write(`${head.join("\r\n")}\r\n\r\n${sent}`);
  if (!isShort) {
    // It leaves once the bytes are on the disk of the gateway.
    const [spool = ""] = (await readdir(uploads)).filter((name) => name.startsWith("agarose-gateway-"));
    await vi.waitFor(async () => expect(await readdir(join(uploads, spool))).toHaveLength(1));
    socket.destroy();
  }
  await once(socket, "close");
  expect(answer).toMatch(isShort ? /400 Bad Request.*<Code>MalformedPOSTRequest</s : /^$/);
  await expect(get("left")).rejects.toMatchObject({ name: "NoSuchKey" });
});

test("a file beyond the spool is refused, and the next one has its room", async () => {
  expect((await send(presignedPost({ key: "spool" }), Buffer.alloc(2 ** 21))).status).toBe(503);
  expect((await send(presignedPost({ key: "spool" }))).status).toBe(204);
});
