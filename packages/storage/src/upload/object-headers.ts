/** The type and the headers of an object as a manifest can hold them: printable ASCII, which every reader can serve. */
import { encodeExtended, format, parse } from "content-disposition";
import { AgaroseError } from "@agarose/core";
import { headerCharactersMax, HEADERS_ALLOWED, mayKeepHeader } from "@agarose/core/format";

/** The headers of a put's content. */
export interface Described {
  readonly contentType: string;
  /** Response headers (`mayKeepHeader`), with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * The same, with a file name of other characters as `filename*` (RFC 8187) beside a plain one. USAGE where a value
 * cannot be served.
 */
export function describedAsStored({ contentType, headers }: Described): Described {
  const stored = Object.entries(headers).map(([name, value]) => {
    if (!mayKeepHeader(name)) throw refused(name, `is none of ${[...HEADERS_ALLOWED].join(", ")}`);
    return [name, servable(name, name === "content-disposition" ? dispositionOf(value) : value)];
  });
  return { contentType: servable("content-type", contentType), headers: Object.fromEntries(stored) };
}

/** The text of a header as HTTP sends it: bytes that are UTF-8 for most clients, and ISO 8859-1 for the others. */
export function headerText(bytes: string): string {
  if (PRINTABLE.test(bytes)) return bytes;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(bytes, "latin1"));
  } catch {
    return bytes;
  }
}

function servable(name: string, value: string): string {
  const character = /[^\x20-\x7e]/u.exec(value)?.[0];
  if (character !== undefined) {
    const code = `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
    throw refused(name, `has ${code}, and only U+0020 to U+007E can be served: write it without`);
  }
  const max = headerCharactersMax(name);
  if (value.length <= max) return value;
  throw refused(name, `has ${value.length} characters, at most ${max} are allowed: shorten it`);
}

function dispositionOf(value: string): string {
  // Control characters stay, so that they are refused.
  if (PRINTABLE.test(value) || /\p{Cc}/u.test(value)) return value;
  const { type, parameters } = parse(value);
  try {
    const own = Object.entries(parameters).flatMap(([name, text]) =>
      PRINTABLE.test(text)
        ? [[name, text]]
        : [
            [name, text.replaceAll(/[^\x20-\x7e]/gu, "_")],
            [`${name}*`, encodeExtended(text)],
          ],
    );
    return format({ type, parameters: Object.fromEntries(own) as Record<string, string> }, { extended: false });
  } catch (error) {
    throw refused("content-disposition", `cannot be written in ASCII (${(error as Error).message}): correct it`);
  }
}

function refused(header: string, problem: string): AgaroseError {
  return new AgaroseError("USAGE", `the header ${header} ${problem}`, { header });
}

/** Whether a header is what a client of the gateway has said of the bytes, so that it changes with them only. */
export function isChecksum(name: string): boolean {
  return name.startsWith("x-amz-checksum-");
}

/** By which an object keeps the ETag that S3 clients know it by, in base64 as S3 spells the checksum. */
export const MD5_HEADER = "x-amz-checksum-md5";

/** The header for an ETag, with or without quotes: an MD5, and `-N` behind it where N parts were uploaded. */
export function headerOfEtag(etag: string): Record<string, string> {
  const [md5, ...parts] = etag.replaceAll('"', "").split("-");
  return { [MD5_HEADER]: [Buffer.from(md5!, "hex").toString("base64"), ...parts].join("-") };
}

/** The ETag that the headers of an object keep, with its quotes. Undefined where they have none. */
export function etagOfHeaders(headers: Readonly<Record<string, string>>): string | undefined {
  const [md5, ...parts] = headers[MD5_HEADER]?.split("-") ?? [];
  return md5 === undefined ? undefined : `"${[Buffer.from(md5, "base64").toString("hex"), ...parts].join("-")}"`;
}

/** Headers of lines `name: value`. Throws USAGE. */
export function parseHeaders(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = "", value = ""] = /^([^:]+):\s*(.+)$/u.exec(line) ?? [];
      const lower = name.trim().toLowerCase();
      if (HEADERS_ALLOWED.has(lower)) {
        // Here already, so that no command begins with what cannot be stored.
        return [lower, describedAsStored({ contentType: "", headers: { [lower]: value } }).headers[lower]!];
      }
      const allowed = [...HEADERS_ALLOWED].join(", ");
      throw new AgaroseError(
        "USAGE",
        `the header ${JSON.stringify(line)} is not "name: value" with a name of: ${allowed}`,
      );
    }),
  );
}
