/** docs/reference/errors.md has the words that the drop-in files leave out. */
import { readFile } from "node:fs/promises";
import { AgaroseError, type ErrorCode } from "@agarose/core";
import { expect, test } from "vitest";

test("every code has its line in docs/reference/errors.md, with its HTTP status", async () => {
  const source = await readFile(new URL("../../core/src/errors.ts", import.meta.url), "utf8");
  const docs = await readFile(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");
  const codes = [...source.matchAll(/^ {2}\| "([A-Z_]+)"/gm)].map(([, code]) => code as ErrorCode);
  expect(codes.length).toBeGreaterThan(30);
  const lines = codes.map(
    (code) => new RegExp(`^\\| \`${code}\` +\\| ${new AgaroseError(code, "").httpStatus} +\\| \\S`, "m"),
  );
  expect(lines.filter((line) => !line.test(docs))).toEqual([]);
});
