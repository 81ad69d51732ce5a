/** Writes the private key of a new pair. */
import { writeNewSecret } from "@agarose/storage/files/whole-file";
import { newKeyPair } from "@agarose/storage/config/signing";

/**
 * Writes a private key that only its owner may read to `file`, and returns its public key. Throws USAGE or DISK_FULL.
 */
export async function createKey(file: string): Promise<string> {
  const { privateKey, publicKey } = newKeyPair();
  await writeNewSecret(file, privateKey);
  return publicKey;
}
