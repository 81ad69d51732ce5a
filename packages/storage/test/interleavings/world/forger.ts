/** Makes up what no publisher has signed: later versions with other content, and tombstones of what is there. */
import { hash } from "node:crypto";
import {
  BLOCK_BYTES,
  encodeManifest,
  sealManifest,
  sealTombstone,
  type ManifestRecord,
  type Signer,
} from "@agarose/core/format";
import { nodeSha256 } from "../../../src/objects/sha256.ts";
import type { StoredObject } from "./bucket.ts";

/** A key of its own. */
const sign: Signer = async (signed) => ({ keyId: "fedcba9876543210", value: hash("sha512", signed, "base64") });

export class Forger {
  /** Manifests that are sound but for who has signed them. */
  readonly forgeries: StoredObject[] = [];

  /** Takes the place of a manifest. */
  async learn(shown: StoredObject): Promise<void> {
    const count = this.forgeries.length;
    const { key, modified, generation } = JSON.parse(Buffer.from(shown.bytes).toString()) as ManifestRecord;
    const next = { key, modified, generation: generation + 1 };
    const signer = count % 4 < 2 ? sign : undefined;
    const forged =
      count % 2 === 0 ? sealTombstone(next, signer) : sealManifest(inlineDraft(next, count), nodeSha256, signer);
    const bytes = encodeManifest(await forged);
    this.forgeries.push({ ...shown, bytes, etag: `"${hash("md5", bytes)}"` });
  }
}

/** The content is inside, so that it takes no other region to read it. */
function inlineDraft(next: Pick<ManifestRecord, "key" | "modified" | "generation">, count: number) {
  const content = Buffer.from(`forged ${count}`);
  return {
    ...next,
    upload: hash("md5", content),
    bytes: content.length,
    contentType: "text/plain",
    headers: {},
    k: 1,
    m: 0,
    stripeBytes: BLOCK_BYTES,
    blockBytes: BLOCK_BYTES,
    sha256: hash("sha256", content),
    placement: [],
    requires: ["inline"],
    inline: content,
    hashes: [],
  };
}
