/** Writes the private key of a new pair. */
import { writeFile } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { newKeyPair } from "../../lib/signing.ts";

/** Writes a private key that only its owner may read to `file`, and returns its public key. Throws USAGE. */
export async function createKey(file: string): Promise<string> {
  const { privateKey, publicKey } = newKeyPair();
  try {
    await writeFile(file, privateKey, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new AgaroseError("USAGE", `${file} cannot be written: ${(error as Error).message}`, { file }, error);
  }
  return publicKey;
}
