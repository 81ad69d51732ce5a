/** Bytes as text: base64 and lower-case hex. */

/** The bytes that `base64` encodes. The caller has checked its form. */
export function fromBase64(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  // Thirty times as fast as `Uint8Array.from(text, …)`, which makes a string of each character.
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Bytes that are arguments of one call: an engine has a limit. */
const ARGUMENTS = 16 * 1024;

/** Returns the base64 of `bytes`. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += ARGUMENTS) {
    // Seven times as fast as with `...`, which iterates over typed arrays.
    text += Reflect.apply(String.fromCharCode, undefined, bytes.subarray(at, at + ARGUMENTS));
  }
  return btoa(text);
}

/** Returns two lower-case hexadecimal digits per byte. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
