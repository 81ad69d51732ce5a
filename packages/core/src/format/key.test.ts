import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attempt, codeOf, errorOf } from "../../test/errors.ts";
import { AgaroseError } from "../errors.ts";
import {
  chunkName,
  chunkNamePrefix,
  decodeKey,
  encodeKey,
  ENCODED_KEY_BYTES_MAX,
  keyOfManifestName,
  manifestName,
  objectUrl,
  parseKey,
} from "./key.ts";

const VERSION = "0123456789abcdef0123456789abcdef";

/** One or more keys for every general category of Unicode of a well-formed string. */
const KEYS_BY_CLASS: Record<string, string> = {
  "Lu, Ll": "Aa",
  Lt: "ǅ",
  Lm: "ʰ",
  Lo: "漢字",
  Mn: "e\u0301",
  Mc: "क\u093e",
  Me: "1\u20dd",
  Nd: "٣",
  Nl: "Ⅻ",
  No: "½",
  Pc: "a_b‿c",
  Pd: "a-b—c",
  "Ps, Pe": "(a)[b]{c}",
  "Pi, Pf": "«a»",
  Po: "!\"#%&'*,./:;?@\\x".replace("./", ". /"),
  Sm: "a+b<c>d=e|f~g",
  Sc: "$€",
  Sk: "^`",
  So: "©🐈",
  Zs: " a\u00a0b ",
  Zl: "a\u2028b",
  Zp: "a\u2029b",
  Cc: "a\t\n\r\u001b\u007fb",
  Cf: "a\u200d\u202eb\ufeff",
  Co: "\ue000",
  Cn: "\u0378\u{10ffff}",
};

describe("keys", () => {
  for (const [name, key] of Object.entries(KEYS_BY_CLASS)) {
    test(`of class ${name} go through names and URLs unchanged`, () => {
      expect(parseKey(key)).toBe(key);
      expect(encodeKey(key)).toMatch(/^[A-Za-z0-9\-._~%/]+$/);
      expect(decodeKey(encodeKey(key))).toBe(key);
      expect(keyOfManifestName(manifestName(key))).toBe(key);
      const url = new URL(objectUrl("https://host/bucket", chunkName(key, VERSION, 3)));
      expect(decodeURIComponent(url.pathname)).toBe(`/bucket/${chunkName(key, VERSION, 3)}`);
    });
  }

  const invalid: Record<string, string> = {
    "the empty one": "",
    "one that begins with a slash": "/a",
    "doubled slashes": "a//b",
    "a slash alone": "/",
    "slashes at the end": "a//",
    "`..` before a slash at the end": "a/../",
    "`..` alone": "..",
    "`..` before a slash": "../a",
    "`..` inside": "a/../b",
    "`..` at the end": "a/..",
    "`.` inside": "a/./b",
    NUL: "a\0b",
    "a lone high surrogate": "a\ud83d",
    "a lone low surrogate": "\ude00a",
    "surrogates in the wrong order": "\ude00\ud83d",
  };
  for (const [name, key] of Object.entries(invalid)) {
    test(`refuses ${name}`, () => expect(codeOf(() => parseKey(key))).toBe("KEY_INVALID"));
  }

  test("may end with one slash, as that of the empty object by which clients of S3 keep a folder", () => {
    for (const key of ["a/", "a/b/", ".hidden/"]) {
      expect(parseKey(key)).toBe(key);
      expect(keyOfManifestName(manifestName(key))).toBe(key);
    }
  });

  test("may have dots that are not a segment of their own", () => {
    for (const key of ["...", "a..b", ".hidden", "a/..b", "a/b..", "a. /b"]) expect(parseKey(key)).toBe(key);
  });

  test("may take exactly the bytes that fit, encoded, and not one more", () => {
    expect(parseKey("x".repeat(ENCODED_KEY_BYTES_MAX))).toHaveLength(ENCODED_KEY_BYTES_MAX);
    const error = errorOf(() => parseKey("x".repeat(ENCODED_KEY_BYTES_MAX + 1)));
    expect(error).toMatchObject({ code: "KEY_TOO_LONG", details: { bytes: 961, max: 960 } });
    // A cat takes 4 bytes of UTF-8, so 12 characters.
    expect(parseKey("🐈".repeat(80))).toHaveLength(160);
    expect(codeOf(() => parseKey("🐈".repeat(81)))).toBe("KEY_TOO_LONG");
  });

  test("of the largest size fit in an S3 name of 1,024 bytes with everything around them", () => {
    const key = "x".repeat(ENCODED_KEY_BYTES_MAX);
    expect(manifestName(key).length).toBeLessThanOrEqual(1024);
    expect(chunkName(key, VERSION, 255).length).toBeLessThanOrEqual(1024);
  });

  test("are refused with a code or restored from their name, for any well-formed string", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const key = attempt(() => parseKey(text));
        if (key instanceof Error) expect(key).toBeInstanceOf(AgaroseError);
        else expect(keyOfManifestName(manifestName(key))).toBe(text);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("names", () => {
  const segment = fc.string({ unit: "binary", minLength: 1, maxLength: 6 });
  const key = fc
    .array(segment, { minLength: 1, maxLength: 3 })
    .chain((segments) => fc.constantFrom(segments.join("/"), `${segments.join("/")}/`))
    .filter((text) => !(attempt(() => parseKey(text)) instanceof Error));

  test("of different keys differ, and none is a prefix of another", () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        fc.pre(a !== b);
        expect(manifestName(b).startsWith(manifestName(a))).toBe(false);
        expect(chunkName(b, VERSION, 1).startsWith(chunkNamePrefix(a, VERSION))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  test("of keys that look like our own suffixes do not collide with them", () => {
    const tricky = [
      "a",
      "a/",
      "a@",
      "a/@",
      "a@.json",
      "a@.json@.json",
      "a%40.json",
      `a@${VERSION}/0`,
      "a/0",
      "manifests/a",
    ];
    const names = tricky.flatMap((one) => [manifestName(one), chunkName(one, VERSION, 0)]);
    expect(new Set(names).size).toBe(names.length);
  });

  test("keep a prefix of segments a prefix, so that listing by prefix works", () => {
    expect(manifestName("fotos/ä b/c").startsWith(`manifests/${encodeKey("fotos/ä ")}`)).toBe(true);
  });

  test("that encodeKey would not write are not taken for keys", () => {
    for (const name of [
      "a%2Fb",
      "a%2fb",
      "%61",
      "a b",
      "ä",
      "%",
      "%zz",
      "%ff",
      "a%c3",
      "!",
      "%2e%2e",
      "",
      "a//b",
      "@",
    ]) {
      expect(codeOf(() => decodeKey(name))).toBe("KEY_INVALID");
      expect(keyOfManifestName(`manifests/${name}@.json`)).toBeUndefined();
    }
  });

  test("that are not of manifests give no key", () => {
    for (const name of ["", "manifests/", "manifests/@.json", "manifests/a", "chunks/a@.json", "x/manifests/a@.json"]) {
      expect(keyOfManifestName(name)).toBeUndefined();
    }
  });
});

test("objectUrl keeps what a name has percent-encoded, with or without a slash behind the base", () => {
  for (const base of ["http://h:1/b", "http://h:1/b/"]) {
    expect(objectUrl(base, manifestName("a b/ü"))).toBe("http://h:1/b/manifests/a%2520b/%25C3%25BC%40.json");
  }
});
