/** Completes manifests and tombstones: hashes, version and signature over what a writer decides. */
import type { Sha256 } from "../../ports.ts";
import { concat, hashLeaf, merkleRoot } from "../hash-tree.ts";
import type { Signer } from "../signature.ts";
import { fromBase64, toHex } from "../text.ts";
import { signedBytes, versionOf } from "./identity.ts";
import { FORMAT_VERSION, type Manifest, type ManifestRecord, type Tombstone } from "./manifest.ts";

/** The fields that a writer sets; `sealManifest` computes the rest. */
export type ManifestDraft = Omit<Manifest, "agarose" | "version" | "hashesSha256" | "hashesRoot" | "signature">;

/** Completes a manifest: the hashes over its hashes, its version and, with a signer, its signature. */
export async function sealManifest(draft: ManifestDraft, sha256: Sha256, sign?: Signer): Promise<Manifest> {
  const { hashes, ...rest } = draft;
  const parts = hashes.map(fromBase64);
  const nodes = draft.pageStripes ? parts : await Promise.all(parts.map((stripe) => hashLeaf(stripe, sha256)));
  const hashesRoot = toHex(await merkleRoot(nodes, sha256));
  const over = { ...(!draft.pageStripes && { hashesSha256: toHex(await sha256(concat(parts))) }), hashesRoot };
  const version = await versionOf({ ...draft, ...over }, sha256);
  const unsigned = { agarose: FORMAT_VERSION, ...rest, version, ...over, hashes } as const;
  return signed(unsigned, sign);
}

/** A tombstone of generation `generation`, signed where there is a signer. */
export function sealTombstone(
  draft: Omit<Tombstone, "agarose" | "deleted" | "signature">,
  sign?: Signer,
): Promise<Tombstone> {
  return signed({ agarose: FORMAT_VERSION, ...draft, deleted: true } as const, sign);
}

async function signed<T extends ManifestRecord>(record: T, sign: Signer | undefined): Promise<T> {
  return sign ? { ...record, signature: await sign(signedBytes(record)) } : record;
}
