/** Replaces the secret of an object: its data key is encrypted again, its chunks stay as they are. */
import { randomBytes } from "node:crypto";
import { sealDataKey } from "@agarose/core/encryption";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { secretsOf, type EncryptionConfig } from "./secrets-of.ts";

const NONCE_BYTES = 12;

/**
 * The record with its data key encrypted by the first secret of the configuration. The same one where it is already,
 * where the object is not encrypted, and where the configuration has no secret for it.
 *
 * @throws SECRET_WRONG, DECRYPTION_FAILED, MANIFEST_NEWER, MANIFEST_INVALID or CONFIG_INVALID.
 */
export async function withFirstSecret(record: ManifestRecord, config: EncryptionConfig): Promise<ManifestRecord> {
  if (isTombstone(record) || !record.encryption) return record;
  const secrets = secretsOf(config);
  const first = await secrets.forWriting(record.key);
  if (first === undefined || first.id === record.encryption.secret) return record;
  const dataKey = await secrets.dataKeyOf(record);
  const sealed = await sealDataKey(dataKey, first, record, randomBytes(NONCE_BYTES));
  return { ...record, encryption: { ...record.encryption, ...sealed } };
}
