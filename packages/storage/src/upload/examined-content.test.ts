import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { examineContent } from "./examined-content.ts";
import type { SourceReader } from "./file-source.ts";

const TEXT = "Größe und Übermaß\n".repeat(10_000);
const { signal } = new AbortController();

/** Gives at most `step` bytes at a time, so that characters and streams are cut anywhere. */
function reader(content: Uint8Array, step = 65_537): SourceReader {
  return {
    read: async (target, position) => {
      const part = content.subarray(position, position + Math.min(step, target.length));
      target.set(part);
      return part.length;
    },
    close: async () => {},
  };
}

const examined = async (content: Uint8Array, contentType: string, coding?: string, step?: number): Promise<string> => {
  const headers: Record<string, string> = coding === undefined ? {} : { "content-encoding": coding };
  const found = await examineContent(reader(content, step), { contentType, headers }, "a", signal);
  expect(found.headers).toEqual(headers);
  return found.contentType;
};

describe("the charset", () => {
  test.each(["text/plain", "text/html", "text/css", "text/csv", "text/javascript", "application/javascript"])(
    "of %s is written where the bytes are UTF-8",
    async (type) => {
      expect(await examined(Buffer.from(TEXT), type)).toBe(`${type}; charset=utf-8`);
    },
  );

  test("is found though characters are cut between reads", async () => {
    expect(await examined(Buffer.from("aä€😀".repeat(50)), "text/plain", undefined, 1)).toMatch(/charset=utf-8$/);
  });

  test.each([
    ["in ISO 8859-1", Buffer.from(TEXT, "latin1")],
    ["in ISO 8859-1 far behind", Buffer.concat([Buffer.from(TEXT), Buffer.from("ß", "latin1")])],
    ["in UTF-16 with a mark", Buffer.from(`\uFEFF${TEXT}`, "utf16le")],
    ["in UTF-16 without a mark", Buffer.from("only ASCII", "utf16le")],
    ["in UTF-8 with a mark", Buffer.from(`\uFEFF${TEXT}`)],
    ["in ISO-2022-JP", Buffer.from("\x1B$B$3$s\x1B(B", "latin1")],
    ["cut in a character", Buffer.from(TEXT).subarray(0, 3)],
    ["empty", Buffer.alloc(0)],
  ])("of text that is %s is left alone", async (_name, content) => {
    expect(await examined(content, "text/plain")).toBe("text/plain");
    expect(await examined(content, "text/plain", undefined, 997)).toBe("text/plain");
  });

  test.each([
    "text/plain; charset=iso-8859-1",
    "text/html;CHARSET=utf-8",
    "application/json",
    "image/svg+xml",
    "image/png",
  ])("of %s is left alone", async (type) => {
    expect(await examined(Buffer.from(TEXT), type)).toBe(type);
  });

  test("of coded text is that of the text, and of an unknown coding nothing is known", async () => {
    expect(await examined(gzipSync(TEXT), "text/plain", "gzip")).toBe("text/plain; charset=utf-8");
    expect(await examined(gzipSync(Buffer.from(TEXT, "latin1")), "text/plain", "gzip")).toBe("text/plain");
    expect(await examined(Buffer.from(TEXT), "text/plain", "made-up")).toBe("text/plain");
    expect(await examined(Buffer.from(TEXT), "text/plain", "identity")).toBe("text/plain; charset=utf-8");
  });
});

describe("content", () => {
  const gzip = gzipSync(TEXT);
  test.each([
    ["gzip", gzip],
    ["x-gzip", gzip],
    ["deflate", deflateSync(TEXT)],
    ["deflate", deflateRawSync(TEXT)],
    ["br", brotliCompressSync(TEXT)],
    ["zstd", zstdCompressSync(TEXT)],
    ["gzip, br", brotliCompressSync(gzip)],
    ["made-up", gzip],
    ["gzip", Buffer.alloc(0)],
  ])("that follows its coding is taken: %s", async (coding, content) => {
    expect(await examined(content, "image/png", coding)).toBe("image/png");
    expect(await examined(content, "image/png", coding, 5_000)).toBe("image/png");
  });

  test.each([
    ["gzip", "is not coded", Buffer.from(TEXT)],
    ["gzip", "is coded otherwise", brotliCompressSync(TEXT)],
    ["br", "is not coded", Buffer.from(TEXT)],
    ["zstd", "is coded otherwise", gzip],
    ["deflate", "is coded otherwise", gzip],
    ["gzip", "is cut off", gzip.subarray(0, -9)],
    ["gzip", "has two streams", Buffer.concat([gzip, gzipSync("more")])],
    ["gzip", "has bytes behind its stream", Buffer.concat([gzip, Buffer.from("more")])],
    ["gzip", "has zeros behind its stream", Buffer.concat([gzip, Buffer.alloc(512)])],
    ["br", "has bytes behind its stream", Buffer.concat([brotliCompressSync(TEXT), Buffer.from("more")])],
    ["gzip, br", "is coded once", brotliCompressSync(TEXT)],
    ["br, gzip", "is coded in another order", brotliCompressSync(gzip)],
  ])("of %s that %s is refused, with what to do", async (coding, _name, content) => {
    await expect(examined(content, "image/png", coding)).rejects.toMatchObject({
      code: "CODING_INVALID",
      message: expect.stringMatching(/compress the file again in one stream, or leave out content-encoding/),
    });
  });
});
