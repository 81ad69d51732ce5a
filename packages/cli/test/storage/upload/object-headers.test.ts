/** Headers of objects, from the command line and from S3 clients, to readers. */
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signed, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";
import { startTestWorld, type World } from "../../world.ts";
import { describedAsStored, headerText } from "@agarose/storage/upload/object-headers";

const stored = (value: string): string | undefined =>
  describedAsStored({ contentType: "", headers: { "content-disposition": value } }).headers["content-disposition"];

describe("a Content-Disposition", () => {
  test.each([
    ['attachment; filename="plain.pdf"', 'attachment; filename="plain.pdf"'],
    ["inline", "inline"],
    // Printable, so it stays as it is, right or wrong.
    ['attachment; filename="half', 'attachment; filename="half'],
    ['attachment; filename="Übersicht.pdf"', `attachment; filename=_bersicht.pdf; filename*=UTF-8''%C3%9Cbersicht.pdf`],
    ["attachment; filename=Ü.pdf", `attachment; filename=_.pdf; filename*=UTF-8''%C3%9C.pdf`],
    ['inline; filename="猫 🐈.txt"', `inline; filename="_ _.txt"; filename*=UTF-8''%E7%8C%AB%20%F0%9F%90%88.txt`],
    ['form-data; name="ö"; filename="a b"', `form-data; name=_; name*=UTF-8''%C3%B6; filename="a b"`],
    ['attachment; filename="a\\"é.txt"', `attachment; filename="a\\"_.txt"; filename*=UTF-8''a%22%C3%A9.txt`],
  ])("%s is stored as %s", (value, expected) => {
    expect(stored(value)).toBe(expected);
  });

  test.each([
    ["a line break", 'attachment; filename="ü\r\nset-cookie: a=b"'],
    ["a tab", 'attachment;\tfilename="ü"'],
    ["a NUL", "attachment\0"],
    ["half of a surrogate pair", 'attachment; filename="\ud83d"'],
    ["no type", '; filename="ü"'],
    ["a name that is too long", `attachment; filename="${"ü".repeat(400)}"`],
  ])("with %s is refused as USAGE", (_what, value) => {
    expect(() => stored(value)).toThrow(expect.objectContaining({ code: "USAGE" }));
  });
});

test.each([
  ["content-type", { contentType: 'text/plain; name="ü"', headers: {} }],
  ["cache-control", { contentType: "text/plain", headers: { "cache-control": "max-age=６０" } }],
  ["content-encoding", { contentType: "text/plain", headers: { "content-encoding": "gzip\n" } }],
  ["content-language", { contentType: "text/plain", headers: { "content-language": "x".repeat(1025) } }],
  ["etag", { contentType: "text/plain", headers: { etag: "a" } }],
])("a %s that no reader can be served is refused by its name", (header, described) => {
  expect(() => describedAsStored(described)).toThrow(expect.objectContaining({ code: "USAGE", details: { header } }));
});

test("the bytes of a header are UTF-8 where they can be, and ISO 8859-1 else", () => {
  const bytes = (value: string, encoding: "utf8" | "latin1"): string => Buffer.from(value, encoding).toString("latin1");
  expect(headerText(bytes("Übersicht", "utf8"))).toBe("Übersicht");
  expect(headerText(bytes("Übersicht", "latin1"))).toBe("Übersicht");
  expect(headerText("plain")).toBe("plain");
});

describe("put", () => {
  let world: World;
  beforeAll(async () => {
    world = await startTestWorld();
    await world.run(["keys", "new"]);
    await world.run(["keys", "secret", "own.secret", "--prefix", "private/"]);
    await writeFile(join(world.dir, "upload-page"), "one");
  });
  afterAll(() => world.close());

  test.each(["page", "private/page"])("of %s keeps a file name with an umlaut", async (key) => {
    const line = 'Content-Disposition: attachment; filename="Übersicht.pdf"';
    const { code, stderr } = await world.run(["put", "upload-page", "--key", key, "--header", line]);
    expect([code, stderr]).toEqual([0, ""]);
    expect((await world.run(["get", key, "-"])).stdout.toString()).toBe("one");
    expect(await world.run(["repair", key])).toMatchObject({ code: 0 });
  });

  test.each(["page", "private/page"])("of %s with a type that cannot be served leaves what was there", async (key) => {
    await writeFile(join(world.dir, "upload-new"), "two");
    const args = ["put", "upload-new", "--key", key, "--content-type", 'text/plain; name="ü"'];
    const { code, stderr } = await world.run(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining("content-type")]);
    expect((await world.run(["get", key, "-"])).stdout.toString()).toBe("one");
  });
});

describe("a client of the gateway", () => {
  let started: GatewayWorld;
  let client: GatewayWorld["client"];
  const Bucket = "agarose";

  beforeAll(async () => {
    started = await startGatewayWorld();
    ({ client } = started);
  });
  afterAll(() => started.close());

  /** Puts by a presigned URL with a header of just these bytes. Node's client changes some of them. */
  async function putWith(key: string, name: string, value: Buffer): Promise<number> {
    const url = await signed(started.gateway, { key, method: "PUT" });
    const { host, hostname, port, pathname, search } = new URL(url);
    const socket = connect(Number(port), hostname);
    const lines = `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 3\r\nconnection: close\r\n`;
    socket.write(Buffer.concat([Buffer.from(`${lines}${name}: `), value, Buffer.from("\r\n\r\none")]));
    return Number((await text(socket)).split(" ")[1]);
  }

  test.each(["utf8", "latin1"] as const)(
    "that names a file with an umlaut in %s gets it back in the form that browsers read",
    async (encoding) => {
      const bytes = Buffer.from('attachment; filename="Übersicht.pdf"', encoding);
      expect(await putWith("page", "content-disposition", bytes)).toBe(200);
      const { ContentDisposition, Body } = await client.send(new GetObjectCommand({ Bucket, Key: "page" }));
      expect(ContentDisposition).toBe(`attachment; filename=_bersicht.pdf; filename*=UTF-8''%C3%9Cbersicht.pdf`);
      expect(await Body!.transformToString()).toBe("one");
    },
  );

  test("keeps 2 KB of metadata, also in one value and outside ASCII, and no byte more", async () => {
    const keep = (Metadata: Record<string, string>) =>
      client.send(new PutObjectCommand({ Bucket, Key: "metadata", Body: "one", Metadata }));
    const kept = async () => (await client.send(new HeadObjectCommand({ Bucket, Key: "metadata" }))).Metadata;
    for (const value of ["x".repeat(2_047), "ü".repeat(1_023)]) {
      await keep({ a: value });
      const word = `=?UTF-8?B?${Buffer.from(value).toString("base64")}?=`;
      expect(await kept()).toEqual({ a: value.startsWith("x") ? value : word });
      const tooLong = { name: "MetadataTooLarge", message: expect.stringMatching(/(2049|2050).*2048/) };
      await expect(keep({ a: value, bb: "" })).rejects.toMatchObject(tooLong);
    }
    expect(Object.keys((await kept())!)).toEqual(["a"]);
  });

  test("puts no line break into metadata, from a header or from the query", async () => {
    const urlOf = (value: string) =>
      signed(started.gateway, { key: "injected", method: "PUT", query: { "x-amz-meta-a": value } });
    for (const value of ["a\r\nset-cookie: b=c", "a\nb", "a\0b"]) {
      expect((await fetch(await urlOf(value), { method: "PUT", body: "one" })).status).toBe(400);
    }
    expect((await fetch(await urlOf("日本"), { method: "PUT", body: "one" })).status).toBe(200);
    const { Metadata } = await client.send(new HeadObjectCommand({ Bucket, Key: "injected" }));
    expect(Metadata).toEqual({ a: "=?UTF-8?B?5pel5pys?=" });
  });

  test("that sends a type no reader can be served is refused with 400, and the object stays", async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: "typed", Body: "one", ContentType: "text/plain" }));
    expect(await putWith("typed", "content-type", Buffer.from('text/plain; name="ü"'))).toBe(400);
    expect(await client.send(new HeadObjectCommand({ Bucket, Key: "typed" }))).toMatchObject({
      ContentType: "text/plain",
    });
  });
});
