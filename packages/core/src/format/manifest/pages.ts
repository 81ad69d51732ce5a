/**
 * Pages: the shard hashes of an object that has too many for its manifest are in its leaf list. The manifest has the
 * root of each page, and these make `hashesRoot` (docs/reference/format.md, "Pages").
 */
import { AgaroseError, HAS_MESSAGES } from "../../errors.ts";
import type { Sha256 } from "../../ports.ts";
import { concat, HASH_BYTES, hashLeaf, merkleRoot, treeRoot } from "../hash-tree.ts";
import { fromBase64 } from "../text.ts";
import { encodeHashes, LEAF_LIST, type Code, type Manifest } from "./manifest.ts";
import { hasLeaves, stripeCount, type HashedObject } from "./stripe-shape.ts";

/** A manifest holds at most so many characters of hashes: what a connection sends at first (RFC 6928). */
const HASHES_CHARACTERS_MAX = 14_600;
/** The most pages of an object: their roots are in the manifest. */
export const PAGES_MAX = 256;
/** The most bytes of a page. */
export const PAGE_BYTES_MAX = 2 * 1024 * 1024;
/** Pages are at least so long where the object is: a read of all of it needs each of them. */
const PAGE_BYTES_MIN = 16 * 1024;

/** How many stripes a writer puts in each page of an object; undefined where the manifest has room for all hashes. */
export function pageStripesOf(object: Code & Pick<Manifest, "bytes" | "stripeBytes">): number | undefined {
  const stripes = stripeCount(object);
  const bytes = (object.k + object.m) * HASH_BYTES;
  if (stripes * (Math.ceil(bytes / 3) * 4 + 3) <= HASHES_CHARACTERS_MAX) return undefined;
  let count = 1;
  while (count * bytes < PAGE_BYTES_MIN || count * PAGES_MAX < stripes) count *= 2;
  return count;
}

/** The root of the hashes of a page. */
export async function pageRoot({ k, m }: Code, page: Uint8Array, sha256: Sha256): Promise<Uint8Array> {
  const bytes = (k + m) * HASH_BYTES;
  const stripes = Array.from({ length: page.length / bytes }, (_, i) => page.subarray(i * bytes, (i + 1) * bytes));
  return merkleRoot(await Promise.all(stripes.map((stripe) => hashLeaf(stripe, sha256))), sha256);
}

/** Throws CHUNK_CORRUPT unless `bytes` are the hashes that the manifest has the root of, as page `page`. */
export async function checkPage(manifest: Manifest, page: number, bytes: Uint8Array, sha256: Sha256): Promise<void> {
  const expected = fromBase64(manifest.hashes[page]!);
  const actual = await pageRoot(manifest, bytes, sha256);
  if (expected.every((byte, i) => byte === actual[i])) return;
  throw new AgaroseError(
    "CHUNK_CORRUPT",
    HAS_MESSAGES && `page ${page} of the leaf list does not have the root that the manifest names`,
    { chunk: LEAF_LIST, page },
  );
}

/** Makes the leaf list of an object and the hashes of its manifest, stripe by stripe. It holds one page. */
export class LeafList {
  /** Once all stripes were added: `hashes` of the manifest. */
  readonly hashes: string[] = [];
  readonly #object: HashedObject;
  readonly #sha256: Sha256;
  readonly #hasLeaves: boolean;
  #page: Uint8Array[] = [];
  #stripes = 0;

  /** @param object the object, with `pageStripes` as its manifest has it. */
  constructor(object: HashedObject, sha256: Sha256) {
    this.#object = object;
    this.#sha256 = sha256;
    this.#hasLeaves = hasLeaves(object);
  }

  /** Takes the hashes of the blocks of each of the n shards of the next stripe. Returns what the list has of them. */
  async add(leaves: readonly Uint8Array[]): Promise<Uint8Array> {
    const { pageStripes } = this.#object;
    const hashes = concat(await Promise.all(leaves.map((shard) => treeRoot(shard, this.#sha256))));
    const list = this.#hasLeaves ? leaves : [];
    this.#stripes++;
    if (!pageStripes) {
      this.hashes.push(encodeHashes([hashes]));
      return concat(list);
    }
    this.#page.push(hashes);
    if (this.#page.length < pageStripes && this.#stripes < stripeCount(this.#object)) return concat(list);
    const page = concat(this.#page);
    this.#page = [];
    this.hashes.push(encodeHashes([await pageRoot(this.#object, page, this.#sha256)]));
    return concat([...list, page]);
  }
}
