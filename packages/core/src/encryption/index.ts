/** `@agarose/core/encryption`: encryption before coding (docs/reference/format.md, "Encryption"). */
export { CELL_BYTES, CellCipher, encryptedBytes, TAG_BYTES, type CellOwner } from "./cells.ts";
export type { EncryptedManifest } from "./encryption.ts";
export { openEncrypted } from "./open.ts";
export { sealEncryption, type Properties, type SealInput } from "./seal.ts";
export { openSecret, sealDataKey, Secrets, type Secret, type SecretRule, type SecretSource } from "./secrets.ts";
