import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AgaroseError } from "@agarose/core";
import { printResult } from "./output.ts";
import { reportWalk, type ReportOptions } from "./report-stream.ts";

let printed: string;
beforeEach(() => {
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text, done) => {
    printed += String(text);
    if (typeof done === "function") (done as () => void)();
    return true;
  });
});
afterEach(() => vi.restoreAllMocks());

/** Walks over two objects. */
async function walk(options: ReportOptions, error?: AgaroseError): Promise<[number, string]> {
  const code = await reportWalk(options, async (report) => {
    await report.item({ key: "a" }, ["a is sound"]);
    if (error) throw error;
    await report.item({ key: "b" }, ["b is sound"]);
    await report.end({ checked: 2 }, ["2 objects"]);
    return 0;
  });
  return [code, printed];
}

test.each([
  [{}, "a is sound\nb is sound\n2 objects\n"],
  [{ json: true }, '{"objects":[{"key":"a"},{"key":"b"}],"checked":2}\n'],
  [{ jsonLines: true }, '{"key":"a"}\n{"key":"b"}\n{"summary":{"checked":2}}\n'],
  [{ quiet: true }, ""],
  [{ quiet: true, json: true }, '{"objects":[{"key":"a"},{"key":"b"}],"checked":2}\n'],
] as const)("with %j a walk prints %j", async (options, text) => {
  expect(await walk(options)).toEqual([0, text]);
});

test("an error ends a document that has begun, and quiet walks reject with it as those for people do", async () => {
  const error = new AgaroseError("STORE_FAILED", "full");
  const [code, text] = await walk({ json: true }, error);
  expect([code, JSON.parse(text)]).toMatchObject([1, { objects: [{ key: "a" }], error: { code: "STORE_FAILED" } }]);
  await expect(walk({ quiet: true }, error)).rejects.toBe(error);
});

test("a quiet result is printed as JSON alone", () => {
  printResult({ quiet: true }, { ok: true }, ["ok"]);
  expect(printed).toBe("");
  printResult({ quiet: true, json: true }, { ok: true }, ["ok"]);
  expect(printed).toBe('{"ok":true}\n');
});
