/** The response headers that a configuration gives to keys, such as `immutable` for the hashed files of a build. */
import mime from "mime";
import type { Minimatch } from "minimatch";
import type { Config } from "../config/config.ts";
import { matches, patternOf } from "../sync/filter.ts";
import { isChecksum, type Described } from "./object-headers.ts";

type Rules = Config["headers"];
interface CompiledRule {
  readonly pattern: Minimatch;
  readonly headers: Readonly<Record<string, string>>;
}

const compiled = new WeakMap<Rules, readonly CompiledRule[]>();

/**
 * Returns the headers of `key`: those of every rule that matches it, of which the last one decides, and `given`, which
 * overrides them. Patterns are those of `agarose sync --include`, from the beginning of the key on.
 */
export function headersOf(
  key: string,
  rules: Rules,
  given: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  let known = compiled.get(rules);
  if (!known) {
    known = rules.map(({ keys, headers }) => ({ pattern: patternOf(keys), headers }));
    compiled.set(rules, known);
  }
  const own = known.filter(({ pattern }) => matches(pattern, key)).map(({ headers }) => headers);
  return Object.assign({}, ...own, given) as Record<string, string>;
}

/** The content type that the extension of a key stands for. */
export function contentTypeOf(key: string): string {
  return mime.getType(key) ?? "application/octet-stream";
}

/** Whether an object is described as a put of `wanted` would describe it. Checksums follow from its bytes. */
export function isDescribedAs(stored: Described, wanted: Described): boolean {
  const textOf = ({ contentType, headers }: Described): string => {
    const own = Object.entries(headers).filter(([name]) => !isChecksum(name));
    // A put adds the character set where it finds it.
    return JSON.stringify([contentType.replace(/; charset=utf-8$/, ""), own.toSorted(([a], [b]) => (a < b ? -1 : 1))]);
  };
  return textOf(stored) === textOf(wanted);
}
