/**
 * Signatures between PoPs: HMAC-SHA-256 with PEER_KEY over everything that a message means: method, path, sender,
 * receiver, sequence and body. A message to one PoP is worth nothing at another, and neither is one of another body.
 */

export interface SignedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names of PoPs. */
  readonly from: string;
  readonly to: string;
  /** Grows with every message of a sender: by its clock, but never back. */
  readonly sequence: number;
  readonly body: string;
}

/** What the headers of a request claim. */
export interface Claim {
  readonly from: string;
  readonly sequence: number;
  readonly signature: string;
}

const FROM = "x-agarose-peer";
const SEQUENCE = "x-agarose-sequence";
const SIGNATURE = "x-agarose-signature";
const HMAC = { name: "HMAC", hash: "SHA-256" };

/** The headers that prove who sends `request`. */
export async function signedHeaders(request: SignedRequest, key: string): Promise<Record<string, string>> {
  const signature = await crypto.subtle.sign("HMAC", await hmacKey(key), encode(await signedText(request)));
  return {
    [FROM]: encodeURIComponent(request.from),
    [SEQUENCE]: String(request.sequence),
    [SIGNATURE]: hexOf(new Uint8Array(signature)),
  };
}

/** What a request claims, not yet checked; undefined when it claims nothing, or nothing that can be. */
export function claimOf(headers: { get(name: string): string | null }): Claim | undefined {
  const signature = headers.get(SIGNATURE) ?? "";
  const sequence = Number(headers.get(SEQUENCE) ?? Number.NaN);
  const from = decoded(headers.get(FROM) ?? "");
  if (!from || !Number.isSafeInteger(sequence) || !/^[\da-f]{64}$/.test(signature)) return undefined;
  return { from, sequence, signature };
}

/** Whether `signature` is that of `request`. Takes as long for a wrong one as for a right one (`verify`). */
export async function isSigned(request: SignedRequest, signature: string, key: string): Promise<boolean> {
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  return crypto.subtle.verify("HMAC", await hmacKey(key), bytes, encode(await signedText(request)));
}

async function signedText({ method, path, from, to, sequence, body }: SignedRequest): Promise<string> {
  const hash = hexOf(new Uint8Array(await crypto.subtle.digest("SHA-256", encode(body))));
  return ["agarose-peer", method, path, encodeURIComponent(from), encodeURIComponent(to), sequence, hash].join("\n");
}

function hmacKey(key: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", encode(key), HMAC, false, ["sign", "verify"]);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
