/** The identity of a manifest: the text that its version hashes, and the bytes that its signature covers. */
import type { Sha256 } from "../../ports.ts";
import { canonicalJson } from "../canonical-json.ts";
import { encodeKey } from "../key.ts";
import { toHex } from "../text.ts";
import type { Code, Manifest, ManifestRecord } from "./manifest.ts";

/**
 * The text whose SHA-256, cut to 32 hex digits, is an object's version. It covers the key, the content and the code, so
 * no other key can claim a version, and the same content coded differently never mixes its chunks. What is stored
 * compressed never passes for an object of the same bytes.
 */
export function versionText(object: VersionedFields): string {
  const { key, sha256, bytes, k, m, stripeBytes, blockBytes, hashesSha256, hashesRoot, gzip } = object;
  const hashes = hashesSha256 ?? hashesRoot;
  const lines = [encodeKey(key), sha256, bytes, `${k}+${m}`, `${stripeBytes}/${blockBytes}`, hashes];
  return ["agarose/2", ...lines, ...(gzip ? ["gzip"] : []), ""].join("\n");
}

type VersionedFields = Code &
  Pick<Manifest, "key" | "sha256" | "bytes" | "stripeBytes" | "blockBytes" | "hashesSha256" | "hashesRoot" | "gzip">;

/** The version of an object: 32 hex digits. */
export function versionOf(object: Parameters<typeof versionText>[0], sha256: Sha256): Promise<string> {
  return shortHash(versionText(object), sha256);
}

/** The first 32 hex digits of the SHA-256 of `text`. */
export async function shortHash(text: string, sha256: Sha256): Promise<string> {
  return toHex(await sha256(new TextEncoder().encode(text))).slice(0, 32);
}

/**
 * The fields that a signature covers: all but the hashes, which `hashesRoot` covers, an inline object, which `sha256`
 * covers, the signature and the CRC-32.
 */
export function signedBytes(record: ManifestRecord): Uint8Array {
  const { hashes: _hashes, inline: _inline, signature: _signature, ...covered } = record as Manifest;
  return new TextEncoder().encode(`agarose-manifest/2\n${canonicalJson(covered)}`);
}
