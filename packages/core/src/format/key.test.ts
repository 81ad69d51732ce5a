import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attempt, codeOf, errorOf } from "../../test/errors.ts";
import {
  chunkName,
  chunkNamePrefix,
  encodeKey,
  KEY_NAME_BYTES_MAX,
  keyName,
  keyNamePrefix,
  keyOfName,
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

/** Keys that clients of S3 may use, and that a path cannot hold as they are. */
const ODD = [
  "/",
  "//",
  "/a",
  "a//b",
  "a/",
  "a//",
  "./a",
  "../a",
  "a/..",
  "a/./b",
  "a/../b",
  "../../a",
  "...",
  ".hidden",
];

/** Few characters that are special somewhere, in many orders; and any text. */
const KEY = fc
  .oneof(
    fc.string({
      unit: fc.constantFrom("a", "Z", "0", "-", ".", "/", "_", "~", "!", "%", "@", "=", "é", "漢", "🐈"),
      maxLength: 12,
    }),
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.string({ unit: fc.constantFrom("a", "b", "/", "д", "🐈"), minLength: 180, maxLength: 230 }),
  )
  .filter((text) => !(attempt(() => parseKey(text)) instanceof Error));

describe("keys", () => {
  for (const [name, key] of Object.entries({ ...KEYS_BY_CLASS, ...Object.fromEntries(ODD.map((odd) => [odd, odd])) })) {
    test(`of class ${name} go through names and URLs unchanged`, () => {
      expect(parseKey(key)).toBe(key);
      expect(keyName(key)).toMatch(/^[A-Za-z0-9\-._~%@/]+!$/);
      expect(keyOfName(keyName(key))).toBe(key);
      const url = new URL(objectUrl("https://host/bucket", chunkName(key, VERSION, 3)));
      expect(decodeURIComponent(url.pathname)).toBe(`/bucket/${chunkName(key, VERSION, 3)}`);
    });
  }

  const invalid: Record<string, string> = {
    "the empty one": "",
    "`.`, which no path can hold": ".",
    "`..`, which no path can hold": "..",
    NUL: "a\0b",
    "a lone high surrogate": "a\ud83d",
    "a lone low surrogate": "\ude00a",
    "surrogates in the wrong order": "\ude00\ud83d",
  };
  for (const [name, key] of Object.entries(invalid)) {
    test(`refuses ${name}`, () => expect(codeOf(() => parseKey(key))).toBe("KEY_INVALID"));
  }

  test("may take exactly the bytes that fit in a name, and not one more", () => {
    const key = Array.from({ length: 10 }, () => "x".repeat(95)).join("/");
    expect(parseKey(`${key}y`)).toHaveLength(KEY_NAME_BYTES_MAX);
    const error = errorOf(() => parseKey(`${key}yz`));
    expect(error).toMatchObject({ code: "KEY_TOO_LONG", details: { bytes: 961, max: 960 } });
    expect(manifestName(key).length).toBeLessThanOrEqual(1024);
    expect(chunkName(key, VERSION, 256).length).toBeLessThanOrEqual(1024);
  });

  test("that are not ASCII take little more than their UTF-8", () => {
    expect(keyName("漢字".repeat(30))).toHaveLength(3 * 60 + 3);
    expect(codeOf(() => parseKey("漢".repeat(320)))).toBe("KEY_TOO_LONG");
    expect(parseKey("漢".repeat(310))).toHaveLength(310);
  });

  test("are in the path of a URL what they are, through parsers and proxies that fold paths", () => {
    fc.assert(
      fc.property(fc.oneof(KEY, fc.constantFrom(...ODD)), (key) => {
        const { pathname } = new URL(`/o/${encodeKey(key)}`, "https://pop.example");
        expect(decodeURIComponent(pathname.replace(/\/{2,}/g, "/").slice("/o/".length))).toBe(key);
      }),
      { numRuns: 1000 },
    );
  });
});

/** By code points, whose order is that of their UTF-8. */
function compareUtf8(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => Array.from(text, (one) => one.codePointAt(0)!)) as [number[], number[]];
  const at = left.findIndex((point, index) => point !== right[index]);
  return at < 0 ? Math.sign(left.length - right.length) : Math.sign(left[at]! - (right[at] ?? -1));
}

describe("names", () => {
  test("are of one key, and of no other: each gives its key again", () => {
    const again = fc.property(KEY, (key) => {
      expect(keyOfName(keyName(key))).toBe(key);
    });
    fc.assert(again, { numRuns: 2000 });
  });

  test("are in the order of their keys' UTF-8", () => {
    fc.assert(
      fc.property(KEY, KEY, fc.nat(), (a, b, at) => {
        const other = a.slice(0, at % (a.length + 1)).toWellFormed() + b;
        const order = compareUtf8(a, other);
        const [left, right] = [keyName(a), keyName(other)];
        expect(left < right ? -1 : left > right ? 1 : 0).toBe(order);
      }),
      { numRuns: 5000 },
    );
  });

  test("have a beginning in common exactly where their keys have", () => {
    fc.assert(
      fc.property(KEY, KEY, (prefix, key) => {
        expect(keyName(prefix + key).startsWith(keyNamePrefix(prefix))).toBe(true);
        expect(keyName(key).startsWith(keyNamePrefix(prefix))).toBe(key.startsWith(prefix));
      }),
      { numRuns: 2000 },
    );
  });

  test("have segments that every store takes: none empty or of dots, and none too long for a file", () => {
    const last = (key: string): string => `history/${keyName(key)}${VERSION}.${Number.MAX_SAFE_INTEGER}`;
    fc.assert(
      fc.property(fc.oneof(KEY, fc.constantFrom(...ODD)), (key) => {
        for (const segment of last(key).split("/")) {
          expect(segment).not.toMatch(/^\.{0,2}$/);
          expect(segment.length).toBeLessThanOrEqual(255);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("of different keys differ, and none is a prefix of another", () => {
    fc.assert(
      fc.property(KEY, KEY, (a, b) => {
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
      "a!",
      "a/!",
      "a!.json",
      "a!.json!.json",
      "a%21.json",
      `a!${VERSION}/0`,
      "a/0",
      "manifests/a",
    ];
    const names = tricky.flatMap((one) => [manifestName(one), chunkName(one, VERSION, 0)]);
    expect(new Set(names).size).toBe(names.length);
  });

  test("that keyName would not write are not taken for keys", () => {
    const names = ["a%2Fb", "a%2cb", "%61", "a b", "ä", "%", "%zz", "~", "~C", "~C-", "~Cw", "~5", "@6", "_V", "a//b"];
    for (const name of [...names, ".", "..", "./a", ".0", ".1/a", "~/a", "a~/b", "", "%00"]) {
      expect(keyOfName(`${name}!`), name).toBeUndefined();
    }
    expect(keyOfName("a".repeat(KEY_NAME_BYTES_MAX + 1))).toBeUndefined();
    expect(keyOfName("a@")).toBeUndefined();
  });
});

test("objectUrl keeps what a name has percent-encoded, with or without a slash behind the base", () => {
  for (const base of ["http://h:1/b", "http://h:1/b/"]) {
    expect(objectUrl(base, manifestName("a b/ü"))).toBe("http://h:1/b/manifests/a%2520b/~8w-%21.json");
  }
});
