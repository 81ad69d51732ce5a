/** Hashes of some stripes, proven against the root that the publisher has signed. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../../test/errors.ts";
import { testPublisher } from "../../../test/objects/publisher.ts";
import { sampleObject } from "../../../test/objects/sample-object.ts";
import { systemSha256 } from "../../ports.ts";
import { acceptUnsigned, trustPublishers } from "../signature.ts";
import {
  checkManifest,
  chunkHash,
  excerptOf,
  hasHashes,
  sealManifest,
  stripeCount,
  type Excerpt,
  type Manifest,
} from "./index.ts";

const STRIPES_MAX = 70;
const publisher = await testPublisher();

/** A signed manifest of so many stripes. */
async function manifestOf(stripes: number): Promise<Manifest> {
  const options = { k: 2, m: 1, bytes: stripes * 10 - 3, stripeBytes: 10, sha256: systemSha256 };
  const { manifest } = await sampleObject(options);
  expect(stripeCount(manifest)).toBe(stripes);
  const { version: _version, ...draft } = manifest;
  return sealManifest(draft, systemSha256, publisher.sign);
}

const manifests = await Promise.all(Array.from({ length: STRIPES_MAX }, (_, i) => manifestOf(i + 1)));
const expected = (manifest: Manifest) => {
  return { key: manifest.key, sha256: systemSha256, trust: trustPublishers([publisher.publicKey]) };
};
const check = (manifest: Manifest, excerpt: Excerpt): Promise<Manifest> =>
  checkManifest(JSON.parse(JSON.stringify(manifest)), expected(manifest), excerpt);

describe("an excerpt", () => {
  test("of any stripes of any object proves the hashes of just those", async () => {
    const ranges = fc.integer({ min: 1, max: STRIPES_MAX }).chain((stripes) =>
      fc.record({
        stripes: fc.constant(stripes),
        ends: fc.tuple(fc.nat(stripes - 1), fc.nat(stripes - 1)),
      }),
    );
    await fc.assert(
      fc.asyncProperty(ranges, async ({ stripes, ends }) => {
        const whole = manifests[stripes - 1]!;
        const [from, to] = [Math.min(...ends), Math.max(...ends)];
        const sent = (await excerptOf(whole, { from, to }, systemSha256))!;
        expect(sent.manifest.hashes).toHaveLength(to - from + 1);
        const read = await check(sent.manifest, sent.excerpt);
        expect(read.hashes).toHaveLength(stripes);
        expect(hasHashes(read, { from, to })).toBe(true);
        expect(hasHashes(read)).toBe(to - from + 1 === stripes);
        for (let stripe = 0; stripe < stripes; stripe++) {
          const isSent = from <= stripe && stripe <= to;
          expect(chunkHash(read, stripe, 1)).toEqual(isSent ? chunkHash(whole, stripe, 1) : new Uint8Array(0));
        }
      }),
      { numRuns: 200 },
    );
  });

  test("takes no more than a path through the tree", async () => {
    const whole = manifests[63]!;
    const { excerpt } = (await excerptOf(whole, { from: 40, to: 40 }, systemSha256))!;
    expect(excerpt.path).toHaveLength(Math.log2(64));
  });

  test("with any bit changed, or of other stripes, is refused", async () => {
    const whole = manifests[36]!;
    const { manifest, excerpt } = (await excerptOf(whole, { from: 11, to: 12 }, systemSha256))!;
    const flip = (base64: string, at: number): string => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      bytes[at % bytes.length]! ^= 1;
      return btoa(String.fromCharCode(...bytes));
    };
    const [first, second] = manifest.hashes as [string, string];
    const lies: [what: string, Partial<Manifest>, Partial<Excerpt>][] = [
      ["a hash", { hashes: [flip(first, 5), second] }, {}],
      ["the order", { hashes: [second, first] }, {}],
      ["one hash too few", { hashes: [first] }, {}],
      ["one hash too many", { hashes: [first, second, second] }, {}],
      ["no hash", { hashes: [] }, {}],
      ["hashes of another length", { hashes: [first, second.slice(4)] }, {}],
      ["hashes that are none", { hashes: "abc" as never }, {}],
      ["the stripe before", {}, { from: 10 }],
      ["the stripe behind", {}, { from: 12 }],
      ["no stripe", {}, { from: -1 }],
      ["a stripe beyond the end", {}, { from: 36 }],
      ["half a stripe", {}, { from: 11.5 }],
      ["another number of stripes", { bytes: whole.bytes + 20 }, {}],
      ["more stripes than a manifest has", { bytes: 2 ** 52, stripeBytes: 1 }, {}],
      ["a path with a changed bit", {}, { path: excerpt.path.with(1, flip(excerpt.path[1]!, 8)) }],
      ["a path in another order", {}, { path: excerpt.path.toReversed() }],
      ["a path that is too short", {}, { path: excerpt.path.slice(1) }],
      ["a path that is too long", {}, { path: [...excerpt.path, excerpt.path[0]!] }],
      ["a path of other lengths", {}, { path: excerpt.path.with(1, btoa("short")) }],
      ["a path that is no base64", {}, { path: excerpt.path.with(1, "*".repeat(44)) }],
      ["a path that is none", {}, { path: "abc" as never }],
      ["no path", {}, { path: undefined as never }],
      ["another root", { hashesRoot: "0".repeat(64) }, {}],
      ["no root", { hashesRoot: undefined as never }, {}],
    ];
    for (const [what, change, lie] of lies) {
      const error = await rejectionOf(check({ ...manifest, ...change }, { ...excerpt, ...lie }));
      expect(error.code, what).toMatch(/^MANIFEST_(INVALID|UNTRUSTED)$/);
    }
  });

  test("whose root no publisher has signed is refused, though it proves its hashes", async () => {
    const whole = manifests[36]!;
    const { version: _version, signature, ...draft } = whole;
    const forged = await sealManifest({ ...draft, hashes: whole.hashes.toReversed() }, systemSha256);
    const sent = (await excerptOf({ ...forged, signature: signature! }, { from: 3, to: 3 }, systemSha256))!;
    await expect(
      checkManifest(sent.manifest, { ...expected(whole), trust: acceptUnsigned }, sent.excerpt),
    ).resolves.toBeDefined();
    expect((await rejectionOf(check(sent.manifest, sent.excerpt))).code).toBe("MANIFEST_UNTRUSTED");
  });

  test("is not made from a manifest whose root is missing, or not that of its hashes", async () => {
    const { hashesRoot: _root, ...rootless } = manifests[36]!;
    const other = { ...manifests[36]!, hashesRoot: manifests[35]!.hashesRoot! };
    for (const manifest of [rootless, other]) {
      expect(await excerptOf(manifest, { from: 3, to: 3 }, systemSha256)).toBeUndefined();
    }
  });
});

test("the root of an object without stripes is the SHA-256 of nothing, as in RFC 6962", async () => {
  const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 0, stripeBytes: 10, sha256: systemSha256 });
  expect(manifest.hashesRoot).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

test("without an excerpt, a manifest with the hashes of some stripes is refused", async () => {
  const { manifest } = (await excerptOf(manifests[36]!, { from: 11, to: 12 }, systemSha256))!;
  expect((await rejectionOf(checkManifest(manifest, expected(manifest)))).code).toBe("MANIFEST_INVALID");
});
