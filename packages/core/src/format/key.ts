/**
 * Keys: what a client asks for, and the names of S3 objects made from them (docs/reference/format.md, "Names").
 *
 * A key is any well-formed Unicode string of path segments. In S3 names every segment is percent-encoded, so the same
 * name works on every S3 server, and `@`, which encoding always escapes, can separate our own suffixes from keys.
 */
import { AgaroseError, HAS_MESSAGES } from "../errors.ts";

/** The most bytes of an encoded key. S3 allows names of 1,024 bytes; prefix and suffix take up to 64 of them. */
export const ENCODED_KEY_BYTES_MAX = 960;

/** Returns `key` if it is well-formed. Throws KEY_INVALID or KEY_TOO_LONG with the rule that it breaks. */
export function parseKey(key: string): string {
  checkForm(key);
  const bytes = encodeKey(key).length;
  if (bytes > ENCODED_KEY_BYTES_MAX) {
    throw new AgaroseError(
      "KEY_TOO_LONG",
      HAS_MESSAGES &&
        `key takes ${bytes} bytes percent-encoded, at most ${ENCODED_KEY_BYTES_MAX} are allowed: use a shorter key`,
      { bytes, max: ENCODED_KEY_BYTES_MAX },
    );
  }
  return key;
}

/** Percent-encodes each segment of a key, so that only unreserved ASCII and `/` remain. Prefixes stay prefixes. */
export function encodeKey(key: string): string {
  // encodeURIComponent leaves five characters that RFC 3986 reserves, which break signatures and shells.
  const escaped = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, escaped);
}

/** Returns the key of `encoded`: the inverse of `encodeKey`. Throws KEY_INVALID if `encoded` is not its result. */
export function decodeKey(encoded: string): string {
  let key: string;
  try {
    key = parseKey(decodeURIComponent(encoded));
  } catch (error) {
    if (error instanceof AgaroseError) throw error;
    throw notEncoded(encoded);
  }
  // One key has one name: other spellings are refused.
  if (encodeKey(key) !== encoded) throw notEncoded(encoded);
  return key;
}

/** The prefix of all manifests' S3 names. */
export const MANIFEST_PREFIX = "manifests/";
/** The prefix of all chunks' S3 names. */
export const CHUNK_PREFIX = "chunks/";
const MANIFEST_SUFFIX = "@.json";

/** Returns the S3 name of a key's manifest, in every region. */
export function manifestName(key: string): string {
  return `${MANIFEST_PREFIX}${encodeKey(key)}${MANIFEST_SUFFIX}`;
}

/** Returns the key whose manifest has the S3 name `name`, or undefined if no manifest has such a name. */
export function keyOfManifestName(name: string): string | undefined {
  if (!name.startsWith(MANIFEST_PREFIX) || !name.endsWith(MANIFEST_SUFFIX)) return undefined;
  try {
    return decodeKey(name.slice(MANIFEST_PREFIX.length, -MANIFEST_SUFFIX.length));
  } catch {
    return undefined;
  }
}

/** The S3 name that all chunks of one upload of a key begin with; `chunkName` adds the index. */
export function chunkNamePrefix(key: string, upload: string): string {
  return `${CHUNK_PREFIX}${encodeKey(key)}@${upload}/`;
}

/** The S3 name of chunk `index` of one upload of a key. */
export function chunkName(key: string, upload: string, index: number): string {
  return `${chunkNamePrefix(key, upload)}${index}`;
}

/** Returns the URL of the S3 object `name` below a region's base URL (`https://host/bucket`). */
export function objectUrl(base: string, name: string): string {
  return `${base.replace(/\/$/, "")}/${encodeKey(name)}`;
}

function notEncoded(encoded: string): AgaroseError {
  const problem = HAS_MESSAGES && `${JSON.stringify(encoded.slice(0, 200))} is not a percent-encoded key`;
  return new AgaroseError("KEY_INVALID", problem, { encoded });
}

function checkForm(key: string): void {
  if (key === "") throw malformed(key, HAS_MESSAGES && "is empty");
  if (!key.isWellFormed())
    throw malformed(key, HAS_MESSAGES && "holds a lone surrogate: it cannot be written in UTF-8");
  if (key.includes("\0")) throw malformed(key, HAS_MESSAGES && "holds a NUL character");
  // A slash at the end is a name of its own: clients of S3 keep an empty object under it for a folder.
  if (/^\/|\/\//.test(key)) {
    throw malformed(key, HAS_MESSAGES && "has an empty path segment: remove leading and doubled slashes");
  }
  if (/(^|\/)\.\.?(\/|$)/.test(key))
    throw malformed(key, HAS_MESSAGES && "has a `.` or `..` segment: name the object directly");
}

function malformed(key: string, problem: string | false): AgaroseError {
  return new AgaroseError("KEY_INVALID", HAS_MESSAGES && `key ${JSON.stringify(key.slice(0, 200))} ${problem}`, {
    key,
  });
}
