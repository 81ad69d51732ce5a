/** Writes the private key of a new pair. */
import { writeNewSecret } from "../../lib/files/whole-file.ts";
import { newKeyPair } from "../../lib/signing.ts";

/**
 * Writes a private key that only its owner may read to `file`, and returns its public key. Throws USAGE or DISK_FULL.
 */
export async function createKey(file: string): Promise<string> {
  const { privateKey, publicKey } = newKeyPair();
  await writeNewSecret(file, privateKey);
  return publicKey;
}
