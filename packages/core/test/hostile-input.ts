/**
 * Bytes that no writer of ours has made, for every parser that reads bytes before it trusts them. Each package runs its
 * own parsers over them (`hostile-input.test.ts`).
 */
import { AgaroseError } from "../src/errors.ts";

/** Much for whoever takes quadratic time, and little for a test. */
const BYTES = 1024 * 1024;
/** As large as the largest manifest may be. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Far more than any of them takes on a busy machine, and far less than one that takes quadratic time. */
const MS_MAX = 60_000;

const utf8 = new TextEncoder();
const filled = (part: string, from = "", to = "", bytes = BYTES): Uint8Array =>
  utf8.encode(from + part.repeat(Math.floor((bytes - from.length - to.length) / part.length)) + to);
const nested = (open: string, within: string, close: string, depth: number): Uint8Array =>
  utf8.encode(open.repeat(depth) + within + close.repeat(depth));

const HOSTILE: Readonly<Record<string, () => Uint8Array>> = {
  nothing: () => new Uint8Array(0),
  null: () => utf8.encode("null"),
  "a number": () => utf8.encode("5"),
  "a text": () => utf8.encode('"manifest"'),
  "an array": () => utf8.encode("[]"),
  "an object": () => utf8.encode("{}"),
  "an array of nothing": () => utf8.encode("[null,null,[],{}]"),
  "fields of every object": () => utf8.encode('{"__proto__":{"key":1},"constructor":null,"toString":5,"then":1}'),
  "half of an object": () => utf8.encode('{"key":"a'),
  "8 MiB of empty arrays": () => filled("[],", "[", "[]]", BYTES_MAX),
  "1 MiB of empty arrays in a field": () => filled("[],", '{"hashes":[', "[]]}"),
  "deep arrays": () => nested("[", "", "]", 200_000),
  "deep objects": () => nested('{"a":', "1", "}", 100_000),
  "a number of 1 MiB": () => filled("9"),
  "a number beyond all": () => utf8.encode('{"generation":1e999,"bytes":-1e999}'),
  "a text of 1 MiB": () => filled("a", '"', '"'),
  "a line of 1 MiB": () => filled("a b\t"),
  "1 MiB of NUL": () => new Uint8Array(BYTES),
  "1 MiB of no UTF-8": () => new Uint8Array(BYTES).fill(0xff),
  "half of a surrogate": () => utf8.encode(String.raw`{"key":"\ud800"}`),
  "1 MiB of ranges": () => filled("0-0,", "bytes="),
  "1 MiB of digits in a range": () => filled("9", "bytes=0-"),
  "deep XML": () => nested("<a>", "", "</a>", 100_000),
  "1 MiB of elements": () => filled("<Contents/>", "<ListBucketResult>", "</ListBucketResult>"),
  "XML that multiplies": () =>
    utf8.encode(
      `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, i) => `<!ENTITY a${i} "${`&a${i ? i - 1 : ""};`.repeat(10)}">`).join("")}]><a>&a8;</a>`,
    ),
};

/**
 * Runs a parser over all of them, and over `sample` with one field after the other replaced, and returns what it did
 * wrong: it may only return, or throw an error with a code.
 *
 * @param sample JSON that it accepts.
 */
export async function offencesOf(
  parse: (bytes: Uint8Array, text: string) => unknown,
  sample?: object,
): Promise<string[]> {
  const offences: string[] = [];
  const inputs = [...Object.entries(HOSTILE), ...(sample ? changed(sample) : [])];
  for (const [name, make] of inputs) {
    const bytes = make();
    const text = new TextDecoder().decode(bytes);
    const fromMs = performance.now();
    try {
      await parse(bytes, text);
    } catch (error) {
      // The S3 door has errors of its own, with the codes of S3.
      const isTyped = error instanceof AgaroseError || (error as Error).constructor.name === "S3Error";
      if (!isTyped) offences.push(`${name}: ${String(error).slice(0, 200)}`);
    }
    const ms = performance.now() - fromMs;
    if (ms > MS_MAX) offences.push(`${name}: took ${Math.round(ms)} ms`);
  }
  return offences;
}

const VALUES = [null, [], [null], {}, "", "\0", -1, 0.5, 2 ** 53, true, "a".repeat(100_000)];

/** The sample with each of its fields replaced, also those within its objects and first elements. */
function changed(sample: object, path: readonly string[] = [], whole: object = sample): [string, () => Uint8Array][] {
  return Object.entries(sample).flatMap(([name, value], i): [string, () => Uint8Array][] => {
    if (Array.isArray(sample) && i > 0) return [];
    const at = [...path, name];
    const own = [undefined, ...VALUES].map((other): [string, () => Uint8Array] => [
      `${at.join(".")} = ${String(JSON.stringify(other)).slice(0, 20)}`,
      () => utf8.encode(JSON.stringify(replaced(whole, at, other))),
    ]);
    return typeof value === "object" && value !== null ? [...own, ...changed(value as object, at, whole)] : own;
  });
}

function replaced(value: unknown, [name, ...rest]: readonly string[], other: unknown): unknown {
  if (name === undefined) return other;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string, unknown>;
  copy[name] = replaced(copy[name], rest, other);
  return copy;
}
