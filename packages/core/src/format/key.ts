/**
 * Keys: what a client asks for, and the names of S3 objects made from them (docs/reference/format.md, "Names").
 *
 * A key is any well-formed Unicode string, as S3 has them. Its name in a bucket is ASCII in short segments, none of
 * which is empty or made of dots only, so that also a store that keeps objects as files takes it. Names are in the
 * order of their keys' UTF-8, so that a list of names is a list of keys.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";

/** The most bytes of a key's name. S3 allows names of 1,024 bytes; prefix and suffix take up to 64 of them. */
export const KEY_NAME_BYTES_MAX = 960;

/** Returns `key` if it is well-formed. Throws KEY_INVALID or KEY_TOO_LONG with the rule that it breaks. */
export function parseKey(key: string): string {
  checkForm(key);
  // A name has at least as many bytes as its key has characters.
  const bytes = Math.max(key.length, nameOf(key.slice(0, KEY_NAME_BYTES_MAX + 1), true).length);
  if (bytes > KEY_NAME_BYTES_MAX) {
    throw new AgaroseError(
      "KEY_TOO_LONG",
      HAS_MESSAGES &&
        `the name of the key takes ${bytes} bytes, at most ${KEY_NAME_BYTES_MAX} are allowed: use a shorter key`,
      { bytes, max: KEY_NAME_BYTES_MAX },
    );
  }
  return key;
}

/**
 * Percent-encodes a key for the path of a URL. Parsers of URLs take `.` and `..` out of a path, and proxies merge
 * slashes, so a slash before such a segment is encoded too.
 */
export function encodeKey(key: string): string {
  // encodeURIComponent leaves five characters that RFC 3986 reserves, which break signatures and shells.
  return encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, percent)
    .replace(/\/(?=\/|\.\.?(?:\/|$))/g, "%2F")
    .replace(/^(\.{0,2})\//, "$1%2F");
}

/** Ends a key in all its names. No other character of a name comes before it. */
const END = "!";
/** Six bits as one character, in order. */
const DIGITS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/** The name of a key in a bucket, behind the prefix of what is stored. It ends with `!`. */
export function keyName(key: string): string {
  return `${nameOf(key, true)}${END}`;
}

/** The common prefix of the names of all keys that begin with `prefix`, and of no others. */
export function keyNamePrefix(prefix: string): string {
  return nameOf(prefix, false);
}

function nameOf(text: string, isWhole: boolean): string {
  return (
    text
      .replace(/[^\0-\x7f]+|[^-./\dA-Za-z]/g, (run, at: number) => {
        if (run < "-") return percent(run);
        const digits = Array.from(
          new TextEncoder().encode(run),
          (byte) => DIGITS[(byte >> 6 === 2 ? byte : byte + 6) & 63],
        ).join("");
        // The first character is where the run was in the order.
        const lead = run < "A" ? "@" : run < "a" ? "_" : "~";
        return lead + digits + (run > "\x7f" && (isWhole || at + run.length < text.length) ? "-" : "");
      })
      // Files of many systems have names of at most 255 bytes, of which a suffix takes 50.
      .replace(/[^/]{190}/g, "$&~/")
      .replace(/(?<![^/])[./]/g, (first) => (first === "." ? ".-" : ".0/"))
  );
}

/** Returns the key that has this name: the inverse of `keyName`. Undefined if none has. */
export function keyOfName(name: string): string | undefined {
  if (name.length > KEY_NAME_BYTES_MAX + END.length) return undefined;
  const written = name
    .slice(0, -END.length)
    .replace(/(?<![^/])\.(-|0\/)/g, (_, second) => (second === "-" ? "." : "/"))
    .replaceAll("~/", "")
    .replace(/~((?:[7-9A-Z_].|[a-p]..|[q-u]...)+)-|[@_~]./g, (token, run?: string) => {
      if (run !== undefined) return percentEncoded(run);
      return encodeURIComponent(String.fromCharCode(DIGITS.indexOf(token[1]!) + (token[0] === "~" ? 0x7a : 0x3a)));
    });
  try {
    const key = parseKey(decodeURIComponent(written));
    // One key has one name: other spellings are refused.
    return keyName(key) === name ? key : undefined;
  } catch {
    return undefined;
  }
}

/** A run of characters that are not ASCII, percent-encoded. */
function percentEncoded(run: string): string {
  let left = 0;
  const bytes = [...run].map((character) => {
    const bits = DIGITS.indexOf(character);
    if (left-- > 0) return 0x80 | bits;
    const byte = bits + 0xba;
    left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    return byte;
  });
  return bytes.map((byte) => `%${byte.toString(16)}`).join("");
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

/** The prefix of all manifests' S3 names. */
export const MANIFEST_PREFIX = "manifests/";
/** The prefix of all chunks' S3 names. */
export const CHUNK_PREFIX = "chunks/";

/** Returns the S3 name of a key's manifest, in every region. */
export function manifestName(key: string): string {
  return `${MANIFEST_PREFIX}${keyName(key)}.json`;
}

/** The S3 name that all chunks of one upload of a key begin with; `chunkName` adds the index. */
export function chunkNamePrefix(key: string, upload: string): string {
  return `${CHUNK_PREFIX}${keyName(key)}${upload}/`;
}

/** The S3 name of chunk `index` of one upload of a key. */
export function chunkName(key: string, upload: string, index: number): string {
  return `${chunkNamePrefix(key, upload)}${index}`;
}

/** Returns the URL of the S3 object `name` below a region's base URL (`https://host/bucket`). */
export function objectUrl(base: string, name: string): string {
  return `${base.replace(/\/$/, "")}/${encodeKey(name)}`;
}

function checkForm(key: string): void {
  if (key === "") throw malformed(key, HAS_MESSAGES && "is empty");
  if (!key.isWellFormed())
    throw malformed(key, HAS_MESSAGES && "holds a lone surrogate: it cannot be written in UTF-8");
  if (key.includes("\0")) throw malformed(key, HAS_MESSAGES && "holds a NUL character");
  if (/^\.\.?$/.test(key))
    throw malformed(key, HAS_MESSAGES && "is a path and no name, so that no URL can hold it: add to it");
}

function malformed(key: string, problem: string | false): AgaroseError {
  return new AgaroseError("KEY_INVALID", HAS_MESSAGES && `key ${JSON.stringify(key.slice(0, 200))} ${problem}`, {
    key,
  });
}
