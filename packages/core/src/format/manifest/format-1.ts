/** Reads manifests of format 1, which is still stored but not written any more. */
import { HAS_MESSAGES } from "../../errors.ts";
import { concat } from "../hash-tree.ts";
import { fromBase64, toHex } from "../text.ts";
import { checkCode, checkHashes } from "./check.ts";
import { invalid } from "./errors.ts";
import { checkFields, FIELDS_1 } from "./fields.ts";
import { shortHash, versionOf } from "./identity.ts";
import { FORMAT_VERSION, type ExpectedManifest, type Manifest } from "./manifest.ts";

/** Brings a manifest of format 1 to today's form, so that everything behind the parser knows one form only. */
export async function fromFormat1(json: object, { sha256, key }: ExpectedManifest): Promise<Manifest> {
  const old = json as Pick<Manifest, "version" | "sha256" | "k" | "m" | "stripeBytes" | "hashes" | "bytes">;
  checkFields(old, FIELDS_1);
  checkCode(old);
  const { inline: _inline, ...chunked } = json as Manifest;
  checkHashes(chunked);
  const text = `agarose/1 ${old.sha256} ${old.k}+${old.m} ${old.stripeBytes}`;
  const version = await shortHash(text, sha256);
  if (version !== old.version) {
    throw invalid(HAS_MESSAGES && `has the version ${old.version}, its content makes ${version}`, {
      version: old.version,
    });
  }
  const { modified, contentType, headers, placement } = json as Manifest;
  const { bytes, k, m, stripeBytes, sha256: content, hashes } = old;
  const hashesSha256 = toHex(await sha256(concat(hashes.map(fromBase64))));
  const object = {
    key: (json as Manifest).key,
    generation: 0,
    modified,
    upload: old.version,
    bytes,
    contentType,
    headers,
    k,
    m,
    stripeBytes,
    blockBytes: 0,
    sha256: content,
    hashesSha256,
    placement,
    hashes,
  };
  return { agarose: FORMAT_VERSION, ...object, version: await versionOf({ ...object, key }, sha256) };
}
