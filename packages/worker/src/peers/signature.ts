/**
 * Signatures between PoPs: HMAC-SHA-256 with PEER_KEY over method, path, sender, receiver, sequence and body. No other
 * PoP accepts a message for this one, and this one accepts no other body.
 */
import { toHex } from "@agarose/core/format";
import { fromHex, hmacKey, sha256, sign, verify } from "../runtime/crypto.ts";

/** Everything that a signature covers. */
export interface SignedPeerRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Names of PoPs. */
  readonly from: string;
  readonly to: string;
  /** Grows with every message of a sender. */
  readonly sequence: number;
  readonly body: string;
}

/** The claims in the headers of a request. */
interface SignatureHeaders {
  readonly from: string;
  readonly sequence: number;
  readonly signature: string;
}

const FROM = "x-agarose-peer";
const SEQUENCE = "x-agarose-sequence";
const SIGNATURE = "x-agarose-signature";

/** Returns the headers that prove who sends `request`. */
export async function signedHeaders(request: SignedPeerRequest, key: string): Promise<Record<string, string>> {
  return {
    [FROM]: encodeURIComponent(request.from),
    [SEQUENCE]: String(request.sequence),
    [SIGNATURE]: toHex(await sign(await hmacKey(key), await signedText(request))),
  };
}

/** Returns the unchecked claim of a request, or undefined where it is absent or malformed. */
export function claimOf(headers: { get(name: string): string | null }): SignatureHeaders | undefined {
  const signature = headers.get(SIGNATURE) ?? "";
  const sequence = Number(headers.get(SEQUENCE) ?? Number.NaN);
  const from = decoded(headers.get(FROM) ?? "");
  if (!from || !Number.isSafeInteger(sequence) || !/^[\da-f]{64}$/.test(signature)) return undefined;
  return { from, sequence, signature };
}

/** Returns whether `signature` is that of `request`. Compares in constant time. */
export async function isSignedBy(request: SignedPeerRequest, signature: string, key: string): Promise<boolean> {
  return verify(await hmacKey(key), fromHex(signature), await signedText(request));
}

async function signedText({ method, path, from, to, sequence, body }: SignedPeerRequest): Promise<string> {
  const hash = toHex(await sha256(body));
  return ["agarose-peer", method, path, encodeURIComponent(from), encodeURIComponent(to), sequence, hash].join("\n");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
