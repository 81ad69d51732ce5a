import { keyIdOf, type Signer } from "../../src/format/signature.ts";

/** A publisher with its own key pair. */
export interface TestPublisher {
  /** As it is configured: `ed25519:` and base64. */
  readonly publicKey: string;
  readonly sign: Signer;
}

export async function testPublisher(): Promise<TestPublisher> {
  const { publicKey, privateKey } = (await crypto.subtle.generateKey("Ed25519", true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const raw = new Uint8Array((await crypto.subtle.exportKey("raw", publicKey)) as ArrayBuffer);
  const keyId = await keyIdOf(raw);
  return {
    publicKey: `ed25519:${toBase64(raw)}`,
    sign: async (signed) => {
      const value = await crypto.subtle.sign("Ed25519", privateKey, signed as Uint8Array<ArrayBuffer>);
      return { keyId, value: toBase64(new Uint8Array(value)) };
    },
  };
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
