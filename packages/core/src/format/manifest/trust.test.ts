/** The promises of a manifest about its content and its author: versions that bind, signatures and tombstones. */
import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../../test/errors.ts";
import { testPublisher } from "../../../test/objects/publisher.ts";
import { sampleObject } from "../../../test/objects/sample-object.ts";
import { systemSha256 } from "../../ports.ts";
import { crc32 } from "../crc32.ts";
import {
  checkManifest,
  encodeManifest,
  parseManifest,
  sealManifest,
  sealTombstone,
  type Manifest,
  type ManifestDraft,
} from "./index.ts";
import { signedBytes } from "./identity.ts";
import { acceptUnsigned, trustPublishers } from "../signature.ts";

const options = { k: 2, m: 1, bytes: 1000, stripeBytes: 300, regions: ["a", "b", "c"], sha256: systemSha256 };
const { manifest } = await sampleObject(options);
const publisher = await testPublisher();
const { key } = manifest;
const expected = { key, sha256: systemSha256, trust: acceptUnsigned };
const strict = { ...expected, trust: trustPublishers([publisher.publicKey]) };
const draft = manifest as ManifestDraft;

describe("a version", () => {
  test("binds key, content and code: none of them can be changed under it", async () => {
    const { manifest: other } = await sampleObject({ ...options, bytes: 999 });
    const changes: Partial<Manifest>[] = [
      { sha256: other.sha256 },
      { hashes: other.hashes },
      { hashes: other.hashes, hashesSha256: other.hashesSha256! },
      { blockBytes: 4096 },
      { stripeBytes: 299 },
      { version: other.version },
    ];
    for (const change of changes) {
      const error = await rejectionOf(checkManifest({ ...manifest, ...change }, expected));
      expect(error.code).toBe("MANIFEST_INVALID");
    }
  });

  test("of another key is refused, though everything else is copied from it", async () => {
    const claimed = { ...manifest, key: "pub/x" };
    const error = await rejectionOf(checkManifest(claimed, { ...expected, key: "pub/x" }));
    expect(error).toMatchObject({ code: "MANIFEST_INVALID", details: { version: manifest.version } });
  });

  test("stays the same when only placement, upload or generation differ: cached chunks stay good", async () => {
    const moved = { ...draft, placement: ["c", "b", "a"], upload: "f".repeat(32), generation: 9, missing: [1] };
    expect((await sealManifest(moved, systemSha256)).version).toBe(manifest.version);
  });
});

describe("a signature", () => {
  test("survives storage, and another order of fields", async () => {
    const signed = await sealManifest(draft, systemSha256, publisher.sign);
    expect(await parseManifest(encodeManifest(signed), strict)).toEqual(signed);
    const reversed = Object.fromEntries(Object.entries(signed).toReversed());
    expect(await checkManifest(JSON.parse(JSON.stringify(reversed)), strict)).toEqual(signed);
  });

  test("covers every field: a change of any of them is refused", async () => {
    const signed = await sealManifest({ ...draft, missing: [2] }, systemSha256, publisher.sign);
    const changes: Record<string, unknown> = {
      generation: 2,
      modified: "2026-01-02T03:04:06.000Z",
      contentType: "text/html",
      headers: { "cache-control": "no-store" },
      placement: ["a", "a", "a"],
      upload: "f".repeat(32),
      missing: [],
      requires: [],
      unknownField: "of a later program",
    };
    for (const [field, value] of Object.entries(changes)) {
      const error = await rejectionOf(checkManifest({ ...signed, [field]: value }, strict));
      expect([field, error.code]).toEqual([field, "MANIFEST_UNTRUSTED"]);
    }
  });

  test("is needed where publishers are trusted", async () => {
    expect((await rejectionOf(parseManifest(encodeManifest(manifest), strict))).code).toBe("MANIFEST_UNTRUSTED");
  });

  test("begins with the name of what it signs, so that it fits nothing else", () => {
    expect(new TextDecoder().decode(signedBytes(manifest))).toMatch(
      /^agarose-manifest\/2\n\{"agarose":2,"blockBytes":/,
    );
  });
});

describe("a tombstone", () => {
  const grave = { key, generation: 5, modified: "2026-01-02T03:04:05.000Z" };

  test("is read where a manifest is expected, and says when it was", async () => {
    const tombstone = await sealTombstone(grave, publisher.sign);
    expect(await parseManifest(encodeManifest(tombstone), strict)).toEqual(tombstone);
    expect(tombstone).toMatchObject({ deleted: true, generation: 5 });
  });

  test("needs a signature like a manifest, and is refused in a plan", async () => {
    const tombstone = await sealTombstone(grave);
    expect((await rejectionOf(parseManifest(encodeManifest(tombstone), strict))).code).toBe("MANIFEST_UNTRUSTED");
    expect((await rejectionOf(checkManifest(tombstone, expected))).code).toBe("MANIFEST_INVALID");
  });

  test("without a generation is refused", async () => {
    const { generation: _, ...rest } = await sealTombstone(grave);
    const error = await rejectionOf(parseManifest(encodeManifest(rest as never), expected));
    expect(error.message).toContain("generation");
  });
});

/** Of "a small object". */
const SMALL_SHA256 = "2ea2b72e0bbede66ee8bb46abeec1dfb1593cad160ba0f560544cd79fff41fcf";

describe("an inline object", () => {
  const bytes = new TextEncoder().encode("a small object");
  const inline: ManifestDraft = {
    key,
    generation: 1,
    modified: "2026-01-02T03:04:05.000Z",
    upload: "0".repeat(32),
    bytes: bytes.length,
    contentType: "text/plain",
    headers: {},
    k: 1,
    m: 0,
    stripeBytes: 4096,
    blockBytes: 65536,
    sha256: SMALL_SHA256,
    placement: [],
    hashes: [],
    inline: bytes,
    requires: ["inline"],
  };

  test("is carried by its manifest", async () => {
    const sealed = await sealManifest(inline, systemSha256);
    const parsed = (await parseManifest(encodeManifest(sealed), expected)) as Manifest;
    expect(parsed.inline).toEqual(bytes);
  });

  test("is refused when its bytes are not those that its SHA-256 names, signed or not", async () => {
    for (const sign of [undefined, publisher.sign]) {
      const sealed = await sealManifest(
        { ...inline, inline: new TextEncoder().encode("a small objecu") },
        systemSha256,
        sign,
      );
      for (const check of [
        () => checkManifest(sealed, expected),
        () => parseManifest(encodeManifest(sealed), expected),
      ]) {
        expect(await rejectionOf(check())).toMatchObject({
          code: "MANIFEST_INVALID",
          message: expect.stringContaining(SMALL_SHA256),
        });
      }
    }
  });

  test("is refused when it is not base64, or is missing", async () => {
    const sealed = await sealManifest(inline, systemSha256);
    const { inline: _, ...without } = sealed;
    for (const wrong of [{ ...sealed, inline: "a small object!" }, { ...sealed, inline: 7 }, without]) {
      expect((await rejectionOf(checkManifest(wrong, expected))).code).toBe("MANIFEST_INVALID");
      const text = JSON.stringify(wrong).slice(0, -1);
      const stored = `${text},"crc32":"${crc32(new TextEncoder().encode(text)).toString(16).padStart(8, "0")}"}`;
      expect((await rejectionOf(parseManifest(stored, expected))).code).toBe("MANIFEST_INVALID");
    }
  });

  test("is refused when its length or its code contradicts the manifest", async () => {
    for (const change of [{ bytes: 15 }, { k: 2 }, { m: 1 }, { inline: bytes.subarray(1) }, { placement: ["a"] }]) {
      const sealed = await sealManifest({ ...inline, ...change }, systemSha256);
      expect((await rejectionOf(checkManifest(sealed, expected))).code).toBe("MANIFEST_INVALID");
    }
  });
});

describe("a newer format", () => {
  // A possible later format: other fields, and the same rule of signing.
  const later = { agarose: 3, key, generation: 7, modified: manifest.modified, shape: { ring: 5 } };
  const signedBy = async ({ sign }: typeof publisher, record: object) => {
    return { ...record, signature: await sign(signedBytes(record as Manifest)) };
  };
  const textOf = (record: object): string => {
    const text = JSON.stringify(record).slice(0, -1);
    return `${text},"crc32":"${crc32(new TextEncoder().encode(text)).toString(16).padStart(8, "0")}"}`;
  };

  test("is MANIFEST_NEWER if a trusted publisher has signed it for the key", async () => {
    const newer = await signedBy(publisher, later);
    for (const check of [() => checkManifest(newer, strict), () => parseManifest(textOf(newer), strict)]) {
      expect(await rejectionOf(check())).toMatchObject({
        code: "MANIFEST_NEWER",
        details: { format: 3, supported: 2 },
      });
    }
  });

  test("that no trusted publisher has signed for the key is a forgery: it makes no reader give up", async () => {
    const stranger = await testPublisher();
    const forgeries: Record<string, object> = {
      "not signed": later,
      "signed by a stranger": await signedBy(stranger, later),
      "signed for another key": { ...(await signedBy(publisher, { ...later, key: "other" })), key },
      "signed, and then changed": { ...(await signedBy(publisher, later)), generation: 8 },
      "with a signature that is none": { ...later, signature: { keyId: 5, value: "?" } },
      "of this format, with an unknown feature": { ...manifest, requires: ["teleport"] },
    };
    for (const [what, forgery] of Object.entries(forgeries)) {
      for (const check of [() => checkManifest(forgery, strict), () => parseManifest(textOf(forgery), strict)]) {
        expect((await rejectionOf(check())).code, what).toBe("MANIFEST_UNTRUSTED");
      }
    }
  });
});

test("a manifest that requires a feature that this program lacks is refused as newer, and names it", async () => {
  const sealed = await sealManifest({ ...draft, requires: ["inline", "teleport"] }, systemSha256);
  expect(await rejectionOf(checkManifest(sealed, expected))).toMatchObject({
    code: "MANIFEST_NEWER",
    details: { features: ["teleport"] },
  });
});
