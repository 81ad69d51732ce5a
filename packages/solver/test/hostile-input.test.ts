/** A line of a log is a read, something else or malformed, whatever it is: anyone's request is in there. */
import { offencesOf } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { lineParser, LOG_FORMATS, parseCsvRecord } from "../src/traces/log-formats.ts";

const formats = LOG_FORMATS.filter((format) => format !== "csv");

test.each(formats)("%s: hostile lines throw nothing, in bounded time", { timeout: 300_000 }, async (format) => {
  const parse = lineParser(format);
  expect(await offencesOf((_, text) => parse(text))).toEqual([]);
});

test("csv: hostile cells throw nothing, in bounded time", { timeout: 300_000 }, async () => {
  expect(await offencesOf((_, text) => parseCsvRecord({ key: text, time: text, bytes: text }))).toEqual([]);
});
