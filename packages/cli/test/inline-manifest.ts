import { hash } from "node:crypto";
import { encodeManifest, sealManifest } from "@agarose/core/format";
import { nodeSha256 } from "@agarose/storage/objects/sha256";

/** The stored manifest of a small object, which carries its content. */
export async function inlineManifest(key: string, content: string): Promise<Uint8Array> {
  const draft = {
    key,
    generation: 1,
    modified: "2026-01-02T03:04:05.000Z",
    upload: "0".repeat(32),
    bytes: Buffer.byteLength(content),
    contentType: "text/plain",
    headers: {},
    k: 1,
    m: 0,
    stripeBytes: 4096,
    blockBytes: 65_536,
    sha256: hash("sha256", content),
    placement: [],
    hashes: [],
    inline: Buffer.from(content),
    requires: ["inline"],
  };
  return encodeManifest(await sealManifest(draft, nodeSha256));
}
