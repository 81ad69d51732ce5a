/** Encryption before coding (docs/reference/format.md, "Encryption"). */
export { CELL_BYTES, CellCipher, type CellOwner, encryptedBytes, plainBytes, storedRange, TAG_BYTES } from "./cells.ts";
export { type EncryptedManifest, encryptionOf, shownBytes, storedRangeOf } from "./encryption.ts";
export { openEncrypted, type OpenedObject } from "./open.ts";
export { type Properties, sealEncryption, type SealInput } from "./seal.ts";
export { openSecret, type Secret, type SecretRule, Secrets, type SecretSource, sealDataKey } from "./secrets.ts";
