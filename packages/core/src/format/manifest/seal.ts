/** Completes manifests and tombstones: hashes, version and signature over what a writer decides. */
import type { Sha256 } from "../../ports.ts";
import { concat, merkleRoot } from "../hash-tree.ts";
import type { Signer } from "../signature.ts";
import { fromBase64, toHex } from "../text.ts";
import { signedBytes, versionOf } from "./identity.ts";
import { FORMAT_VERSION, type Manifest, type ManifestRecord, type Tombstone } from "./manifest.ts";

/** What a writer decides; `sealManifest` computes the rest. */
export type ManifestDraft = Omit<Manifest, "agarose" | "version" | "hashesSha256" | "hashesRoot" | "signature">;

/** Completes a manifest: the hashes over its hashes, its version and, with a signer, its signature. */
export async function sealManifest(draft: ManifestDraft, sha256: Sha256, sign?: Signer): Promise<Manifest> {
  const stripes = draft.hashes.map(fromBase64);
  const [hashesSha256, hashesRoot] = await Promise.all([
    sha256(concat(stripes)).then(toHex),
    rootOf(stripes, sha256).then(toHex),
  ]);
  const version = await versionOf({ ...draft, hashesSha256 }, sha256);
  const { hashes, ...rest } = draft;
  const unsigned = { agarose: FORMAT_VERSION, ...rest, version, hashesSha256, hashesRoot, hashes } as const;
  return signed(unsigned, sign);
}

/** A tombstone of generation `generation`, signed where there is a signer. */
export function sealTombstone(
  draft: Omit<Tombstone, "agarose" | "deleted" | "signature">,
  sign?: Signer,
): Promise<Tombstone> {
  return signed({ agarose: FORMAT_VERSION, ...draft, deleted: true } as const, sign);
}

/** The root over all stripes: of none, that of RFC 6962. */
function rootOf(stripes: readonly Uint8Array[], sha256: Sha256): Promise<Uint8Array> {
  if (stripes.length === 0) return sha256(new Uint8Array());
  return merkleRoot(stripes, sha256, { from: 0, count: stripes.length, beside: [] });
}

async function signed<T extends ManifestRecord>(record: T, sign: Signer | undefined): Promise<T> {
  return sign ? { ...record, signature: await sign(signedBytes(record)) } : record;
}
