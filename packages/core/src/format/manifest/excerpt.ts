/**
 * Excerpts of manifests: the hashes of some stripes, with a proof against `hashesRoot` (docs/reference/format.md,
 * "Excerpt"). The plan of a range in a large object needs no others.
 */
import { HAS_MESSAGES } from "../../errors.ts";
import type { Sha256 } from "../../ports.ts";
import { HASH_BYTES, hashLeaf, hashNode, merkleRoot, splitOf, subtreesBeside } from "../hash-tree.ts";
import { isCount } from "../shape.ts";
import { fromBase64, toHex } from "../text.ts";
import { areHashes } from "./check.ts";
import { invalid } from "./errors.ts";
import { encodeHashes, MANIFEST_BYTES_MAX, type Manifest } from "./manifest.ts";
import { stripeCount } from "./stripe-shape.ts";

/** What a plan says of the hashes that its manifest has. */
export interface Excerpt {
  /** The stripe of the first of them. */
  readonly from: number;
  /** Base64 of the roots of the subtrees beside them, from left to right. */
  readonly path: readonly string[];
}

/** Stripes from..to, inclusive. */
interface Stripes {
  readonly from: number;
  readonly to: number;
}

/** Nodes over fewer leaves are hashed again when they are needed. */
const KEPT_LEAVES_MIN = 16;

/** Nodes of the trees of manifests, by their first and last leaf. */
const NODES = new WeakMap<Manifest, Map<string, Promise<Uint8Array>>>();

/**
 * The manifest with the hashes of some stripes alone, and what proves them. Undefined where that is not possible: there
 * is no `hashesRoot`, or it is not that of the hashes. What it computes is kept as long as `manifest` is.
 */
export async function excerptOf(
  manifest: Manifest,
  { from, to }: Stripes,
  sha256: Sha256,
): Promise<{ readonly manifest: Manifest; readonly excerpt: Excerpt } | undefined> {
  const { hashes, hashesRoot } = manifest;
  if (!NODES.has(manifest)) NODES.set(manifest, new Map());
  const kept = NODES.get(manifest)!;
  const made = async (start: number, end: number): Promise<Uint8Array> => {
    if (end - start < 2) return hashLeaf(fromBase64(hashes[start]!), sha256);
    const split = splitOf(start, end);
    return hashNode(await Promise.all([nodeOf(start, split), nodeOf(split, end)]), sha256);
  };
  const nodeOf = (start: number, end: number): Promise<Uint8Array> => {
    const name = `${start}-${end}`;
    const node = kept.get(name) ?? made(start, end);
    if (end - start >= KEPT_LEAVES_MIN) kept.set(name, node);
    return node;
  };
  if (toHex(await nodeOf(0, hashes.length)) !== hashesRoot) return undefined;
  const beside = subtreesBeside({ from, to: to + 1 }, hashes.length);
  const path = await Promise.all(beside.map((subtree) => nodeOf(subtree.from, subtree.to)));
  return {
    manifest: { ...manifest, hashes: hashes.slice(from, to + 1) },
    excerpt: { from, path: path.map((node) => encodeHashes([node])) },
  };
}

/**
 * Puts the hashes of an excerpt where those of all stripes are, `""` for the others. Throws MANIFEST_INVALID unless
 * `path` proves them.
 */
export async function checkExcerpt(m: Manifest, { from, path }: Excerpt, sha256: Sha256): Promise<Manifest> {
  const count = stripeCount(m);
  // A stored manifest has no more stripes than that, and a reader holds an entry for each.
  const isSmall = count * HASH_BYTES < MANIFEST_BYTES_MAX;
  if (isSmall && isCount(from) && areHashes(path, 1) && areHashes(m.hashes, m.k + m.m)) {
    const beside = path.map(fromBase64);
    const root = await merkleRoot(m.hashes.map(fromBase64), sha256, { from, count, beside });
    if (toHex(root) === m.hashesRoot && !beside.length) {
      return { ...m, hashes: Array.from({ length: count }, (_, stripe) => m.hashes[stripe - from] ?? "") };
    }
  }
  throw invalid(HAS_MESSAGES && "has hashes of some stripes that are not proven");
}

/** Whether a manifest has the hashes of some stripes, and of all without `stripes`. */
export function hasHashes({ hashes }: Manifest, stripes?: Stripes): boolean {
  return !(stripes ? hashes.slice(stripes.from, stripes.to + 1) : hashes).includes("");
}
