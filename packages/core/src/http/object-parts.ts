/**
 * Several byte ranges of an object in one response: `multipart/byteranges` (RFC 9110, sections 14.6 and 15.3.7.2). The
 * edge sends them. The service worker sends the whole object, as a server may (section 14.2).
 */
import { objectAnswer, type ObjectAnswer } from "./object-response.ts";
import { contentRange, parseRange, type ByteRange } from "./range.ts";

/** A response of several ranges. Its body is each head with the bytes of its range behind it, and then `end`. */
export interface PartsAnswer extends ObjectAnswer {
  readonly parts: readonly ObjectPart[];
  readonly end: string;
}

/** One range, and the lines that precede it. */
export interface ObjectPart {
  readonly head: string;
  readonly range: ByteRange;
}

/** More ranges are ignored, as ranges that overlap are: they serve attacks (RFC 9110, section 17.15). */
export const RANGES_MAX = 16;

/**
 * Decides the response to a GET of several ranges, as `objectAnswer` does for one. Undefined where that is to decide:
 * there is one range or none, or the ranges are ignored.
 *
 * @param boundary separates the parts: random, and of no more than 70 characters.
 * @throws RANGE_UNSATISFIABLE if no byte of the object is in any range, and as `objectAnswer` does.
 */
export function partsAnswer(
  manifest: Parameters<typeof objectAnswer>[0],
  request: { get(name: string): string | null },
  boundary: string,
): PartsAnswer | ObjectAnswer | undefined {
  const header = request.get("range");
  const specs = specsOf(header);
  if (!specs) return undefined;
  const ranges = satisfiableOf(specs, manifest.bytes);
  if (!ranges) return undefined;
  const asked = ranges.length > 0 ? ranges.map(textOf) : specs;
  // Conditions apply to all ranges alike.
  const answer = objectAnswer(manifest, {
    get: (name) => (name === "range" ? `bytes=${asked[0]}` : request.get(name)),
  });
  if (answer.status !== 206 || ranges.length === 1) return answer;
  const { "content-range": _, ...headers } = answer.headers;
  const parts = ranges.map((range): ObjectPart => {
    const lines = [
      "",
      `--${boundary}`,
      `content-type: ${manifest.contentType}`,
      `content-range: ${contentRange(range, manifest.bytes)}`,
    ];
    return { head: `${lines.join("\r\n")}\r\n\r\n`, range };
  });
  const end = `\r\n--${boundary}--\r\n`;
  const lengthOf = (text: string): number => new TextEncoder().encode(text).length;
  const bytes = parts.reduce((sum, { head, range }) => sum + lengthOf(head) + range.end - range.start, lengthOf(end));
  headers["content-type"] = `multipart/byteranges; boundary=${boundary}`;
  headers["content-length"] = String(bytes);
  return { ...answer, headers, range: ranges[0], parts, end };
}

/** The ranges of a header that has several. */
function specsOf(header: string | null): string[] | undefined {
  const [, list = ""] = /^\s*bytes\s*=(.*,.*)$/i.exec(header ?? "") ?? [];
  const specs = list
    .split(",")
    .map((spec) => spec.trim())
    .filter(Boolean);
  return specs.length > 0 && specs.length <= RANGES_MAX ? specs : undefined;
}

/** Returns the ranges that have bytes, in their order; undefined if one is malformed, or if two overlap. */
function satisfiableOf(specs: readonly string[], bytes: number): ByteRange[] | undefined {
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    try {
      const range = parseRange(`bytes=${spec}`, bytes);
      if (!range) return undefined;
      ranges.push(range);
    } catch {
      // It has no byte: the others are sent (section 15.3.7).
    }
  }
  const inOrder = ranges.toSorted((a, b) => a.start - b.start);
  return inOrder.some(({ start }, i) => i > 0 && start < inOrder[i - 1]!.end) ? undefined : ranges;
}

function textOf({ start, end }: ByteRange): string {
  return `${start}-${end - 1}`;
}
