/**
 * WebCrypto in the few forms that the Worker uses: HMAC-SHA-256, SHA-256, hex, base64url and constant-time comparison.
 */
import { toBase64 } from "@agarose/core/format";

const HMAC = { name: "HMAC", hash: "SHA-256" };
const encoder = new TextEncoder();

/** Returns `text` as UTF-8. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text) as Uint8Array<ArrayBuffer>;
}

/** Returns an HMAC-SHA-256 key made of the UTF-8 bytes of `secret`. */
export function hmacKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", utf8(secret), HMAC, false, ["sign", "verify"]);
}

/** Returns the HMAC-SHA-256 of `text`: 32 bytes. */
export async function sign(key: CryptoKey, text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(text)));
}

/** Returns whether `signature` is the HMAC-SHA-256 of `text`. Compares in constant time. */
export function verify(key: CryptoKey, signature: Uint8Array<ArrayBuffer>, text: string): Promise<boolean> {
  return crypto.subtle.verify("HMAC", key, signature, utf8(text));
}

/** Returns the SHA-256 of `text`: 32 bytes. */
export async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text)));
}

/** Returns whether two secrets are equal. The time reveals nothing: it compares every byte of their hashes. */
export async function equalSecrets(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([sha256(given), sha256(expected)]);
  return a.reduce((difference, byte, i) => difference | (byte ^ b[i]!), 0) === 0;
}

/** Returns the bytes of an even number of hexadecimal digits, which the caller has checked. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

/** Returns base64url (RFC 4648, section 5) without padding. */
export function toBase64url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
