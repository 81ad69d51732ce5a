/** Forms as browsers and clients send them, in parts of any length. */
import { describe, expect, test } from "vitest";
import { readForm } from "./form.ts";

const TYPE = "multipart/form-data; boundary=----b";
const file = Buffer.from("\r\n------not the end\r\n----b\0\xff\r\n", "latin1");
const part = (head: string, value: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`------b\r\nContent-Disposition: form-data; ${head}\r\n\r\n`), Buffer.from(value), CRLF]);
const CRLF = Buffer.from("\r\n");
const END = Buffer.from("------b--\r\n");
const FILE = part('name="file"; filename="a.bin"', file);

async function read(body: Uint8Array, bytes = body.length, type = TYPE) {
  const parts = (async function* () {
    for (let at = 0; at < body.length; at += bytes) yield body.subarray(at, at + bytes);
  })();
  const form = await readForm(type, parts);
  const content: Uint8Array[] = [];
  for await (const one of form.file) content.push(one);
  return { ...form, file: Buffer.concat(content) };
}

describe("a form", () => {
  test.each([1, 2, 7, 64, 10_000])("has its fields and its file, in parts of %i bytes", async (bytes) => {
    const body = [part('name="Key"', "a/ü"), part('name="empty"', ""), FILE, part('name="submit"', "Upload"), END];
    const form = await read(Buffer.concat(body), bytes);
    expect([...form.fields]).toEqual([
      ["key", "a/ü"],
      ["empty", ""],
    ]);
    expect([form.fileName, form.file]).toEqual(["a.bin", file]);
  });

  test.each([
    ['name="file"; filename="C:\\photos\\a.png"', "a.png"],
    ['name="file"; filename="/tmp/a; name=b.png"', "a; name=b.png"],
    ['name="file"; filename="a\\"b.png"', 'a"b.png'],
    ["name=file; filename=a.png", "a.png"],
    ['filename="日.png"; name="file"', "日.png"],
    ['name="file"', ""],
  ])("names its file by %j", async (head, name) => {
    expect((await read(Buffer.concat([part(head, "x"), END]))).fileName).toBe(name);
  });

  test("may have a preamble, and a boundary in quotes", async () => {
    const body = Buffer.concat([Buffer.from("read me\r\n"), FILE, END]);
    expect((await read(body, 5, 'multipart/form-data; charset=utf-8; boundary="----b"')).file).toEqual(file);
  });

  test("is refused wherever it ends early", async () => {
    const body = Buffer.concat([part('name="key"', "a"), FILE, END]);
    for (let bytes = 0; bytes < body.length - 2; bytes++) {
      await expect(read(body.subarray(0, bytes), 10), `${bytes} bytes`).rejects.toMatchObject({
        code: "MalformedPOSTRequest",
      });
    }
  });

  test.each([
    ["another type", "PreconditionFailed", [END], "application/x-www-form-urlencoded"],
    ["no file", "InvalidArgument", [part('name="key"', "a"), END], TYPE],
    ["a field twice", "InvalidArgument", [part('name="key"', "a"), part('name="KEY"', "b"), FILE, END], TYPE],
    ["a part without a name", "MalformedPOSTRequest", [part('filename="a"', "a"), FILE, END], TYPE],
    ["bytes that are no text", "MalformedPOSTRequest", [part('name="key"', file), FILE, END], TYPE],
    ["a long field", "MaxPostPreDataLengthExceeded", [part('name="key"', "a".repeat(20_480)), FILE, END], TYPE],
    ["a long name", "MaxPostPreDataLengthExceeded", [part(`name="${"a".repeat(20_480)}"`, "a"), FILE, END], TYPE],
    ["a long end", "MaxPostPreDataLengthExceeded", [FILE, END, Buffer.alloc(40_000)], TYPE],
    [
      "a long field behind its file",
      "MaxPostPreDataLengthExceeded",
      [FILE, part('name="a"', "a".repeat(20_480)), END],
      TYPE,
    ],
  ])("with %s is refused", async (_what, code, body, type) => {
    await expect(read(Buffer.concat(body), 1000, type)).rejects.toMatchObject({ code });
  });
});
