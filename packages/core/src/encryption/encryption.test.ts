import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { hex, pseudoRandomBytes } from "../../test/objects/sample-object.ts";
import { streamOf } from "../../test/streams.ts";
import { concat } from "../format/hash-tree.ts";
import { objectAnswer } from "../http/object-response.ts";
import type { Manifest } from "../format/manifest/index.ts";
import { fromBase64 } from "../format/text.ts";
import { systemSha256 } from "../ports.ts";
import { CELL_BYTES, CellCipher, encryptedBytes, plainBytes, storedRange } from "./cells.ts";
import { openEncrypted, openSecret, sealEncryption, Secrets } from "./index.ts";

/** The same numbers in every run: a failure repeats. */
let state = 1;
function random(): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
}

const SECRET = secretOf(1);
const OTHER = secretOf(2);
const PLAIN_CELL = CELL_BYTES - 16;
const PROPERTIES = { contentType: "text/plain", headers: { "cache-control": "no-cache" } };

function secretOf(seed: number): string {
  return `aes256:${btoa(String.fromCharCode(...pseudoRandomBytes(32, seed)))}`;
}

/** An encrypted object: its stored bytes and the part of its manifest that concerns them. */
async function encrypt(key: string, plain: Uint8Array, secret = SECRET) {
  const dataKey = crypto.getRandomValues(new Uint8Array(32));
  const owner = { key, bytes: encryptedBytes(plain.length) };
  const cipher = new CellCipher(dataKey, owner);
  const cells: Uint8Array[] = [];
  for (let at = 0; at < plain.length || at === 0; at += PLAIN_CELL)
    cells.push(await cipher.encrypt(cells.length, plain.subarray(at, at + PLAIN_CELL)));
  const encryption = await sealEncryption({
    owner,
    dataKey,
    cipher,
    secret: await openSecret(secret),
    nonce: crypto.getRandomValues(new Uint8Array(12)),
    properties: { ...PROPERTIES, sha256: hex(await systemSha256(plain)) },
  });
  return { manifest: { ...owner, encryption } as Manifest, stored: concat(cells) };
}

const secrets = new Secrets([{ prefix: "", secrets: [SECRET] }]);

async function read(manifest: Manifest, stored: Uint8Array, range: { start: number; end: number }) {
  const opened = await openEncrypted(manifest, await secrets.dataKeyOf(manifest));
  const { start, end } = opened.stored(range);
  const parts: Uint8Array[] = [];
  // A reader may cut them anywhere.
  for (let at = start; at < Math.min(end, stored.length); at += parts.at(-1)!.length)
    parts.push(stored.subarray(at, Math.min(end, at + 1 + Math.floor(random() * 150_000))));
  const plain: Uint8Array[] = [];
  for await (const part of opened.content(range, streamOf(parts))) plain.push(part);
  return concat(plain);
}

describe("cells", () => {
  test.each([0, 1, PLAIN_CELL - 1, PLAIN_CELL, PLAIN_CELL + 1, 3 * PLAIN_CELL, 1_000_000])(
    "of %i plain bytes have a length of their own",
    async (bytes) => {
      const { stored, manifest } = await encrypt("a", pseudoRandomBytes(bytes));
      expect(stored.length).toBe(encryptedBytes(bytes));
      expect(plainBytes(stored.length)).toBe(bytes);
      expect((await openEncrypted(manifest, await secrets.dataKeyOf(manifest))).shown.bytes).toBe(bytes);
    },
  );

  test("any range of any object equals that range of the plain bytes", async () => {
    for (let round = 0; round < 12; round++) {
      const plain = pseudoRandomBytes(Math.floor(random() * random() * 500_000), round + 1);
      const { manifest, stored } = await encrypt("a/b", plain);
      const ranges = Array.from({ length: 12 }, () => {
        const start = Math.floor(random() * (plain.length + 1));
        return { start, end: start + Math.floor(random() * (plain.length - start + 1)) };
      });
      for (const range of [...ranges, { start: 0, end: plain.length }]) {
        const got = await read(manifest, stored, range);
        expect(hex(got) === hex(plain.subarray(range.start, range.end)), JSON.stringify(range)).toBe(true);
      }
    }
  });

  test("a small range needs one cell, or two where it crosses an end", () => {
    const object = { bytes: encryptedBytes(10 * PLAIN_CELL) };
    expect(storedRange({ start: 5, end: 6 }, object)).toEqual({ start: 0, end: CELL_BYTES });
    expect(storedRange({ start: PLAIN_CELL - 1, end: PLAIN_CELL + 1 }, object)).toEqual({
      start: 0,
      end: 2 * CELL_BYTES,
    });
  });
});

describe("what was changed or moved is refused", () => {
  const plain = pseudoRandomBytes(3 * PLAIN_CELL + 500);
  const whole = { start: 0, end: plain.length };
  const failure = async (manifest: Manifest, stored: Uint8Array, range = whole): Promise<string> =>
    (await rejectionOf(read(manifest, stored, range))).code;

  test("a changed byte, in the content or the tag of any cell", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    for (const at of [0, CELL_BYTES - 1, CELL_BYTES + 7, stored.length - 1]) {
      const changed = stored.slice();
      changed[at]! ^= 1;
      expect(await failure(manifest, changed)).toBe("DECRYPTION_FAILED");
    }
  });

  test("cells that changed places, and a cell of another object", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    const { stored: other } = await encrypt("a", plain);
    const swapped = stored.slice();
    swapped.set(stored.subarray(0, CELL_BYTES), CELL_BYTES);
    swapped.set(stored.subarray(CELL_BYTES, 2 * CELL_BYTES), 0);
    expect(await failure(manifest, swapped)).toBe("DECRYPTION_FAILED");
    const mixed = stored.slice();
    mixed.set(other.subarray(CELL_BYTES, 2 * CELL_BYTES), CELL_BYTES);
    expect(await failure(manifest, mixed)).toBe("DECRYPTION_FAILED");
  });

  test("an end that was cut off, with a manifest to match and without", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    const cut = 2 * CELL_BYTES;
    expect(await failure(manifest, stored.subarray(0, cut))).toBe("DECRYPTION_FAILED");
    const shorter = { ...manifest, bytes: cut };
    expect(await failure(shorter, stored.subarray(0, cut), { start: 0, end: 2 * PLAIN_CELL })).toBe(
      "DECRYPTION_FAILED",
    );
  });

  test("a manifest under another key", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    expect(await failure({ ...manifest, key: "b" }, stored)).toBe("DECRYPTION_FAILED");
  });

  test("the encrypted parts of another object of the key", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    const { manifest: other } = await encrypt("a", plain);
    for (const field of ["dataKey", "properties"] as const) {
      const encryption = { ...manifest.encryption!, [field]: other.encryption![field] };
      expect(await failure({ ...manifest, encryption }, stored)).toBe("DECRYPTION_FAILED");
    }
  });

  test("an encryption that is malformed, or by a cipher of a later program", async () => {
    const { manifest, stored } = await encrypt("a", plain);
    const { encryption } = manifest;
    const changes: [object, string][] = [
      [{ secret: "short" }, "MANIFEST_INVALID"],
      [{ dataKey: "AAAA" }, "MANIFEST_INVALID"],
      [{ properties: "A" }, "MANIFEST_INVALID"],
      [{ cipher: undefined }, "MANIFEST_INVALID"],
      [{ cipher: "A512" }, "MANIFEST_NEWER"],
    ];
    for (const [change, code] of changes)
      expect(await failure({ ...manifest, encryption: { ...encryption!, ...change } }, stored)).toBe(code);
    expect(await failure({ ...manifest, bytes: CELL_BYTES + 3 }, stored)).toBe("MANIFEST_INVALID");
  });
});

describe("secrets", () => {
  test("missing, wrong and replaced ones are errors that name both", async () => {
    const { manifest } = await encrypt("private/a", new Uint8Array(10));
    const { secret: id } = manifest.encryption!;
    const { id: otherId } = await openSecret(OTHER);
    const codeBy = (rules: ConstructorParameters<typeof Secrets>[0]) =>
      rejectionOf(new Secrets(rules).dataKeyOf(manifest));
    expect(await codeBy([])).toMatchObject({ code: "SECRET_MISSING", details: { secret: id } });
    expect(await codeBy([{ prefix: "public/", secrets: [SECRET] }])).toMatchObject({ code: "SECRET_MISSING" });
    expect(await codeBy([{ prefix: "", secrets: [OTHER] }])).toMatchObject({
      code: "SECRET_WRONG",
      details: { secret: id, configured: [otherId] },
    });
    const both = new Secrets([{ prefix: "private/", secrets: [OTHER, SECRET] }]);
    expect(await both.dataKeyOf(manifest)).toHaveLength(32);
    expect((await both.forWriting("private/a"))!.id).toBe(otherId);
  });

  test("of the longest prefix decide, and keys outside all prefixes have none", async () => {
    const rules = [
      { prefix: "a/", secrets: [SECRET] },
      { prefix: "a/b/", secrets: [OTHER] },
    ];
    const found = new Secrets(rules);
    const idOf = async (key: string) => (await found.forWriting(key))?.id;
    expect(await idOf("a/b/c")).toBe((await openSecret(OTHER)).id);
    expect(await idOf("a/c")).toBe((await openSecret(SECRET)).id);
    expect(await idOf("c")).toBeUndefined();
  });

  test.each([
    [{}],
    [[{ prefix: "a" }]],
    [[{ prefix: "a", secrets: [] }]],
    [[{ prefix: "a", secrets: [SECRET, OTHER, SECRET] }]],
    [[{ prefix: 1, secrets: [SECRET] }]],
    [[{ prefix: "a", secrets: ["a password"] }]],
    [[null]],
  ])("a malformed configuration is refused: %j", (rules) => {
    expect(() => new Secrets(rules as never)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });

  test("that could not be read are read again", async () => {
    let asked = 0;
    const source = (): Promise<string> => (asked++ === 0 ? Promise.reject(new Error("busy")) : Promise.resolve(SECRET));
    const late = new Secrets([{ prefix: "", secrets: [source] }]);
    await expect(late.forWriting("a")).rejects.toThrow("busy");
    expect(await late.forWriting("a")).toMatchObject({ id: (await openSecret(SECRET)).id });
  });

  test("that are read late are read once", async () => {
    let reads = 0;
    const source = async () => (reads++, SECRET);
    const late = new Secrets([{ prefix: "", secrets: [source] }]);
    const { manifest } = await encrypt("a", new Uint8Array());
    expect(reads).toBe(0);
    await late.dataKeyOf(manifest);
    await late.dataKeyOf(manifest);
    expect(reads).toBe(1);
  });
});

test("what is stored is never answered as the content", async () => {
  const { manifest } = await encrypt("a", new Uint8Array(9));
  const plain = { ...manifest, modified: "2026-01-02T03:04:05Z", version: "0", headers: {}, contentType: "text/css" };
  const request = new Headers();
  expect(() => objectAnswer(plain, request)).toThrow(expect.objectContaining({ code: "SECRET_MISSING" }));
  const { shown } = await openEncrypted(plain, await secrets.dataKeyOf(plain));
  expect(objectAnswer(shown, request)).toMatchObject({ status: 200, range: { start: 0, end: 9 } });
});

test("a manifest says nothing of type, headers or content, and little of their length", async () => {
  const { manifest } = await encrypt("a", new TextEncoder().encode("content"));
  const text = JSON.stringify(manifest);
  for (const plain of ["text/plain", "cache-control", hex(await systemSha256(new TextEncoder().encode("content")))])
    expect(text).not.toContain(plain);
  expect(fromBase64(manifest.encryption!.properties)).toHaveLength(256 + 16);
});
