import { describe, expect, test } from "vitest";
import { pseudoRandomBytes, sampleObject, toyHash } from "../../../test/objects/sample-object.ts";
import { rejectionOf } from "../../../test/errors.ts";
import { acceptUnsigned } from "../signature.ts";
import { systemSha256 } from "../../ports.ts";
import {
  checkManifest,
  checkPage,
  encodeHashes,
  encodeManifest,
  LeafList,
  leafListBytes,
  leafShape,
  MANIFEST_BYTES_MAX,
  PAGE_BYTES_MAX,
  pageShape,
  PAGES_MAX,
  pageStripesOf,
  parseManifest,
  sealManifest,
  stripeCount,
  type Manifest,
} from "./index.ts";

const GIB = 1024 ** 3;
const TIB = 1024 * GIB;
const MIB = 1024 ** 2;

/** Eleven stripes in pages of four: the last one has three. */
const shape = { k: 4, m: 2, bytes: 10 * 2_000_000 + 7, stripeBytes: 2_000_000, sha256: toyHash };
const { manifest, leafList } = await sampleObject({ ...shape, pageStripes: 4 });
const expected = { key: manifest.key, trust: acceptUnsigned, sha256: toyHash };

/** The bytes of page `page` of the sample. */
function pageOf(page: number): Uint8Array {
  const { chunkOffset, shardBytes } = pageShape({ ...manifest, pageStripes: 4 }, page);
  return leafList.subarray(chunkOffset, chunkOffset + shardBytes);
}

describe("a writer puts hashes", () => {
  test.each([
    ["6 MB", 6_000_000],
    ["224 MiB", 224 * MIB],
  ])("of %s into the manifest", (_, bytes) => {
    expect(pageStripesOf({ k: 4, m: 2, bytes, stripeBytes: 4 * MIB })).toBeUndefined();
  });

  test.each([
    ["256 MiB", 256 * MIB, 4 * MIB, 128],
    ["60 GiB", 60 * GIB, 4 * MIB, 128],
    ["1 TiB", TIB, 4 * MIB, 1024],
    ["5 TiB", 5 * TIB, 4 * MIB, 8192],
    ["5 TiB in the largest stripes", 5 * TIB, 16 * MIB, 2048],
  ])("of %s into pages that are few and short", (_, bytes, stripeBytes, stripes) => {
    const object = { k: 4, m: 2, bytes, stripeBytes };
    expect(pageStripesOf(object)).toBe(stripes);
    expect(Math.ceil(stripeCount(object) / stripes)).toBeLessThanOrEqual(PAGES_MAX);
    expect(stripes * 6 * 32).toBeLessThanOrEqual(PAGE_BYTES_MAX);
  });
});

describe("a leaf list with pages", () => {
  test("has the leaves of the stripes of a page, then the page, without a gap", () => {
    let at = 0;
    for (let stripe = 0; stripe < stripeCount(manifest); stripe++) {
      const leaves = leafShape(manifest, stripe);
      expect(leaves.chunkOffset).toBe(at);
      at += leaves.shardBytes;
      if (stripe % 4 < 3 && stripe < 10) continue;
      const page = pageShape({ ...manifest, pageStripes: 4 }, Math.floor(stripe / 4));
      expect([page.chunkOffset, page.index]).toEqual([at, stripe - (stripe % 4)]);
      at += page.shardBytes;
    }
    expect([leafListBytes(manifest), leafList.length]).toEqual([at, at]);
  });

  test("has pages alone where a shard is one block", async () => {
    const { leafList: list, ...small } = await sampleObject({
      k: 2,
      m: 1,
      bytes: 1000,
      stripeBytes: 100,
      pageStripes: 8,
    });
    expect(list).toHaveLength(10 * 3 * 32);
    expect(leafListBytes(small.manifest)).toBe(list.length);
  });

  test("has the pages that the manifest has the roots of, and no other in their place", async () => {
    for (const page of [0, 1, 2]) await checkPage(manifest, page, pageOf(page), toyHash);
    const forged = pageOf(1).map((byte, i) => (i === 77 ? byte ^ 1 : byte));
    for (const [page, bytes] of [
      [0, pageOf(1)],
      [1, forged],
      [1, pageOf(1).subarray(1)],
      [1, pageOf(1).subarray(192)],
      [2, new Uint8Array()],
    ] as const) {
      const error = await rejectionOf(checkPage(manifest, page, bytes, toyHash));
      expect(error).toMatchObject({ code: "CHUNK_CORRUPT", details: { page } });
    }
  });
});

describe("a manifest with pages", () => {
  test("has the root that it would have with all hashes", async () => {
    const whole = await sampleObject(shape);
    expect(manifest.hashesRoot).toBe(whole.manifest.hashesRoot);
    expect(manifest.version).not.toBe(whole.manifest.version);
  });

  test("of the largest object is read, and within the limit", async () => {
    const object = { k: 10, m: 4, bytes: 5 * TIB, stripeBytes: 16 * MIB, blockBytes: 65_536 };
    const pageStripes = pageStripesOf(object)!;
    const pages = Math.ceil(stripeCount(object) / pageStripes);
    const hashes = Array.from({ length: pages }, (_, i) => encodeHashes([pseudoRandomBytes(32, i)]));
    const placement = Array.from({ length: 14 }, (_, i) => `r${i}`);
    const { hashesSha256: _, hashesRoot: _root, version: _version, signature: _signature, ...rest } = manifest;
    const sealed = await sealManifest({ ...rest, ...object, placement, pageStripes, hashes }, systemSha256);
    const bytes = encodeManifest(sealed);
    expect(bytes.length).toBeLessThan(MANIFEST_BYTES_MAX / 2);
    expect(await parseManifest(bytes, { ...expected, sha256: systemSha256 })).toEqual(sealed);
  });

  test.each<[string, Partial<Record<keyof Manifest, unknown>>]>([
    ["whose pages no reader was told of", { requires: [] }],
    ["without their length", { pageStripes: undefined }],
    ["in pages of no power of two", { pageStripes: 3 }],
    ["in pages of nothing", { pageStripes: 0 }],
    ["in pages of half a stripe", { pageStripes: 0.5 }],
    ["in pages that are too long", { pageStripes: 2 ** 40 }],
    ["in more pages than it has roots", { pageStripes: 2 }],
    ["in fewer pages than it has roots", { pageStripes: 8 }],
    ["that no region has", { leaves: [] }],
    ["of another root", { hashes: manifest.hashes.toReversed() }],
    ["with the hash of all hashes", { hashesSha256: "0".repeat(64) }],
  ])("is refused %s", async (_, change) => {
    const error = await rejectionOf(checkManifest({ ...manifest, ...change }, expected));
    expect(error.code).toBe("MANIFEST_INVALID");
  });

  test("is refused in more pages than any has", async () => {
    const stripes = PAGES_MAX + 1;
    const large = { ...manifest, bytes: stripes * manifest.stripeBytes, pageStripes: 1 };
    const hashes = Array.from({ length: stripes }, () => manifest.hashes[0]!);
    const error = await rejectionOf(checkManifest({ ...large, hashes }, expected));
    expect(error.message).toContain("no usable pages");
  });

  test("is made stripe by stripe while no more than one page is held", async () => {
    const object = { ...shape, blockBytes: 65_536, pageStripes: 4 };
    const list = new LeafList(object, toyHash);
    const lengths: number[] = [];
    for (let stripe = 0; stripe < 11; stripe++) {
      const { shardBytes } = leafShape(object, stripe);
      const leaves = Array.from({ length: 6 }, () => new Uint8Array(shardBytes / 6));
      lengths.push((await list.add(leaves)).length - shardBytes);
    }
    expect(lengths).toEqual([0, 0, 0, 768, 0, 0, 0, 768, 0, 0, 576]);
    expect(list.hashes).toHaveLength(3);
  });
});
